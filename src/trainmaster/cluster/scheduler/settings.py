"""What an administrator may switch, and the decision that comes out. Shared words of the modules that decide."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from trainmaster.api.meta import Key
from trainmaster.cluster.scheduler.amounts import Amounts
from trainmaster.cluster.scheduler.reasons import Reason
from trainmaster.cluster.scheduler.snapshot import Group, GroupKey


@dataclass(frozen=True, slots=True)
class Settings:
    overcommit: Fraction = Fraction(12, 10)   # groups may make pods for so much more than there is (Volcano's factor)
    preempt: bool = False                     # gangs may push out gangs of lower priority in their own queue
    reclaim: bool = False                     # queues may take back what they deserve from queues that have more
    patience: float = 600.0                   # seconds after which the first in line has room kept for it; 0: never
    singles: bool = True                      # place the pods of the default scheduler as well
    comeback: float = 120.0                   # seconds for which a gang keeps its claim on what a lost member had
    disk: frozenset[str] = frozenset()        # nodes of one machine: a local volume of one is on all of them


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Binding:
    """This pod, told by UID so that a namesake is never bound in its place, goes to that node."""

    pod: Key
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """This pod gets no node now; the message is the one its scheduler writes."""

    pod: Key
    uid: str
    message: str
    scheduler: str = "default-scheduler"
    reason: str = "Unschedulable"


@dataclass(frozen=True, slots=True)
class Eviction:
    """This pod must go so that others can start."""

    pod: Key
    uid: str
    why: str               # preempt or reclaim
    group: GroupKey | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """An event about a group."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said about one group."""

    group: Group
    phase: str
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    members: int = 0
    condition: Condition | None = None
    events: Sequence[Told] = ()
    why: Reason | None = None
    pending: int = 0
    allocated: Amounts = field(default_factory=dict)
    complete: bool = False      # enough pods exist
    ready: bool = False         # enough of them have a place
    occupied: str = ""          # the owners of its pods


@dataclass(frozen=True, slots=True)
class Decision:
    bindings: tuple[Binding, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    nominations: tuple[Binding, ...] = ()      # where room is being made for a pod; "": nowhere any more
