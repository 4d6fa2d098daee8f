"""Start the embedded cluster in the background, wait until it is ready, and say what is up."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trainmaster.local import memory, parts
from trainmaster.local.asked import Asked
from trainmaster.local.home import Home
from trainmaster.local.parts import StartError


@dataclass(frozen=True, slots=True)
class Up:
    """A cluster that is up: where it is, and whether it was before we asked."""

    server: str
    already: bool


def up(
    home: Home, asked: Asked = Asked(), *, offered: dict[str, str] | None = None      # noqa: B008  frozen
) -> Up:
    """Start what does not run, as asked; what runs stays as it is. Raises StartError."""
    home.make()
    environment = {"TRAINMASTER_HOME": str(home.path)}
    if home.shared_envs:
        environment["TRAINMASTER_ENVS"] = str(home.shared_envs)
    with alone(home):
        facts, had_node = parts.control_plane(home).facts(), parts.node(home).facts()
        wants_node = not asked.only_apiserver and not had_node
        already = bool(facts) and not wants_node
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
        return Up(facts["server"], already)


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
