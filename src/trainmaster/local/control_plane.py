"""The control plane as one process: API server, controllers, scheduler and operator on one event loop.

They talk through the in-process transport, the same bytes and the same chain as on the wire. `trainmaster up` starts
this module with `python -m`; it ends in order on SIGTERM. Pods go on without it.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from trainmaster.api import groups
from trainmaster.api.core import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, DEFINITIONS, STORAGE_CLASSES
from trainmaster.api.schema import definitions
from trainmaster.cluster.apiserver.auth import MASTERS, Authenticator, Identity, account, authenticated
from trainmaster.cluster.apiserver.http import serve
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.controllers import announce, stranded
from trainmaster.cluster.controllers import main as controllers
from trainmaster.cluster.controllers.announce import Api
from trainmaster.cluster.controllers.storage.main import Directories, local_path
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.scheduler import door as queue_door
from trainmaster.cluster.simulated import nodes as simulated
from trainmaster.cluster.store import Refused, Store, Unusable
from trainmaster.frameworks.framework import Site
from trainmaster.kube import kubeconfig
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, KubeError
from trainmaster.local import files, keys, memory, parts, reports
from trainmaster.local.asked import GANG_SCHEDULERS, Asked
from trainmaster.local.home import Home
from trainmaster.local.nodes import LocalNode, nodes
from trainmaster.local.part_logs import PartLog
from trainmaster.local.parts import Standing, arguments_without_ready_fd, until_lost
from trainmaster.local.reports import Reports
from trainmaster.local.retiring import retire
from trainmaster.local.ways import Ways
from trainmaster.operator import access, door
from trainmaster.runtime import log
from trainmaster.runtime.clock import Clock, RealClock
from trainmaster.runtime.outbox import LULL
from trainmaster.runtime.supervision import Work, kept_running

ADMIN = Identity("trainmaster-admin", (MASTERS,))
HOST = "127.0.0.1"
POD_SIDE = keys.SERVER_ADDRESSES[-1]      # this machine as pods see it; loopback is their own
# What `up --only apiserver` leaves out. Who brings nodes of his own may bind pods to them before they are there.
NOT_OF_THE_API = frozenset({"scheduler", "operator", "simulated-nodes", "pod-garbage-collector"})
# The same rules as the operator's webhook on other clusters, without a call.
JOBS_AT_THE_DOOR = (door.configuration("", ""), lambda request, _look: door.judged(request))
AT_THE_DOOR = (JOBS_AT_THE_DOOR, *queue_door.DOORS)
# The thread that commits needs the interpreter before and after, and whoever writes waits for it. Python lets a thread
# wait 5 ms while another computes; with this, eight writers at once got 4 to 7 % more done.
SWITCH_SECONDS = 0.0002
T = TypeVar("T")


def main() -> int:
    arguments, ready_fd = arguments_without_ready_fd(sys.argv[1:])
    asked = Asked.read(arguments[0]) if arguments else Asked()
    log.setup("info")
    sys.setswitchinterval(SWITCH_SECONDS)
    home = Home.from_environment()
    standing = Standing(parts.control_plane(home), ready_fd)
    if not standing.claim():
        standing.problem("another control plane of this home is already running")
        return 1
    try:
        loop_runner()(run(home, asked, standing))
    except (Unusable, Refused, OSError) as problem:
        standing.problem(str(problem))
        log.logger("control-plane").error("could not start", problem=problem)
        return 1
    return 0


def loop_runner() -> Callable[[Coroutine[Any, Any, T]], T]:
    """uvloop takes TLS, sockets and timers for two thirds of asyncio's CPU. It is a matter of speed, not of behaviour:
    where nobody built it, asyncio's own loop serves."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def run(home: Home, asked: Asked, standing: Standing) -> None:
    """Serve until SIGTERM or SIGINT."""
    clock = RealClock()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    here = nodes(home)
    known = keys.ensure(home.keys, clock.now(), ("admin", *(node.user for node in here)))
    async with AsyncExitStack() as stack:
        store = Store.open(home.database)
        stack.push_async_callback(store.close)
        ways = Ways(home.run, here)
        stack.push_async_callback(ways.close)
        server = ApiServer(store, clock=clock, node=ways.to, reach=ways.connected,
                           judges=AT_THE_DOOR, account_key=known.account_key,
                           doors={reports.DOOR: lambda *asked: taken.answer(*asked)})
        taken = Reports(client_of(server, Identity("trainmaster-progress", (MASTERS,))), clock)
        await server.start()
        installing = client_of(server, Identity("system:apiserver", (MASTERS,)))
        await install(installing)
        if not asked.only_apiserver:
            await retire(installing, {*(node.name for node in here), *simulated.named(asked.simulated_nodes)})
        listening = await serve(
            server, authenticator(known, here), known.server_context(), HOST, asked.port or last_port(home.kubeconfig)
        )
        stack.push_async_callback(listening.stop)
        stack.push_async_callback(server.close)   # first: it ends the watches that listening.stop would wait for
        with suppress(KubeError):      # of a full disk, say: then its controller tries on
            await announce.begin(installing, Api(POD_SIDE, listening.port))
        url = f"https://{HOST}:{listening.port}"
        write_kubeconfig(home.kubeconfig, url, known.authority, known.tokens["admin"])
        for node in here:
            write_kubeconfig(home.keys / node.kubeconfig, url, known.authority, known.tokens[node.user])
        directories = Directories(home.volumes, remove, tuple(node.name for node in here))
        async with asyncio.TaskGroup() as group:
            parts_at_work = [
                group.create_task(kept_running(name, work, clock))
                for name, work in {**workers(server, clock, known.authority, listening.port, asked, directories),
                                   "progress": taken.run}.items()
                if not (asked.only_apiserver and name in NOT_OF_THE_API)
            ]
            memory.settle()
            parts_at_work.append(group.create_task(memory.tend(clock)))
            lost = group.create_task(until_lost(standing, clock))
            lost.add_done_callback(lambda _: stop.set())
            parts_at_work.append(lost)
            printed = PartLog(parts.control_plane(home).log)
            parts_at_work.append(group.create_task(printed.kept_short(clock)))
            standing.ready(port=listening.port, server=url)
            await stop.wait()
            for work in parts_at_work:
                work.cancel()


