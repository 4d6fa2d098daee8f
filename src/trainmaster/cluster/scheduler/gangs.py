"""What a gang is at a moment: how many of it are placed, whether that is enough, and the words Volcano has for it.

Pure arithmetic on the states of its pods. "Ready" means that the gang has what it needs to run, not that it runs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from trainmaster.cluster.scheduler.amounts import PODS, Amounts, add
from trainmaster.cluster.scheduler.census import ALLOCATED, Census
from trainmaster.cluster.scheduler.snapshot import Group, Pod, State

PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"


@dataclass(slots=True)
class Muster:
    """Members that have a place, counted one by one: asked after each, it must not count them all again."""

    least: int
    minima: Mapping[str, int]
    count: int = 0
    roles: dict[str, int] = field(default_factory=dict)

    def add(self, pod: Pod) -> None:
        self.count += 1
        self.roles[pod.role] = self.roles.get(pod.role, 0) + 1

    @property
    def ready(self) -> bool:
        """Whether these are enough."""
        return self.count >= self.least and all(self.roles.get(role, 0) >= least for role, least in self.minima.items())


@dataclass(slots=True, eq=False)
class Gang:
    """One group and its pods while a decision is made. The pods stay the same; who gets a place is told by `settle`."""

    group: Group
    census: Census
    priority: int = 0
    placed: dict[str, str] = field(default_factory=dict)      # by UID: where this decision puts them for good
    found: dict[str, str] = field(default_factory=dict)       # where they would have gone, had the others fitted
    errors: dict[str, str] = field(default_factory=dict)      # why they fit nowhere
    obstacles: Mapping[str, int] = field(default_factory=dict)   # of the first of those: obstacle -> number of nodes
    refused: str = ""                                         # why it may not even make its pods
    promised: Mapping[str, int] = field(default_factory=dict)    # to one that was let in, and not given yet
    entered: bool = False                                     # it may, from now on
    held: bool = False                                        # waits for room that is being given back
    _muster: Muster = field(init=False)
    _amounts: dict[str, int] = field(init=False)              # what its pods have
    _line: dict[str, Pod] = field(init=False)                 # by UID, in the order in which they get a place

    def __post_init__(self) -> None:
        census = self.census
        self._muster = Muster(self.least, self.minima, census.ready, dict(census.mustered))
        self._amounts = {name: amount for name, amount in census.held.items() if name != PODS}
        self._line = {pod.uid: pod for pod in census.line}

    def settle(self, pod: Pod, node: str) -> None:
        """A member has got a place for good."""
        self.placed[pod.uid] = node
        self._muster.add(pod)
        add(self._amounts, {name: amount for name, amount in pod.requests.items() if name != PODS})
        del self._line[pod.uid]

    @property
    def least(self) -> int:
        """A group that asks for nobody is a group of one: anything else would be over before it began."""
        return max(self.group.least, 1)

    @property
    def waiting(self) -> list[Pod]:
        """Pods that want a place, in the order in which they get one: those that ask for something first."""
        return list(self._line.values())

    @property
    def ready(self) -> bool:
        """Whether enough members have a place."""
        return self._muster.ready

    def muster(self) -> Muster:
        """Those that have a place, to count others to them."""
        return replace(self._muster, roles=self._muster.roles.copy())

    @property
    def needed(self) -> list[Pod]:
        """Those of the waiting that must get a place for the gang to be ready."""
        return list(islice(self._line.values(), max(self.least - self._muster.count, 0)))

    @property
    def minima(self) -> Mapping[str, int]:
        """Per role; they count only as far as the group as a whole asks for so many."""
        roles = self.group.roles
        return roles if roles and self.group.least >= sum(roles.values()) else {}

    @property
    def pods(self) -> Sequence[Pod]:
        return self.census.pods

    @property
    def complete(self) -> bool:
        """Whether there are enough pods to try at all."""
        return self.census.valid >= self.least and all(
            self.census.able[role] >= least for role, least in self.minima.items())

    @property
    def allocated(self) -> Amounts:
        """What its members with a place have."""
        return self._amounts

    @property
    def pending(self) -> bool:
        """Its pods may not be made yet."""
        return self.group.phase in {"", PENDING}

    @property
    def idle(self) -> bool:
        """It was let in, and none of its pods was made so far: what was promised to it may be asked about again."""
        return self.group.phase == INQUEUE and not self.pods

    @property
    def damaged(self) -> bool:
        """It ran and has lost members: what it needs to be whole again comes before what is new."""
        return 0 < self.census.allocated < self.least


def share(held: Amounts, cluster: Amounts) -> float:
    """The dominant share: of the resource of which it has the largest part."""
    return max((amount / cluster[name] for name, amount in held.items() if cluster.get(name)), default=0.0)


def phase(gang: Gang, *, unschedulable: bool) -> str:
    """As the scheduler writes it at the end of a decision."""
    group, census = gang.group, gang.census
    if census.states[State.RUNNING] and unschedulable:
        return UNKNOWN
    done = census.states[State.SUCCEEDED] + census.states[State.FAILED]
    scheduled = done + census.allocated + len(gang.placed) + census.leaving
    if scheduled >= gang.least:
        return COMPLETED if scheduled == done else RUNNING
    return INQUEUE if group.phase == INQUEUE and not gang.refused else PENDING


def detail(gang: Gang) -> str:
    """`pod group is not ready, 2 Allocated, 4 Pending, 6 minAvailable; Pending: 1 Schedulable, 3 Unschedulable. …`"""
    counts = Counter(_told(gang, pod) for pod in gang.pods)
    parts = sorted([f"{count} {state}" for state, count in counts.items()] + [f"{gang.group.least} minAvailable"])
    ready = "ready" if gang.ready else "not ready"
    text = f"pod group is {ready}, {', '.join(parts)}"
    pending = [pod for pod in gang.pods if _told(gang, pod) == "Pending"]
    if pending:
        verdicts = Counter("Schedulable" if pod.uid in gang.found else "Unschedulable" for pod in pending)
        text += "; Pending: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    blamed = next((pod for pod in gang.waiting if pod.uid in gang.errors), None)
    if blamed is not None:
        text += f". Origin reason is {blamed.key.name}: {gang.errors[blamed.uid]}"
    return text


def unschedulable(gang: Gang) -> tuple[int, int]:
    """How many are called unschedulable: in the condition, and in the event. They differ upstream; texts are kept."""
    pending = [pod for pod in gang.pods if _told(gang, pod) == "Pending"]
    held = sum(1 for pod in gang.pods if pod.state in ALLOCATED or pod.state is State.SUCCEEDED
               or _told(gang, pod) == "Allocated")
    found = sum(1 for pod in pending if pod.uid in gang.found)
    return max(gang.least - found - held, 0), len(pending)


def _told(gang: Gang, pod: Pod) -> str:
    """The state of a pod in texts: one that asks for nothing and found a place is called allocated, bound or not."""
    if pod.state is State.PENDING and (pod.uid in gang.placed or (pod.best_effort and pod.uid in gang.found)):
        return "Allocated"
    return str(pod.state)
