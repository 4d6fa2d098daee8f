"""Pods and nodes in, bindings and reasons out. Pure: the same snapshot gives the same decision.

This is the simple binder: pod by pod, in the order of their creation, onto the least loaded node that fits. Whole gangs
come with their own module; they will use the same `fits`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from trainmaster.api import quantity
from trainmaster.api.meta import Key, Object, being_deleted, key_of, labels_of, metadata, name_of, uid_of

Amounts = dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class Binding:
    """This pod, told by UID so that a namesake is never bound in its place, goes to that node."""

    pod: Key
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """This pod fits nowhere; the message is the one kube-scheduler writes."""

    pod: Key
    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    bindings: tuple[Binding, ...] = ()
    waiting: tuple[Waiting, ...] = ()


@dataclass(slots=True)
class _Room:
    """A node while we decide: what it offers, and what is taken, by pods that run and by those just placed."""

    node: Object
    offered: Amounts
    taken: Amounts = field(default_factory=dict)

    def lacks(self, wanted: Amounts) -> list[str]:
        return [
            name for name, amount in wanted.items()
            if amount and self.taken.get(name, Fraction(0)) + amount > self.offered.get(name, Fraction(0))
        ]

    def take(self, wanted: Amounts) -> None:
        for name, amount in wanted.items():
            self.taken[name] = self.taken.get(name, Fraction(0)) + amount

    @property
    def load(self) -> Fraction:
        shares = [self.taken.get(name, Fraction(0)) / offered for name, offered in self.offered.items() if offered]
        return max(shares, default=Fraction(0))


def decide(nodes: Iterable[Object], pods: Iterable[Object], scheduler: str = "default-scheduler") -> Decision:
    """Place every pod that waits for this scheduler, or say why not."""
    rooms = {name_of(node): _Room(node, amounts(node.get("status", {}).get("allocatable", {}))) for node in nodes}
    unbound: list[Object] = []
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node in rooms and not _ended(pod):
            rooms[node].take(requests(pod))
        elif not node and not _ended(pod) and not being_deleted(pod) and _wants(pod, scheduler):
            unbound.append(pod)
    unbound.sort(key=lambda pod: (metadata(pod).get("creationTimestamp") or "", key_of(pod)))

    bindings: list[Binding] = []
    waiting: list[Waiting] = []
    for pod in unbound:
        wanted = requests(pod)
        obstacles = {name: _obstacles(pod, wanted, room) for name, room in sorted(rooms.items())}
        fitting = [name for name, found in obstacles.items() if not found]
        if fitting:
            best = min(fitting, key=lambda name: (rooms[name].load, name))
            rooms[best].take(wanted)
            bindings.append(Binding(key_of(pod), uid_of(pod), best))
        else:
            waiting.append(Waiting(key_of(pod), uid_of(pod), message(obstacles)))
    return Decision(tuple(bindings), tuple(waiting))


def amounts(quantities: Mapping[str, str]) -> Amounts:
    return {name: quantity.parse(text) for name, text in quantities.items()}


def requests(pod: Object) -> Amounts:
    """What a pod needs at once: its containers together, or its hungriest init container; and one place."""
    total: Amounts = {}
    for container in pod["spec"].get("containers", ()):
        for name, amount in _container_requests(container).items():
            total[name] = total.get(name, Fraction(0)) + amount
    for container in pod["spec"].get("initContainers") or ():
        for name, amount in _container_requests(container).items():
            total[name] = max(total.get(name, Fraction(0)), amount)
    for name, amount in amounts(pod["spec"].get("overhead") or {}).items():
        total[name] = total.get(name, Fraction(0)) + amount
    return {**total, "pods": Fraction(1)}


def message(obstacles: Mapping[str, Sequence[str]]) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`"""
    if not obstacles:
        return "no nodes available to schedule pods"
    counts = Counter(reason for reasons in obstacles.values() for reason in reasons)
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items(), key=lambda item: item[0]))
    return f"0/{len(obstacles)} nodes are available: {told}."


def _container_requests(container: Object) -> Amounts:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _obstacles(pod: Object, wanted: Amounts, room: _Room) -> list[str]:
    if room.node.get("spec", {}).get("unschedulable"):
        return ["node(s) were unschedulable"]
    if not _ready(room.node):
        return ["node(s) were not ready"]
    selector = pod["spec"].get("nodeSelector") or {}
    if not selector.items() <= labels_of(room.node).items():
        return ["node(s) didn't match Pod's node affinity/selector"]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in room.lacks(wanted)]


def _ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _wants(pod: Object, scheduler: str) -> bool:
    return bool(pod["spec"].get("schedulerName", "default-scheduler") == scheduler)
