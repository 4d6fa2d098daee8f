"""Start the embedded cluster in the background, wait until it is ready, and say what is up."""

import fcntl
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from trainmaster.cluster.kubelet import holder
from trainmaster.local import ciphers, memory, parts
from trainmaster.local import nodes as local_nodes
from trainmaster.local.home import Home
from trainmaster.local.nodes import LocalNode
from trainmaster.local.parts import StartError
from trainmaster.local.said import NOTHING, Said, remember, said_before


@dataclass(frozen=True, slots=True)
class Up:
    """A cluster that is up: where it is, whether it was before we asked, and what it was told by whom."""

    server: str
    already: bool
    nodes: tuple[str, ...] = ()
    said: Said = NOTHING         # what holds for it, whenever it was said
    kept: str = ""               # the options of before that a cluster has again which was not taken down


def up(home: Home, said: Said = NOTHING, *, nodes: int | None = None) -> Up:
    """Start what does not run, as asked; what runs stays as it is. Raises StartError.

    What is not said is as it was said before, as long as the cluster was not taken down. So is the number of `nodes`
    into which the machine is split.
    """
    home.make()
    environment = {"TRAINMASTER_HOME": str(home.path)}
    if home.shared_envs:
        environment["TRAINMASTER_ENVS"] = str(home.shared_envs)
    with alone(home):
        before, settled = said_before(home), local_nodes.settled(home)
        facts, had_node = parts.control_plane(home).facts(), parts.node(home).facts()
        holds = _holds(before, said, plane=bool(facts), node=bool(had_node))
        wants_node = not holds.only_apiserver and not had_node
        already = bool(facts) and not wants_node
        here = members(home, nodes, running=bool(facts or had_node))
        plane = node = None
        try:
            # Both load their code at the same time; the node then waits for the word that there is a server to talk to.
            with _uninterrupted():
                plane = None if facts else parts.control_plane(home).start(
                    holds.asked().words(),
                    environment={**memory.ENVIRONMENT, **ciphers.environment(os.environ), **environment})
                node = parts.node(home).start(json.dumps(holds.offered), environment=environment) if wants_node else \
                    None
            facts = facts or (plane.ready() if plane else {})
            if node is not None:
                node.ready()
        except StartError:
            if node is not None:
                node.give_up()
            raise
        except KeyboardInterrupt:      # left alone, they would come up when nobody expects it any more
            for starting in (node, plane):
                if starting is not None:
                    starting.give_up()
            raise
        names = tuple(node.name for node in here)
        if already:
            return Up(facts["server"], already, names, before)
        remember(home, holds)
        as_before = settled is not None and nodes is None and len(here) > 1
        kept = [before.besides(said).options(), *([f"--nodes {len(here)}"] if as_before else ())]
        return Up(facts["server"], already, names, holds, " ".join(filter(None, kept)))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C counts at the end: a process that was made while it was pressed would be known to nobody."""
    if threading.current_thread() is not threading.main_thread():      # the others are not interrupted
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _holds(before: Said, said: Said, *, plane: bool, node: bool) -> Said:
    """What counts from now on: a part that runs stays what it was told before."""
    new = said.over(before)
    return replace(before if plane else new, offered=before.offered if node else new.offered)


def members(home: Home, wanted: int | None, *, running: bool) -> Sequence[LocalNode]:
    """The nodes that the cluster has from now on. Raises StartError where running pods are in the way."""
    before = local_nodes.settled(home)
    if before is None and running:
        before = local_nodes.settle(home, 1)           # of an earlier release, which knew of one
    if before is None or (not running and wanted not in (None, len(before))):
        if before is not None and holder.alive(home.run):
            raise StartError(f"pods that were kept run on {_counted(len(before))}, so there cannot be "
                             f"{_counted(wanted or 1)} now. Start it with --nodes {len(before)}, or take the pods down "
                             "first with `trainmaster down`.")
        return local_nodes.settle(home, wanted or 1)
    return before


def _counted(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def is_up(home: Home) -> str | None:
    """The address of the API server, if it runs."""
    facts = parts.control_plane(home).facts()
    return facts.get("server") if facts else None


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """One `up` or `down` of a home at a time: the second waits for the first."""
    handle = os.open(home.path / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
