"""The operator as a process of its own: access, limits, lease, probes and signals, in the order they are needed.

With a lease, everything it writes goes through the fence: a process that was asleep while another took over writes
nothing when it wakes. What was sent in time and arrives late is harmless by itself, since it names a UID or a revision
or makes an object whose name follows from what it is for.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

from trainmaster.frameworks.framework import Site
from trainmaster.frameworks.registry import FRAMEWORKS
from trainmaster.kube.client import Client
from trainmaster.kube.limits import Limits
from trainmaster.kube.transport import Transport
from trainmaster.operator import flags, webhook
from trainmaster.operator import main as operator
from trainmaster.operator.config import Settings
from trainmaster.operator.metrics import Counted, Metrics
from trainmaster.operator.older import Older
from trainmaster.operator.probes import Address, Health, Probes, address
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.leader import Leadership, identity
from trainmaster.runtime.log import logger

AGENT = "trainmaster-operator"
NAMESPACE = "kubeflow"    # our own, where nothing says another

log = logger("operator")


@dataclass(frozen=True, slots=True)
class Lease:
    """Which lease decides who works."""

    name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Process:
    """How one process runs."""

    settings: Settings
    qps: float = 200.0
    burst: int = 400
    lease: Lease | None = None
    probes: Address | None = None
    figures: Address | None = None
    door: webhook.Place | None = None            # where the webhook is


def from_flags(given: flags.Given, pod_namespace: str | None, environment: Mapping[str, str]) -> Process:
    """How to run, as asked; `pod_namespace` is None outside of a pod. Raises BadFlag."""
    in_pod = pod_namespace is not None
    places = []
    for name in ("health-probe-bind-address", "metrics-bind-address"):
        try:
            places.append(address(given.text(name), asked=name in given.said, in_pod=in_pod))
        except ValueError as problem:
            raise flags.BadFlag(f"--{name} {problem}") from problem
    own = environment.get("MY_POD_NAMESPACE") or pod_namespace or NAMESPACE
    return Process(
        settings=Settings(
            namespace=given.text("namespace"),
            kinds=flags.kinds(given, [known.kind.kind for known in FRAMEWORKS]),
            workers=max(1, given.number("controller-threads")),
            site=Site(
                cluster_domain=environment.get("CUSTOM_CLUSTER_DOMAIN", ""),
                init_image=given.text("pytorch-init-container-image"),
                init_tries=given.number("pytorch-init-container-max-tries"),
                init_template=flags.init_template(given),
                gang_scheduler=flags.gang_scheduler(given),
            ),
        ),
        qps=given.rate("kube-api-qps"),
        burst=max(1, given.number("kube-api-burst")),
        lease=Lease(given.text("leader-election-id"), own) if given.truth("leader-elect") else None,
        probes=places[0],
        figures=places[1],
        door=webhook.place_of(given, own, in_pod=in_pod),
    )


async def run(
    process: Process, transport: Transport, host: str, clock: Clock, stop: asyncio.Event,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Work until `stop` is set and what was under way is done. Closes the transport."""
    metrics, health = Metrics(), Health()
    counted = Older(Counted(transport, metrics, host))

    def up() -> None:
        health.ready = True
        ready()

    def work(through: Transport) -> Coroutine[Any, Any, None]:
        client = Client(through, user_agent=AGENT, limits=Limits(process.qps, process.burst, clock=clock))
        return operator.run(client, clock, process.settings, up, metrics=metrics, stop=stop)

    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(Probes(health, metrics, process.probes, process.figures))
            if process.door is not None:
                looking_after = Client(counted, user_agent=AGENT)
                hook = webhook.serving(process.door, looking_after, clock, health, metrics)
                await stack.enter_async_context(hook)
            if process.lease is None:
                await work(counted)
            else:
                await _led(process.lease, counted, clock, health, metrics, stop, work)
    finally:
        await transport.close()


async def _led(
    lease: Lease, transport: Transport, clock: Clock, health: Health, metrics: Metrics, stop: asyncio.Event,
    work: Callable[[Transport], Coroutine[Any, Any, None]],
) -> None:
    """Work whenever we lead; give the lease back when stopped."""
    # Renewals wait for nobody: they have no share in the limits of the work.
    leadership = Leadership(
        Client(transport, user_agent=AGENT), clock, name=lease.name, namespace=lease.namespace, me=identity()
    )
    metrics.show("leader_election_master_status", leadership.holds, lease.name)
    health.stands_by = lambda: bool(leadership.holder) and not leadership.holds()
    leading = asyncio.ensure_future(leadership.run(lambda: work(leadership.fenced(transport))))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((leading, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not leadership.holds():
            leading.cancel()    # nothing is under way
        with suppress(asyncio.CancelledError):
            await leading
    finally:
        for task in (leading, stopping):
            task.cancel()


def on_signals(stop: asyncio.Event) -> None:
    """Stop in good order at the first signal, at once at the second."""
    loop = asyncio.get_running_loop()
    me = asyncio.current_task()

    def asked() -> None:
        if stop.is_set() and me is not None:
            me.cancel()
        log.info("stopping")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)
