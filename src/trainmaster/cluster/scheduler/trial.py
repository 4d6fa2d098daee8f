"""A trial: pods put on nodes, and taken off, on top of what is; everything can be taken back to any mark.

This is what makes decisions whole or nothing: a gang is tried member by member, and if one finds no place, all of it is
undone before the next job is looked at. Nothing of the snapshot is changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainmaster.api.meta import Key
from trainmaster.cluster.scheduler.amounts import Amounts, plus
from trainmaster.cluster.scheduler.demands import ANY_ADDRESS, PodTerm, Port
from trainmaster.cluster.scheduler.snapshot import Claim, GroupKey, Node, Pod, Snapshot, State

Taboo = Mapping[str, set[str]]      # topologies, and which of their domains


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done: a pod put on a node, or (`away`) a running one taken off."""

    pod: Pod
    node: str
    away: bool = False
    claim: Claim | None = None      # that of its gang, which it used


class Trial:
    """What would be, if what was tried so far were done."""

    def __init__(self, snapshot: Snapshot, claims: Iterable[Claim] = ()) -> None:
        self.snapshot = snapshot
        self.steps: list[Step] = []
        self.placed: dict[str, str] = {}                       # pod UID -> node
        self.growth = 0                                        # counts what made room: cached refusals end with it
        self.refusals: dict[object, tuple[int, Mapping[str, int]]] = {}
        self.changes: list[str] = []                           # nodes, in the order in which they changed
        self.boards: dict[object, object] = {}                 # kept here by `boards`, for as long as the trial lasts
        self.future = False                                    # count what is on its way out as free
        self.stored: dict[Key, str] = {}                       # claims of pods that were placed -> node of the first
        self.kept: dict[str, Key] = {}                         # volumes that are there -> claims they are for then
        self._idle: dict[str, dict[str, int]] = {}
        self._gone: dict[str, Pod] = {}
        self._neighbours: dict[PodTerm, dict[str, int]] = {}
        self._fewest: dict[PodTerm, tuple[int, int, int]] = {}  # state, domains, pods in the emptiest one
        self._hermits = 0                                      # pods that keep others away, of those that were placed
        self._taboo: tuple[str, int, Taboo] = ("", 0, {})
        self._claims = list(claims)
        if snapshot.storage.chosen:
            self._keep_for_the_chosen()

    def idle(self, node: Node) -> Mapping[str, int]:
        there = self._idle.get(node.name, node.idle)
        return plus(there, node.releasing) if self.future and node.releasing else there

    def claimed(self, node: str, group: GroupKey | None) -> Amounts | None:
        """What is held on a node for others than this group."""
        found = [claim.amounts for claim in self._claims if claim.node == node and claim.group != group]
        if not found:
            return None
        held: dict[str, int] = {}
        for amounts in found:
            held = plus(held, amounts)
        return held

    @property
    def holds(self) -> bool:
        return bool(self._claims)

    def hold(self, claims: Iterable[Claim]) -> None:
        """Keep room for somebody from here on."""
        self._claims.extend(claims)

    def in_use(self, pod: Pod) -> bool:
        """Whether another pod has a claim of this one that is for one pod alone."""
        keys = [Key(pod.key.namespace, name) for name in pod.demands.claims]
        return any(key in self.stored or any(map(self._is_there, self.snapshot.users.get(key, {}).values()))
                   for key in keys if self.snapshot.storage.exclusive(key))

    def _is_there(self, pod: Pod) -> bool:
        return pod.uid not in self._gone and not (self.future and pod.state is State.RELEASING)

    def place(self, pod: Pod, node: str) -> None:
        self._change(node, pod, -1)
        self.placed[pod.uid] = node
        claim = next((each for each in self._claims if each.group == pod.group and each.node == node), None)
        if claim is not None:      # a member that comes back
            self._claims.remove(claim)
        self._store(pod, node)
        self._hermits += bool(pod.demands.away)
        self.steps.append(Step(pod, node, claim=claim))

    def evict(self, pod: Pod) -> None:
        self._change(pod.node, pod, 1)
        self._gone[pod.uid] = pod
        self.growth += 1
        self.steps.append(Step(pod, pod.node, away=True))

    def mark(self) -> int:
        return len(self.steps)

    def back(self, mark: int) -> list[Step]:
        """Undo everything since the mark; what was undone, in the order in which it was done."""
        undone = self.steps[mark:]
        for step in reversed(undone):
            self._change(step.node, step.pod, -1 if step.away else 1)
            if step.away:
                del self._gone[step.pod.uid]
            else:
                del self.placed[step.pod.uid]
                self._hermits -= bool(step.pod.demands.away)
            if step.claim is not None:
                self._claims.append(step.claim)
        del self.steps[mark:]
        if undone:
            self.growth += 1
            if self.stored:
                self._store_again()
        return undone

    def _store_again(self) -> None:
        self.stored, self.kept = {}, {}
        self._keep_for_the_chosen()
        for step in self.steps:
            if not step.away:
                self._store(step.pod, step.node)

    def _store(self, pod: Pod, name: str) -> None:
        """What the claims of a pod come to if it goes to a node."""
        claims, node = pod.demands.claims, self.snapshot.nodes.get(name)
        if not claims or node is None:
            return
        self.snapshot.storage.keep(pod.key.namespace, claims, name, node.labels, self.kept)
        for claim in claims:
            self.stored.setdefault(Key(pod.key.namespace, claim), name)

    def _keep_for_the_chosen(self) -> None:
        """The volumes of pods that are being bound, which the watches do not show yet."""
        storage = self.snapshot.storage
        for key, chosen in storage.chosen.items():
            if (node := self.snapshot.nodes.get(chosen.node)) is not None:
                storage.keep(key.namespace, (key.name,), node.name, node.labels, self.kept)

    @property
    def going(self) -> Iterable[Pod]:
        """Those who would be sent away."""
        return self._gone.values()

    def gone(self, pod: Pod) -> bool:
        return pod.uid in self._gone

    def taken_ports(self, node: Node) -> set[Port]:
        found = {port for pod in node.pods.values() if pod.uid not in self._gone for port in pod.demands.ports}
        for step in self.steps:
            if step.node == node.name and not step.away:
                found |= step.pod.demands.ports
        return found

    def neighbours(self, term: PodTerm) -> Mapping[str, int]:
        """How many pods that the term means are in each domain of its topology."""
        known = self._neighbours.get(term)
        if known is None:
            known = self._neighbours[term] = {}
            for node in self.snapshot.nodes.values():
                if not _counts(term, node):
                    continue
                known.setdefault(node.labels[term.topology], 0)
                for pod in node.pods.values():
                    if pod.uid not in self._gone:
                        self._count(known, term, pod, node, 1)
            for step in self.steps:
                if not step.away and _counts(term, self.snapshot.nodes[step.node]):
                    self._count(known, term, step.pod, self.snapshot.nodes[step.node], 1)
        return known

    def fewest(self, term: PodTerm) -> tuple[int, int]:
        """How many domains there are, and how many pods that the term means are in the emptiest of them."""
        state, domains, found = self._fewest.get(term, (-1, 0, 0))
        if state != len(self.changes):
            counts = self.neighbours(term)
            domains, found = len(counts), min(counts.values(), default=0)
            self._fewest[term] = (len(self.changes), domains, found)
        return domains, found

    @property
    def hermits(self) -> bool:
        """Whether anybody who has a place keeps others away."""
        return bool(self._hermits or self.snapshot.choosy)

    def taboo(self, pod: Pod) -> Taboo:
        """Where this pod may not go, because somebody there keeps it away."""
        uid, state, found = self._taboo
        if (uid, state) != (pod.uid, len(self.changes)):
            nodes = self.snapshot.nodes
            there = [(term, nodes.get(other.node)) for other in self.snapshot.choosy.values()
                     if not self.gone(other) for term in other.demands.away]
            if self._hermits:
                there += [(term, nodes.get(step.node)) for step in self.steps
                          if not step.away for term in step.pod.demands.away]
            domains: dict[str, set[str]] = {}
            for term, where in there:
                domain = where.labels.get(term.topology) if where is not None else None
                if domain is not None and term.means(pod.key.namespace, pod.labels, self.snapshot.spaces):
                    domains.setdefault(term.topology, set()).add(domain)
            found = domains
            self._taboo = (pod.uid, len(self.changes), found)
        return found

    def _change(self, name: str, pod: Pod, sign: int) -> None:
        node = self.snapshot.nodes.get(name)
        if node is None:
            return
        idle = self._idle.get(name)
        if idle is None:
            idle = self._idle[name] = dict(node.idle)
        self.changes.append(name)
        for resource, amount in pod.requests.items():
            idle[resource] = idle.get(resource, 0) + sign * amount
        for term, known in self._neighbours.items():
            if _counts(term, node):
                self._count(known, term, pod, node, -sign)

    def _count(self, known: dict[str, int], term: PodTerm, pod: Pod, node: Node, sign: int) -> None:
        if term.means(pod.key.namespace, pod.labels, self.snapshot.spaces) and not (
                term.within is not None and pod.state is State.RELEASING):
            domain = node.labels[term.topology]
            known[domain] = known.get(domain, 0) + sign


def _counts(term: PodTerm, node: Node) -> bool:
    """Whether the pods of a node count for a term at all."""
    return term.topology in node.labels and (
        term.within is None or term.within.covers(node.name, node.labels, node.taints))


def clash(wanted: Iterable[Port], taken: Iterable[Port]) -> bool:
    """Whether two pods cannot have these ports of one host at once."""
    there = list(taken)
    return any(number == other and protocol == kind and (address in (ANY_ADDRESS, where) or where == ANY_ADDRESS)
               for address, protocol, number in wanted for where, kind, other in there)
