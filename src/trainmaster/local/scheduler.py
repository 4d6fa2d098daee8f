"""The scheduler alone, against any cluster: which dialects it serves there, and the loop until it is stopped."""

import asyncio
import signal
from collections.abc import Iterable

from trainmaster.api.groups import VOLCANO_COMMANDS
from trainmaster.api.meta import Resource
from trainmaster.cluster.scheduler import loop
from trainmaster.cluster.scheduler.dialects import DIALECTS, Dialect
from trainmaster.cluster.scheduler.settings import Settings
from trainmaster.kube import kubeconfig
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import survey
from trainmaster.kube.kubeconfig import Access
from trainmaster.runtime.clock import RealClock
from trainmaster.runtime.log import logger

log = logger("scheduler")
__all__ = ["NAMES", "NothingToServe", "Settings", "run"]
NAMES = tuple(dialect.name for dialect in DIALECTS)


class NothingToServe(Exception):
    """The cluster has none of the kinds in which gangs are written."""


async def run(access: Access, names: tuple[str, ...], settings: Settings) -> None:
    """Serve these dialects, or all whose kinds are there, until SIGTERM or SIGINT. Raises NothingToServe, KubeError."""
    client = Client(kubeconfig.transport(access), user_agent="trainmaster-scheduler")
    try:
        there = {kind.resource for kind in (await survey(client)).kinds}
        served = _served(there, names)
        log.info("scheduler runs", dialects=",".join(dialect.name for dialect in served))
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await loop.run(client, RealClock(), settings, served, singles=False, stop=stop,
                       lacks=_kinds(served) - there)
    finally:
        await client.close()


def _kinds(served: Iterable[Dialect]) -> set[Resource]:
    return {VOLCANO_COMMANDS, *(kind for each in served for kind in (*each.group_kinds, *each.queue_kinds))}


def _served(there: set[Resource], names: tuple[str, ...]) -> tuple[Dialect, ...]:
    found = tuple(dialect for dialect in DIALECTS
                  if there.intersection(dialect.group_kinds) and (not names or dialect.name in names))
    missing = [name for name in names if name not in {dialect.name for dialect in found}]
    if missing or not found:
        kinds = ", ".join(f"{dialect.groups.plural}.{dialect.groups.group}" for dialect in DIALECTS
                          if not names or dialect.name in missing)
        raise NothingToServe(f"The cluster has no such kind: {kinds}. `trainmaster crds --groups` prints them.")
    return found
