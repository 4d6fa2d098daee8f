"""Whom to send away so that a pod, or a whole gang, can start: as few as possible, never for nothing.

Victims come in units. A pod whose gang can spare it is a unit of its own; otherwise the whole gang is one, since half
a gang holds room and does nothing. Nobody is sent away unless all that was asked for then fits. Those whom a disruption
budget protects come last: as with kube-scheduler, a budget gives way only where nobody else could make room.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass

from trainmaster.cluster.scheduler import filters
from trainmaster.cluster.scheduler.amounts import fits, plus
from trainmaster.cluster.scheduler.boards import choose
from trainmaster.cluster.scheduler.census import ALLOCATED
from trainmaster.cluster.scheduler.snapshot import GroupKey, Node, Pod
from trainmaster.cluster.scheduler.trial import Trial

CRITICAL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that go together."""

    pods: tuple[Pod, ...]

    @property
    def cost(self) -> tuple[int, int, str]:
        """What is sent away first: the least important, the smallest, the youngest."""
        return (max(pod.priority for pod in self.pods), len(self.pods),
                "".join(chr(0x10FFFF - ord(sign)) for sign in self.pods[0].created) + self.pods[0].uid)


def breaches(trial: Trial, pods: Iterable[Pod]) -> int:
    """How many of these pods could not be sent away without breaking a budget, those that go already counted."""
    budgets = trial.snapshot.budgets
    if not budgets:
        return 0
    left = {key: budget.allowed - sum(budget.covers(each) for each in trial.going) for key, budget in budgets.items()}
    broken = 0
    for pod in pods:
        covering = [key for key, budget in budgets.items() if budget.covers(pod)]
        broken += any(left[key] <= 0 for key in covering)
        for key in covering:
            left[key] -= 1
    return broken


def for_pod(trial: Trial, pod: Pod,
            allowed: Callable[[Pod], bool]) -> Generator[None, None, tuple[Node, list[Pod]] | None]:
    """The node on which a pod fits at the least cost, and who must go for it; None if there is none."""
    best: tuple[tuple[object, ...], Node, list[Pod]] | None = None
    for node in trial.snapshot.nodes.values():
        if filters.by_nature(pod.demands, node):
            continue
        victims = _on(trial, pod, node, allowed)
        yield
        if victims is None:
            continue
        cost = (breaches(trial, victims), max((each.priority for each in victims), default=-1), len(victims), node.name)
        if best is None or cost < best[0]:
            best = (cost, node, victims)
    return None if best is None else (best[1], best[2])


def for_gang(trial: Trial, members: Sequence[Pod],
             allowed: Callable[[Pod], bool]) -> Generator[None, None, list[Pod] | None]:
    """Place all these pods, sending others away where needed: the victims, or None and nothing changed."""
    mark = trial.mark()
    victims: list[Pod] = []
    for pod in members:
        yield
        there = choose(trial, pod, members)
        if there is not None:
            trial.place(pod, there.name)
            continue
        found = yield from for_pod(trial, pod, lambda other: other.uid not in trial.placed and allowed(other))
        if found is None:
            trial.back(mark)
            return None
        node, going = found
        for victim in going:
            trial.evict(victim)
        victims += going
        trial.place(pod, node.name)
    return victims


def units(trial: Trial, pods: Iterable[Pod]) -> list[Unit]:
    """The pods as they would go: alone as long as the gang can spare one more, then with the whole gang."""
    found: list[Unit] = []
    alone: Counter[GroupKey] = Counter()
    whole: set[GroupKey] = set()
    for pod in sorted(pods, key=lambda each: (each.priority, each.created, each.uid)):
        group = trial.snapshot.groups.get(pod.group) if pod.group is not None else None
        if group is None:
            found.append(Unit((pod,)))
        elif group.key not in whole:
            there = [other for other in trial.snapshot.pods_of(group.key)
                     if other.state in ALLOCATED and not trial.gone(other)]
            if len(there) - alone[group.key] > max(group.least, 1):
                alone[group.key] += 1
                found.append(Unit((pod,)))
            else:
                whole.add(group.key)
                found.append(Unit(tuple(sorted(there, key=lambda each: each.order))))
    return sorted(found, key=lambda unit: unit.cost)


def _on(trial: Trial, pod: Pod, node: Node, allowed: Callable[[Pod], bool]) -> list[Pod] | None:
    """Who must go from one node for a pod to fit there."""
    there = [other for other in node.pods.values() if other.state in ALLOCATED and not trial.gone(other)
             and allowed(other)]
    mark = trial.mark()
    chosen: list[Unit] = []
    for unit in sorted(units(trial, there), key=lambda unit: breaches(trial, unit.pods) > 0):
        if not all(allowed(each) for each in unit.pods):
            continue
        if not filters.obstacles(trial, pod, node):
            break
        for each in unit.pods:
            if not trial.gone(each):
                trial.evict(each)
        chosen.append(unit)
    if filters.obstacles(trial, pod, node):
        trial.back(mark)
        return None
    trial.back(mark)
    # The order was by importance, not by size: those that turned out not to be needed stay, the most important first.
    others_matter = pod.demands.ports or pod.demands.social or pod.demands.claims
    for unit in sorted(chosen, key=lambda each: each.cost, reverse=True):
        rest = [each for each in chosen if each is not unit]
        freed: dict[str, int] = {}
        for other in rest:
            for each in other.pods:
                freed = plus(freed, each.requests if each.node == node.name else {})
        if not others_matter and fits(pod.requests, plus(trial.idle(node), freed)):
            chosen = rest
    victims = {each.uid: each for unit in chosen for each in unit.pods}
    return list(victims.values()) or None
