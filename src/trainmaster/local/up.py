"""Start the embedded cluster in the background, wait until it is ready, and say what is up."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from trainmaster.cluster.kubelet import holder
from trainmaster.local import memory, parts
from trainmaster.local import nodes as local_nodes
from trainmaster.local.asked import Asked
from trainmaster.local.home import Home
from trainmaster.local.nodes import LocalNode
from trainmaster.local.parts import StartError


@dataclass(frozen=True, slots=True)
class Up:
    """A cluster that is up: where it is, and whether it was before we asked."""

    server: str
    already: bool
    nodes: tuple[str, ...] = ()


def up(
    home: Home, asked: Asked = Asked(), *, offered: dict[str, str] | None = None, nodes: int | None = None,  # noqa: B008
) -> Up:
    """Start what does not run, as asked; what runs stays as it is. Raises StartError.

    `nodes`: into how many the machine is split; None: as it is as long as the cluster was not taken down, else one.
    """
    home.make()
    environment = {"TRAINMASTER_HOME": str(home.path)}
    if home.shared_envs:
        environment["TRAINMASTER_ENVS"] = str(home.shared_envs)
    with alone(home):
        facts, had_node = parts.control_plane(home).facts(), parts.node(home).facts()
        wants_node = not asked.only_apiserver and not had_node
        already = bool(facts) and not wants_node
        here = members(home, nodes, running=bool(facts or had_node))
        # Both load their code at the same time; the node then waits for the word that there is a server to talk to.
        plane = None if facts else parts.control_plane(home).start(
            asked.words(), environment={**memory.ENVIRONMENT, **environment})
        node = parts.node(home).start(json.dumps(offered or {}), environment=environment) if wants_node else None
        try:
            facts = facts or (plane.ready() if plane else {})
        except StartError:
            if node is not None:
                node.give_up()
            raise
        if node is not None:
            node.ready()
        return Up(facts["server"], already, tuple(node.name for node in here))


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
