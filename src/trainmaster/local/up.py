"""Start the embedded cluster in the background, wait until it is ready, and say what is up."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trainmaster.local import parts
from trainmaster.local.home import Home
from trainmaster.local.parts import Part


@dataclass(frozen=True, slots=True)
class Up:
    """A cluster that is up: where it is, and whether it was before we asked."""

    server: str
    already: bool


def up(home: Home, *, port: int = 0, offered: dict[str, str] | None = None, say: Callable[[str], None]) -> Up:
    """Start what does not run. Raises StartError."""
    home.make()
    with alone(home):
        facts, had_node = parts.control_plane(home).facts(), parts.node(home).facts()
        had_both = bool(facts) and bool(had_node)
        if not facts:
            say("starting the control plane")
            facts = _started(parts.control_plane(home), home, str(port))
        if not had_node:
            say("starting the node")
            _started(parts.node(home), home, json.dumps(offered or {}))
        return Up(facts["server"], already=had_both)


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


def _started(part: Part, home: Home, *arguments: str) -> dict[str, str]:
    environment = {"TRAINMASTER_HOME": str(home.path)}
    if home.shared_envs:
        environment["TRAINMASTER_ENVS"] = str(home.shared_envs)
    return part.start(*arguments, environment=environment)
