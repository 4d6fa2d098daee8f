"""The real operator on the real embedded API server, in this process and on virtual time.

The test plays the kubelet and the people. The operator may die after any write (`dies_after`); it is then started again
as a new life that knows nothing, as a crashed process would be.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any

from trainmaster.api import groups
from trainmaster.api.core import (
    AUTOSCALERS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEFINITIONS,
    EVENTS,
    PODS,
    SERVICES,
)
from trainmaster.api.meta import Object, Resource, being_deleted, name_of, timestamp, uid_of
from trainmaster.api.schema import definitions
from trainmaster.cluster.apiserver import account_admission
from trainmaster.cluster.apiserver.auth import MASTERS, Identity, account
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.cluster.store import Store
from trainmaster.frameworks.registry import framework_of
from trainmaster.gang.dialects import dialect
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.kube.limits import Limits
from trainmaster.local import control_plane
from trainmaster.operator import access
from trainmaster.operator import main as operator
from trainmaster.operator.config import DEFAULTS, Settings
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import Faults, Plan, Write, is_death, nothing

NAMESPACE = "default"
Work = Callable[[Client], Coroutine[Any, Any, None]]
# Looks of the kubelet at the end of each deed: more than any story needs.
ROUNDS = 20


class Stage:
    """A cluster with an operator, and hands to move it."""

    def __init__(self, server: ApiServer, clock: VirtualClock, settings: Settings = DEFAULTS) -> None:
        self.server = server
        self.clock = clock
        self.settings = settings
        self.client = Client(InProcess(server, Identity("tests", (MASTERS,))))
        self.thing: Object = {}
        self.lives: list[Faults] = []
        self._operator: asyncio.Task[None] | None = None
        self._work: Work | None = None
        self.hold = False
        self.pace = 1.0

    @property
    def writes(self) -> list[Write]:
        """What the operator wrote in its first life."""
        return self.lives[0].writes

    def begin(self, dies_after: int | None = None, plan: Plan = nothing) -> None:
        """Start a life of the operator."""
        life = Faults(InProcess(self.server, account(access.NAMESPACE, access.ACCOUNT)), self.clock, plan=plan)
        life.die_after = dies_after
        self.lives.append(life)
        client = Client(life, limits=Limits(clock=self.clock))
        self._operator = asyncio.create_task((self._work or self._runs)(client))

    def begin_as(self, work: Work) -> None:
        """Start a life that is run in another way than the usual one."""
        self._work = work
        self.begin()

    def _runs(self, client: Client) -> Coroutine[Any, Any, None]:
        return operator.run(client, self.clock, self.settings)

    async def end(self) -> None:
        if self._operator is not None:
            self._operator.cancel()
            await asyncio.gather(self._operator, return_exceptions=True)
            self._operator = None

    async def settle(self, seconds: float = 0.0) -> None:
        """Let everything happen that happens by itself, the kubelet's part of deletions included."""
        for _ in range(ROUNDS):
            await self.clock.advance(seconds or self.pace)
            self._raise_from_the_dead()
            if not self.hold and await self._let_go():
                continue
            if self._operator is None or len(self.lives[-1].writes) == self._seen:
                self._seen = len(self.lives[-1].writes) if self.lives else 0
                return
            self._seen = len(self.lives[-1].writes)
        raise AssertionError(f"never at rest; last: {self.lives[-1].writes[-5:]}")

    _seen = -1

    def _raise_from_the_dead(self) -> None:
        task = self._operator
        if task is None or not task.done():
            return
        if task.cancelled() or not is_death(task.exception() or RuntimeError()):
            raise AssertionError(f"the operator ended: {task.exception()!r}") from task.exception()
        self._seen = -1
        self.begin()

    async def _let_go(self) -> bool:
        """Pods that are being deleted are gone now; whether there were any."""
        going = [pod for pod in await self.pods() if being_deleted(pod)]
        for pod in going:
            await self.client.delete(PODS, name_of(pod), NAMESPACE, uid=uid_of(pod), grace=0)
        return bool(going)

    # What people do

    async def apply(self, thing: Object) -> Object:
        """Create a job; the others are about the one created last."""
        self.thing = {**thing, "metadata": {**thing["metadata"], "namespace": NAMESPACE}}
        del self.thing["metadata"]["uid"]
        return await self.client.create(resource_of(thing), self.thing)

    async def patch(self, **spec: Any) -> None:
        await self.client.patch(resource_of(self.thing), name_of(self.thing), NAMESPACE, {"spec": spec})

    async def phase(self, phase: str) -> None:
        """The gang scheduler says how far the job's group is, if there is one."""
        for group in await self.groups():
            resource, change = GROUPS[group["apiVersion"]], {"status": {"phase": phase}}
            part = "status" if resource is groups.COSCHEDULING_GROUPS else ""
            await self.client.patch(resource, name_of(group), NAMESPACE, change, subresource=part)

    async def lose(self, pod: str) -> None:
        """Somebody deletes a pod."""
        await self.client.delete(PODS, pod, NAMESPACE)

    async def wait(self, minutes: float) -> None:
        await self.clock.advance(minutes=minutes)

    async def delete(self) -> None:
        await self.client.delete(resource_of(self.thing), name_of(self.thing), NAMESPACE, propagation="Background")

    # What nodes do

    async def run(self, pattern: str = "*", restarts: int = 0) -> None:
        for pod in await self.living(pattern):
            await self._status(pod, "Running", {"running": {"startedAt": timestamp(self.clock.now())}}, restarts)

    async def succeed(self, pattern: str = "*") -> None:
        for pod in await self.living(pattern):
            await self._end(pod, "Succeeded", 0)

    async def fail(self, pattern: str = "*", code: int = 1, message: str = "") -> None:
        for pod in await self.living(pattern):
            await self._end(pod, "Failed", code, message)

    async def evict(self, pattern: str = "*") -> None:
        for pod in await self.living(pattern):
            change = {"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory",
                                 "containerStatuses": None}}
            await self.client.patch(PODS, name_of(pod), NAMESPACE, change, subresource="status")

    async def _end(self, pod: Object, phase: str, code: int, message: str = "") -> None:
        now = timestamp(self.clock.now())
        over = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
        await self._status(pod, phase, {"terminated": over | ({"message": message} if message else {})})

    async def _status(self, pod: Object, phase: str, state: Object, restarts: int = 0) -> None:
        if not pod["spec"].get("nodeName"):
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name_of(pod)},
                       "target": {"kind": "Node", "name": "node"}}
            await self.client.create(PODS, binding, namespace=NAMESPACE, name=name_of(pod), subresource="binding")
        states = [{"name": c["name"], "image": c["image"], "imageID": "", "ready": phase == "Running",
                   "restartCount": restarts, "state": state} for c in pod["spec"]["containers"]]
        change = {"status": {"phase": phase, "containerStatuses": states}}
        await self.client.patch(PODS, name_of(pod), NAMESPACE, change, subresource="status")

    # What is there

    async def living(self, pattern: str) -> list[Object]:
        return [pod for pod in await self.pods() if fnmatchcase(name_of(pod), pattern) and not being_deleted(pod)
                and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]

    async def pods(self) -> list[Object]:
        return sorted((await self.client.list(PODS, NAMESPACE)).items, key=name_of)

    async def services(self) -> list[Object]:
        return sorted((await self.client.list(SERVICES, NAMESPACE)).items, key=name_of)

    async def groups(self) -> list[Object]:
        spoken = dialect(self.settings.site.gang_scheduler)
        return [] if spoken is None else (await self.client.list(spoken.resource, NAMESPACE)).items

    async def events(self) -> list[Object]:
        return (await self.client.list(EVENTS, NAMESPACE)).items

    async def job(self) -> Object | None:
        try:
            return await self.client.get(resource_of(self.thing), name_of(self.thing), NAMESPACE)
        except NotFound:
            return None

    async def status(self) -> Object:
        job = await self.job()
        assert job is not None, "the job is gone"
        return dict(job.get("status") or {})

    async def picture(self) -> Object:
        """Everything that is there, without what differs from run to run: identities and times."""
        return {
            "job": plain(await self.job()),
            "pods": [plain(pod) for pod in await self.pods()],
            "services": [plain(service) for service in await self.services()],
            "groups": [plain(group) for group in await self.groups()],
            "autoscalers": [plain(scaler) for scaler in (await self.client.list(AUTOSCALERS, NAMESPACE)).items],
        }


