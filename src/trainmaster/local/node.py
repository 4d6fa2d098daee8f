"""The node agent as one process; started by `trainmaster up`. Pods go on if it ends, and the next one adopts them.

However many nodes the machine is split into, they are this one process: a second one would cost as much as ten pods.
"""

import asyncio
import json
import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from trainmaster.api import quantity
from trainmaster.cluster.kubelet import cgroups, gpus, holder
from trainmaster.cluster.kubelet import main as kubelet
from trainmaster.cluster.kubelet.catalog import Catalog, shipped
from trainmaster.cluster.kubelet.gpus import Gpu
from trainmaster.cluster.kubelet.output import MOST_BYTES, MOST_FILES
from trainmaster.kube import kubeconfig
from trainmaster.kube.client import Client
from trainmaster.local import parts, reports
from trainmaster.local.control_plane import loop_runner
from trainmaster.local.home import Home
from trainmaster.local.nodes import LocalNode, nodes
from trainmaster.local.part_logs import PartLog
from trainmaster.local.parts import Standing, arguments_without_ready_fd
from trainmaster.local.readings import Readings
from trainmaster.local.recipes import WithRecipes
from trainmaster.local.shares import deal, split
from trainmaster.runtime import log
from trainmaster.runtime.clock import RealClock
from trainmaster.runtime.supervision import kept_running

# CPU time can be shared, and a laptop should not refuse an example: four times the cores.
CPU_FACTOR = 4
LOG_SIZE, LOG_FILES = "TRAINMASTER_LOG_SIZE", "TRAINMASTER_LOG_FILES"
LEAST_LOG = 64 * 1024
LAST_WAIT = 10.0       # seconds for the end of pods whose home was removed


def main() -> int:
    arguments, ready_fd = arguments_without_ready_fd(sys.argv[1:])
    log.setup("info")
    home = Home.from_environment()
    standing = Standing(parts.node(home), ready_fd)
    if not standing.claim():
        standing.problem("another node agent of this home is already running")
        return 1
    offered = json.loads(arguments[0]) if arguments else {}
    sys.stdin.read()  # our code is loaded; go on once whoever started us says that the API server is there
    return loop_runner()(run(home, offered, standing))


async def run(home: Home, offered: dict[str, str], standing: Standing) -> int:
    """Be the nodes of this machine until SIGTERM."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    here = nodes(home)
    doors = {node.name: kubeconfig.transport(kubeconfig.load(home.keys / node.kubeconfig)) for node in here}
    members = [(settings, Client(doors[settings.name], user_agent="kubelet"))
               for settings in settings_of(home, here, offered, gpus.found())]
    held: list[int] = []
    groups: list[Path] = []

    def ready() -> None:
        groups.extend(cgroups.recorded(home.run))
        if (found := holder.find(str(home.run))) is not None:
            held.append(found[0])
        standing.ready()

    agent = asyncio.create_task(
        kubelet.run(members, clock=RealClock(),
                    images=WithRecipes(home, Catalog(home.envs, shipped(), home.images)),
                    ready=ready)
    )
    told = asyncio.create_task(stop.wait())
    lost = asyncio.create_task(parts.until_lost(standing, RealClock()))
    reading = asyncio.create_task(kept_running(
        "readings", Readings(*members[0], doors, RealClock()).run, RealClock()))
    printed = asyncio.create_task(PartLog(parts.node(home).log).kept_short(RealClock()))
    try:
        await asyncio.wait([agent, told, lost], return_when=asyncio.FIRST_COMPLETED)
        if agent.done() and (problem := agent.exception()) is not None:
            standing.problem(str(problem))
            log.logger("node").error("the node agent ended", problem=repr(problem))
            return 1
        return 0
    finally:
        tasks = (agent, told, lost, reading, printed)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, client in members:
            await client.close()
        if standing.lost and held:      # nobody could find the pods any more, so they end with it
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(held[0], signal.SIGKILL)
            select.select(held[:1], [], [], LAST_WAIT)
            cgroups.remove(groups)


def settings_of(
    home: Home, here: Sequence[LocalNode], offered: Mapping[str, str], there: Sequence[Gpu]
) -> list[kubelet.NodeSettings]:
    """What each node is told: all have the machine's folders in common, and a share of what it offers."""
    offers = {**what_this_machine_offers(), **({gpus.RESOURCE: str(len(there))} if there else {}), **offered}
    log_bytes, log_files = log_limits(os.environ)
    api = urlsplit(kubeconfig.load(home.keys / here[0].kubeconfig).server)
    return [
        kubelet.NodeSettings(
            name=node.name, run=home.run, logs=home.pod_logs, volumes=home.volumes, cpus=share.pop("cpu", "0"),
            memory=share.pop("memory", "0"), resources=share, hidden=(home.path,), log_bytes=log_bytes,
            log_files=log_files, gpus=own, announced=reports.announced, api=(str(api.hostname), api.port or 443),
            share=len(here), socket_name=node.socket_name,
        )
        for node, share, own in zip(here, split(offers, len(here)), deal(there, len(here)), strict=True)
    ]


def log_limits(environment: Mapping[str, str]) -> tuple[int, int]:
    """How large a file of a container's log grows, and how many are kept; no files: one without a bound.

    What makes no sense is not worth a node that does not start: then the kubelet's defaults count.
    """
    try:
        size = int(quantity.parse(environment.get(LOG_SIZE) or str(MOST_BYTES)))
        files = int(environment.get(LOG_FILES) or MOST_FILES)
    except ValueError:
        size = files = -1
    if size >= LEAST_LOG and files >= 0:
        return size, files
    log.logger("node").warning(f"{LOG_SIZE} must be a size of at least 64Ki and {LOG_FILES} a number: "
                               "taking 10Mi and 5")
    return MOST_BYTES, MOST_FILES


def what_this_machine_offers() -> dict[str, str]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cores = len(os.sched_getaffinity(0))
    return {"cpu": str(cores * CPU_FACTOR), "memory": f"{pages // 1024}Ki"}


if __name__ == "__main__":
    sys.exit(main())
