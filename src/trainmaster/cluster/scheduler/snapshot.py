"""Nodes, pods, groups and queues as decisions see them, kept up to date change by change.

Each object is read once, when it changes. A decision on a cluster of 10,000 pods then looks at the pods that wait and
at the nodes, never at all pods; what it tries out goes into a `Trial`, so the snapshot itself only ever shows what is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from trainmaster.api.groups import T9K_ROLE, TASK_SPEC
from trainmaster.api.meta import Key, Object, being_deleted, key_of, labels_of, metadata, name_of, namespace_of, uid_of
from trainmaster.cluster.scheduler.amounts import ONE, PODS, Amounts, amounts, requests
from trainmaster.cluster.scheduler.demands import NOT_READY, Demands, Taint, demands_of
from trainmaster.cluster.scheduler.limits import Limit
from trainmaster.cluster.scheduler.selecting import Selector, label_selector
from trainmaster.cluster.scheduler.volumes import Storage

PREEMPTABLE = "volcano.sh/preemptable"


class State(StrEnum):
    """Of a pod, in the words that Volcano counts with."""

    PENDING = "Pending"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Which group: the dialect it is written in, and its address."""

    dialect: str
    key: Key

    def __str__(self) -> str:
        return str(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    key: Key
    uid: str
    labels: Mapping[str, str]
    node: str
    state: State
    requests: Amounts
    demands: Demands
    scheduler: str
    group: GroupKey | None
    role: str
    priority: int
    created: str
    order: tuple[int, str]            # index at the end of the name, then the name
    gated: bool
    preempts: bool
    preemptable: bool
    batch: bool                       # runs to an end: packed together, where services are spread
    nominated: str                    # the node on which others make room for it
    raw: Object

    @property
    def best_effort(self) -> bool:
        return len(self.requests) == 1

    @property
    def placed(self) -> bool:
        """Takes room on a node."""
        return bool(self.node) and self.state not in {State.SUCCEEDED, State.FAILED}


@dataclass(slots=True, eq=False)
class Node:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    offers: dict[str, int]
    idle: dict[str, int]                                    # what is offered and not taken
    releasing: dict[str, int] = field(default_factory=dict)  # taken by pods that are on their way out
    pods: dict[str, Pod] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A gang: how many must start together, and where it stands. `least` is what the phase is judged by."""

    key: GroupKey
    uid: str
    least: int
    roles: Mapping[str, int]
    queue: str
    priority_class: str
    priority: int                     # where the dialect writes a number; else the class tells
    wanted: Amounts | None            # minResources
    phase: str
    created: str
    raw: Object
    patience: float | None = None     # seconds after which it is let in and has room kept for it (Volcano's sla)
    tried_since: str = ""             # scheduler-plugins' scheduleStartTime


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    name: str
    weight: int = 1
    priority: int = 0
    capability: Amounts | None = None
    deserved: Amounts | None = None
    guarantee: Amounts | None = None
    reclaimable: bool = True
    open: bool = True
    parent: str = ""
    created: str = ""
    levels: tuple[tuple[str, float], ...] = ()      # names and weights from the top down, for hierarchical shares
    nodes: Selector | None = None     # the only nodes for its pods (T9k); None: all
    spaces: Selector | None = None    # the only namespaces whose groups it takes (T9k); None: all
    longest: float = 0.0              # seconds that a pod may be there (T9k); 0: for ever
    fifo: bool = False                # strictly in order: a job that cannot start holds those behind it
    raw: Object | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """Pods of one namespace of which only so many may be sent away now."""

    namespace: str
    selector: Selector | None
    allowed: int

    def covers(self, pod: "Pod") -> bool:
        return self.selector is not None and pod.key.namespace == self.namespace and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class Claim:
    """Room that a running gang lost with a member and has first call on, until then (R7), or that was made for a pod of
    no group."""

    group: GroupKey | None
    node: str
    amounts: Amounts
    until: float


class Snapshot:
    """What is, as far as the watches have told."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.waiting: dict[str, dict[str, Pod]] = {}               # by scheduler name, by UID: pods without a node
        self.groups: dict[GroupKey, Group] = {}
        self.members: dict[GroupKey, dict[str, Pod]] = {}
        self.queues: dict[tuple[str, str], Queue] = {}             # by dialect and name
        self.classes: dict[str, Object] = {}                       # PriorityClasses
        self.spaces: dict[str, Mapping[str, str]] = {}             # namespaces and their labels
        self.budgets: dict[Key, Budget] = {}                       # PodDisruptionBudgets
        self.limits: dict[Key, Limit] = {}                         # ResourceQuotas
        self.claims: list[Claim] = []
        self.censuses: dict[GroupKey, dict[Selector | None, object]] = {}      # kept here by `census`
        self.resting: dict[GroupKey, object] = {}                  # kept here by `resting`
        self.storage = Storage()
        self._homeless: dict[str, dict[str, Pod]] = {}             # pods on nodes that we do not know (yet)
        self.verdicts: dict[Demands, dict[str, str]] = {}          # what nodes are by nature, for these demands
        self.choosy: dict[str, Pod] = {}                           # placed pods that keep others away
        self.users: dict[Key, dict[str, Pod]] = {}                 # of claims: placed pods, by UID

    def put_node(self, raw: Object) -> None:
        name = name_of(raw)
        there = self.nodes.pop(name, None)
        pods = there.pods if there else self._homeless.pop(name, {})
        node = read_node(raw)
        node.pods = {}
        self.nodes[name] = node
        for pod in pods.values():
            _take(node, pod)
        self._forget_verdicts(name)

    def drop_node(self, name: str) -> None:
        there = self.nodes.pop(name, None)
        if there and there.pods:
            self._homeless[name] = there.pods
        self._forget_verdicts(name)

    def _forget_verdicts(self, name: str) -> None:
        for known in self.verdicts.values():
            known.pop(name, None)
        if len(self.verdicts) > 1000:
            self.verdicts.clear()

    def put_pod(self, pod: Pod) -> None:
        self.drop_pod(pod.uid)
        self.pods[pod.uid] = pod
        if pod.group is not None:
            self.members.setdefault(pod.group, {})[pod.uid] = pod
            self.censuses.pop(pod.group, None)
        if pod.placed:
            node = self.nodes.get(pod.node)
            if node is not None:
                _take(node, pod)
            else:
                self._homeless.setdefault(pod.node, {})[pod.uid] = pod
            if pod.demands.away:
                self.choosy[pod.uid] = pod
            for name in pod.demands.claims:
                self.users.setdefault(Key(pod.key.namespace, name), {})[pod.uid] = pod
        elif pod.state is State.PENDING:
            self.waiting.setdefault(pod.scheduler, {})[pod.uid] = pod

    def drop_pod(self, uid: str) -> Pod | None:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return None
        if pod.group is not None:
            self.censuses.pop(pod.group, None)
            of_group = self.members[pod.group]
            del of_group[uid]
            if not of_group:
                del self.members[pod.group]
        if pod.placed:
            node = self.nodes.get(pod.node)
            if node is not None:
                _give(node, pod)
            elif pod.node in self._homeless:
                self._homeless[pod.node].pop(uid, None)
            self.choosy.pop(uid, None)
            for name in pod.demands.claims:
                users = self.users[Key(pod.key.namespace, name)]
                del users[uid]
                if not users:
                    del self.users[Key(pod.key.namespace, name)]
        self.waiting.get(pod.scheduler, {}).pop(uid, None)
        return pod

    def priority_of(self, group: Group) -> int:
        """Of the class it names; without one, or with one that is not there, of the class for all, or zero."""
        if group.priority:
            return group.priority
        named = self.classes.get(group.priority_class)
        if named is None:
            named = next((each for each in self.classes.values() if each.get("globalDefault")), None)
        return int((named or {}).get("value") or 0)

    def pods_of(self, group: GroupKey) -> Iterable[Pod]:
        return self.members.get(group, {}).values()


def _take(node: Node, pod: Pod) -> None:
    node.pods[pod.uid] = pod
    for name, amount in pod.requests.items():
        node.idle[name] = node.idle.get(name, 0) - amount
        if pod.state is State.RELEASING:
            node.releasing[name] = node.releasing.get(name, 0) + amount


def _give(node: Node, pod: Pod) -> None:
    del node.pods[pod.uid]
    for name, amount in pod.requests.items():
        node.idle[name] = node.idle.get(name, 0) + amount
        if pod.state is State.RELEASING:
            node.releasing[name] = node.releasing.get(name, 0) - amount


def read_budget(raw: Object) -> Budget:
    allowed = int((raw.get("status") or {}).get("disruptionsAllowed") or 0)
    return Budget(namespace_of(raw), label_selector((raw.get("spec") or {}).get("selector")), allowed)


def read_node(raw: Object) -> Node:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    offers = amounts(status.get("allocatable") or status.get("capacity"))
    offers.setdefault(PODS, 110 * ONE)
    taints = [(str(each.get("key") or ""), str(each.get("value") or ""), str(each.get("effect") or ""))
              for each in spec.get("taints") or ()]
    ready = any(each.get("type") == "Ready" and each.get("status") == "True"
                for each in status.get("conditions") or ())
    if not ready and all(key != NOT_READY[0] for key, _value, _effect in taints):
        taints.append(NOT_READY)      # what the node controller of a real cluster would put there
    return Node(name=name_of(raw), labels=labels_of(raw), taints=tuple(taints),
                unschedulable=bool(spec.get("unschedulable")), offers=offers, idle=dict(offers))


def read_pod(raw: Object, group: GroupKey | None, node: str = "") -> Pod:
    """`node` is where we bound it ourselves, while the watch does not show it yet."""
    spec, meta = raw["spec"], metadata(raw)
    annotations = meta.get("annotations") or {}
    node = spec.get("nodeName") or node
    labels = labels_of(raw)
    return Pod(
        key=key_of(raw), uid=uid_of(raw), labels=labels, node=node, state=_state(raw, node), requests=requests(raw),
        demands=demands_of(raw), scheduler=spec.get("schedulerName") or "default-scheduler", group=group,
        role=annotations.get(TASK_SPEC) or labels.get(TASK_SPEC) or labels.get(T9K_ROLE) or "",
        priority=int(spec.get("priority") or 0), created=str(meta.get("creationTimestamp") or ""),
        order=_order(name_of(raw)), gated=bool(spec.get("schedulingGates")),
        preempts=spec.get("preemptionPolicy") != "Never", preemptable=annotations.get(PREEMPTABLE) != "false",
        batch=group is not None or spec.get("restartPolicy", "Always") != "Always",
        nominated=str((raw.get("status") or {}).get("nominatedNodeName") or ""), raw=raw,
    )


def on_node(pod: Pod, node: str) -> Pod:
    """The same pod, bound."""
    return replace(pod, node=node, state=_state(pod.raw, node))


def _state(raw: Object, node: str) -> State:
    phase = (raw.get("status") or {}).get("phase")
    if phase == "Succeeded":
        return State.SUCCEEDED
    if phase == "Failed":
        return State.FAILED
    if being_deleted(raw):
        return State.RELEASING
    if phase == "Running":
        return State.RUNNING
    return State.BOUND if node else State.PENDING


def _order(name: str) -> tuple[int, str]:
    index = name.rpartition("-")[2]
    return (int(index) if index.isascii() and index.isdigit() else 0, name)
