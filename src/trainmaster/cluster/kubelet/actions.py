"""What a plan for a pod can ask for. Each action is safe to repeat, and is done by the shell in `pods`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class MakeSandbox:
    """Volumes, namespaces, address."""


@dataclass(frozen=True, slots=True)
class EndSandbox:
    """Nothing runs or will: give namespaces and address back."""


@dataclass(frozen=True, slots=True)
class Pull:
    """Prepare the image of a container, in the background."""

    container: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start an attempt of a container."""

    container: str
    attempt: int
    level: int


@dataclass(frozen=True, slots=True)
class RunHook:
    """Run a container's preStop hook, in the background, for as long as its grace lasts."""

    container: str
    grace: timedelta


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask a container to end."""

    container: str
    grace: timedelta


@dataclass(frozen=True, slots=True)
class Kill:
    """Make a container end; `shim` too when that did not help before."""

    container: str
    shim: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """The pod's processes are gone: the object may go too."""


Action: TypeAlias = MakeSandbox | EndSandbox | Pull | Start | RunHook | Terminate | Kill | Remove


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in the order to be done, and when to look again if nothing happens until then."""

    actions: tuple[Action, ...] = ()
    look_again_at: datetime | None = None


def earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
