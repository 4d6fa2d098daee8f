"""What a gang is at a moment: how many of it are placed, whether that is enough, and the words Volcano has for it.

Pure arithmetic on the states of its pods. "Ready" means that the gang has what it needs to run, not that it runs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.cluster.scheduler.amounts import PODS, Amounts, total
from trainmaster.cluster.scheduler.snapshot import Group, Pod, State

# States that hold a place and count for the gang.
ALLOCATED = frozenset({State.BOUND, State.RUNNING})
PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"


@dataclass(slots=True, eq=False)
class Gang:
    """One group and its pods while a decision is made."""

    group: Group
    pods: list[Pod]
    priority: int = 0
    placed: dict[str, str] = field(default_factory=dict)      # by UID: where this decision puts them for good
    found: dict[str, str] = field(default_factory=dict)       # where they would have gone, had the others fitted
    errors: dict[str, str] = field(default_factory=dict)      # why they fit nowhere
    obstacles: Mapping[str, int] = field(default_factory=dict)   # of the first of those: obstacle -> number of nodes
    refused: str = ""                                         # why it may not even make its pods
    promised: Mapping[str, int] = field(default_factory=dict)    # to one that was let in, and not given yet
    entered: bool = False                                     # it may, from now on
    leaving: bool = False                                     # pods of it are sent away: it gets nothing now
    held: bool = False                                        # waits for room that is being given back

    @property
    def least(self) -> int:
        """A group that asks for nobody is a group of one: anything else would be over before it began."""
        return max(self.group.least, 1)

    @property
    def waiting(self) -> list[Pod]:
        """Pods that want a place, in the order in which they get one: those that ask for something first."""
        there = [pod for pod in self.pods if pod.state is State.PENDING and not pod.gated
                 and pod.uid not in self.placed]
        return sorted(there, key=lambda pod: (pod.best_effort, -pod.priority, pod.order, pod.created, pod.uid))

    def ready(self, extra: Iterable[Pod] = ()) -> bool:
        """Whether enough members hold a place, with those in `extra`."""
        counted = [pod for pod in self.pods
                   if pod.state in ALLOCATED or pod.state is State.SUCCEEDED or pod.uid in self.placed]
        counted += [pod for pod in extra if pod.uid not in self.placed]
        if len(counted) < self.least:
            return False
        roles = Counter(pod.role for pod in counted)
        return all(roles[role] >= least for role, least in self.minima.items())

    @property
    def needed(self) -> list[Pod]:
        """Those of the waiting that must get a place for the gang to be ready."""
        held = sum(1 for pod in self.pods if pod.state in ALLOCATED or pod.state is State.SUCCEEDED
                   or pod.uid in self.placed)
        return self.waiting[:max(self.least - held, 0)]

    @property
    def minima(self) -> Mapping[str, int]:
        """Per role; they count only as far as the group as a whole asks for so many."""
        roles = self.group.roles
        return roles if roles and self.group.least >= sum(roles.values()) else {}

    @property
    def valid(self) -> int:
        """Pods that can be part of the gang: a failed one cannot."""
        return sum(1 for pod in self.pods if pod.state not in {State.FAILED, State.RELEASING} and not pod.gated)

    @property
    def complete(self) -> bool:
        """Whether there are enough pods to try at all."""
        if self.valid < self.least:
            return False
        roles = Counter(pod.role for pod in self.pods if pod.state is not State.FAILED and not pod.gated)
        return all(roles[role] >= least for role, least in self.minima.items())

    @property
    def allocated(self) -> dict[str, int]:
        held = total(pod.requests for pod in self.pods if pod.state in ALLOCATED or pod.uid in self.placed)
        held.pop(PODS, None)
        return held

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
        running = sum(1 for pod in self.pods if pod.state in ALLOCATED)
        return 0 < running < self.least


def share(held: Amounts, cluster: Amounts) -> float:
    """The dominant share: of the resource of which it has the largest part."""
    return max((amount / cluster[name] for name, amount in held.items() if cluster.get(name)), default=0.0)


def phase(gang: Gang, *, unschedulable: bool) -> str:
    """As the scheduler writes it at the end of a decision."""
    group, pods = gang.group, gang.pods
    if any(pod.state is State.RUNNING for pod in pods) and unschedulable:
        return UNKNOWN
    done = sum(1 for pod in pods if pod.state in {State.SUCCEEDED, State.FAILED})
    scheduled = done + sum(1 for pod in pods if pod.state in ALLOCATED or pod.uid in gang.placed
                           or (pod.state is State.RELEASING and pod.node))
    if scheduled >= gang.least:
        return COMPLETED if scheduled == done else RUNNING
    return INQUEUE if group.phase == INQUEUE and not gang.refused else PENDING


def detail(gang: Gang) -> str:
    """`pod group is not ready, 2 Allocated, 4 Pending, 6 minAvailable; Pending: 1 Schedulable, 3 Unschedulable. …`"""
    counts = Counter(_told(gang, pod) for pod in gang.pods)
    parts = sorted([f"{count} {state}" for state, count in counts.items()] + [f"{gang.group.least} minAvailable"])
    ready = "ready" if gang.ready() else "not ready"
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
