"""Where the embedded cluster of this user is, and whether it is up: all that a client of it must know.

Its parts hold a lock while they live (`local.parts`); looking at that needs neither a process number nor a connection.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def home(environment: Mapping[str, str]) -> Path:
    """`TRAINMASTER_HOME`, else below the XDG state folder."""
    state = environment.get("XDG_STATE_HOME") or str(Path(environment.get("HOME") or Path.home(), ".local", "state"))
    return Path(environment.get("TRAINMASTER_HOME") or Path(state, "trainmaster")).expanduser().absolute()


def kubeconfig(environment: Mapping[str, str]) -> Path:
    return home(environment) / "kubeconfig"


def server(environment: Mapping[str, str]) -> str | None:
    """The address of its API server, if it is up."""
    found = facts(home(environment) / "run" / "control-plane.lock")
    return found.get("server") if found else None


def facts(lock: Path) -> dict[str, Any] | None:
    """What the living part behind a lock says of itself (at least its pid), or None if it does not live."""
    try:
        import fcntl
    except ImportError:      # no embedded cluster on this system
        return None
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(ValueError):
            return dict(json.loads(os.pread(handle, 65536, 0)))
        return {}  # it has the lock and has not said more yet
    finally:
        os.close(handle)
    return None