def authenticator(known: keys.Keys, here: Sequence[LocalNode]) -> Authenticator:
    return Authenticator({known.tokens["admin"]: ADMIN, **{
        known.tokens[node.user]: Identity(f"system:node:{node.name}", ("system:nodes",)) for node in here}})


def workers(
    server: ApiServer, clock: Clock, authority: bytes, port: int, asked: Asked, directories: Directories
) -> dict[str, Work]:
    """Everything that works on the API from inside, each under its own identity."""
    scheduling = client_of(server, Identity("system:kube-scheduler"))
    training = client_of(server, account(access.NAMESPACE, access.ACCOUNT))

    def managing(name: str) -> Client:
        return client_of(server, account("kube-system", name))

    return {
        "controllers": lambda: controllers.run(managing, clock, authority=authority, api=Api(POD_SIDE, port),
                                               directories=directories),
        "scheduler": lambda: schedule(scheduling, clock, asked, frozenset(directories.nodes)),
        "operator": lambda: operate(training, clock, Site(gang_scheduler=GANG_SCHEDULERS[asked.gang_scheduler])),
        "pod-garbage-collector": lambda: stranded.run(managing("pod-garbage-collector"), clock),
        "simulated-nodes": lambda: simulated.run(managing("simulated-nodes"), clock, asked.simulated_nodes,
                                                 asked.simulated_offers),
    }


async def schedule(client: Client, clock: Clock, asked: Asked, disk: frozenset[str]) -> None:
    """Loaded where it runs: an API server alone does without the megabytes of it; so with the operator."""
    from trainmaster.cluster.scheduler import loop
    from trainmaster.cluster.scheduler.settings import Settings

    await loop.run(client, clock, Settings(preempt=asked.preempt, reclaim=asked.reclaim, disk=disk), lull=LULL)


async def operate(client: Client, clock: Clock, site: Site) -> None:
    from trainmaster.operator import main as operator
    from trainmaster.operator.config import DEFAULTS

    await operator.run(client, clock, replace(DEFAULTS, site=site), lull=LULL)


def client_of(server: ApiServer, who: Identity) -> Client:
    return Client(InProcess(server, authenticated(who)), user_agent=who.user)


async def install(client: Client) -> None:
    """Our kinds and the rights of our operator, made or brought up to date: the first `kubectl create` finds them."""
    wanted = [
        *((DEFINITIONS, each) for each in (*definitions(), *groups.definitions())),
        *((CLUSTER_ROLES, each) for each in access.roles()),
        (CLUSTER_ROLE_BINDINGS, access.binding()),
    ]
    for resource, thing in wanted:
        name = thing["metadata"]["name"]
        try:
            await client.create(resource, thing)
        except AlreadyExists:
            await client.patch(resource, name, "", {field: value for field, value in thing.items()
                                                    if field in ("spec", "rules", "subjects")})
    with suppress(AlreadyExists):      # whoever changed it, or made another the default, knows why
        await client.create(STORAGE_CLASSES, local_path())


def write_kubeconfig(path: Path, server: str, authority: bytes, token: str) -> None:
    text = yaml.safe_dump(kubeconfig.document(server, authority, token), sort_keys=False)
    files.write(path, text.encode())


def last_port(path: Path) -> int:
    """The port of the last time, if it is still free, so that clients that were following find us again; else any."""
    try:
        port = int(kubeconfig.load(path).server.rpartition(":")[2])
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except (OSError, ValueError, kubeconfig.KubeconfigError):
        return 0
    return port


if __name__ == "__main__":
    sys.exit(main())