@asynccontextmanager
async def stage(
    settings: Settings = DEFAULTS, *, collects: bool = False, pace: float = 1.0
) -> AsyncIterator[Stage]:
    """A stage; with `collects` it has a garbage collector, which whoever deletes jobs needs. `pace` is how long
    the operator has for each step.
    """
    clock = VirtualClock()
    store = Store.open(None)
    server = ApiServer(store, clock=clock)
    await server.start()
    made = Stage(server, clock, settings)
    made.pace = pace
    await _install(made.client, settings)
    collecting_as = InProcess(server, account("kube-system", "generic-garbage-collector"))
    collector = Collector(Client(collecting_as), clock) if collects else None
    collecting = asyncio.create_task(collector.run()) if collector else None
    try:
        yield made
    finally:
        await made.end()
        if collecting is not None:
            collecting.cancel()
            await asyncio.gather(collecting, return_exceptions=True)
        await server.close()
        await store.close()


async def _install(client: Client, settings: Settings) -> None:
    """What a cluster has, or, for an operator of few kinds, only what they need: stages are made by the thousand."""
    if not settings.kinds:
        await control_plane.install(client)
        return
    wanted = [found for found in definitions() if found["spec"]["names"]["kind"] in settings.kinds]
    spoken = dialect(settings.site.gang_scheduler)
    if spoken is not None:
        wanted += [found for found in groups.definitions() if found["spec"]["group"] == spoken.resource.group]
    for definition in wanted:
        await client.create(DEFINITIONS, definition)
    for role in access.roles():
        await client.create(CLUSTER_ROLES, role)
    await client.create(CLUSTER_ROLE_BINDINGS, access.binding())


def resource_of(thing: Object) -> Resource:
    framework = framework_of(thing["kind"])
    assert framework is not None
    return framework.kind.resource


GROUPS = {resource.api_version: resource for resource in (groups.VOLCANO_GROUPS, groups.COSCHEDULING_GROUPS)}
CHANGING = {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields",
            "lastReconcileTime", "lastTransitionTime", "lastUpdateTime", "startTime", "completionTime", "startedAt",
            "finishedAt"}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "set" if key in CHANGING else plain(item) for key, item in value.items() if key != "managedFields"}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value.startswith(account_admission.PREFIX):
        return account_admission.PREFIX      # the rest is by chance
    return value
