"""What the node knows about one pod at one moment: values only, so deciding and reporting are functions of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Exit:
    """How an attempt ended."""

    code: int
    finished: datetime
    signal: int = 0
    reason: str = ""       # "" for an ordinary end; StartError, OOMKilled, ContainerStatusUnknown
    message: str = ""      # the termination message


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a container. Its number is the container's restart count while it is the last."""

    number: int
    created: datetime
    ended: Exit | None = None      # None: it runs
    level: int = 0                 # quick ends in a row before it; the back-off grows with it
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container cannot be started now, in the API's words, and when it is worth trying again."""

    reason: str
    message: str
    until: datetime


@dataclass(frozen=True, slots=True)
class HookSeen:
    """A preStop hook of the running attempt."""

    begun: datetime
    over: bool = False


@dataclass(frozen=True, slots=True)
class ContainerSeen:
    """One container: its last two attempts, and what stands between it and the next."""

    last: Attempt | None = None
    previous: Attempt | None = None
    image_ready: bool = False
    pulling: bool = False
    waiting: Waiting | None = None
    hook: HookSeen | None = None            # its preStop hook, once begun
    terminating: datetime | None = None     # when it was asked to end
    killed: datetime | None = None          # when it was made to
    beginning: bool = False                 # its postStart hook is under way
    started: bool = True                    # its startup probe has succeeded, or it has none
    ready: bool = True                      # the same of its readiness probe
    verdict: str = ""                       # why its attempt must end: "liveness", "startup", "postStart", "definition"

    @property
    def running(self) -> bool:
        return self.last is not None and self.last.ended is None

    @property
    def up(self) -> bool:
        """Running, and past whatever has to come before others may count on it."""
        return self.running and self.started and not self.beginning

    @property
    def exit(self) -> Exit | None:
        return self.last.ended if self.last is not None else None


@dataclass(frozen=True, slots=True)
class Observed:
    """One pod as this machine has it."""

    started: datetime                       # when the node took it on
    address: str = ""                       # of the living sandbox; "" when there is none
    last_address: str = ""                  # the one it had, for the record
    waiting: Waiting | None = None          # why no sandbox can be made: volumes that cannot be mounted
    containers: Mapping[str, ContainerSeen] = field(default_factory=dict)   # init containers too; names are unique
    draining: bool = False                  # the node is going down
    evicted: str = ""                       # why it must go: it uses more than it may
    stopping: datetime | None = None        # since when the pod as a whole is being ended

    def of(self, name: str) -> ContainerSeen:
        return self.containers.get(name, ContainerSeen())
