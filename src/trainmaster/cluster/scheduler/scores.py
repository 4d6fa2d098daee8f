"""Which of the nodes a pod can go to is the best: whole numbers, the higher the better, ties go by name.

Training is packed, so that large free pieces stay for the next gang; services are spread, so that one node lost is not
a service lost. Wishes (preferred affinities, soft taints and spreads) weigh more than either, as users expect.
"""

from collections.abc import Callable, Sequence

from trainmaster.cluster.scheduler.amounts import PODS
from trainmaster.cluster.scheduler.snapshot import Node, Pod
from trainmaster.cluster.scheduler.trial import Trial

FULL = 1000


def best(trial: Trial, pod: Pod, nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else min(nodes, key=_rank(trial, pod))


def ranked(trial: Trial, pod: Pod, nodes: Sequence[Node]) -> list[Node]:
    """All of them, the best first."""
    return sorted(nodes, key=_rank(trial, pod))


def _rank(trial: Trial, pod: Pod) -> Callable[[Node], tuple[int, str]]:
    wishes = bool(pod.demands.node_wishes or pod.demands.pod_wishes
                  or any(not spread.hard for spread in pod.demands.spreads))
    return lambda node: (-score(trial, pod, node, wishes=wishes), node.name)


def score(trial: Trial, pod: Pod, node: Node, *, wishes: bool = True) -> int:
    idle, offers = trial.idle(node), node.offers
    shares = count = 0
    for name, amount in pod.requests.items():
        offered = offers.get(name, 0)
        if offered and (name != PODS or pod.best_effort):
            shares += FULL * (offered - idle.get(name, 0) + amount) // offered
            count += 1
    fullness = shares // count if count else 0
    packed = pod.batch and not pod.best_effort      # pods that ask for nothing would all pile up on one node
    found = fullness if packed else FULL - fullness
    if any(effect == "PreferNoSchedule" and not any(each.covers((key, value, effect))
                                                    for each in pod.demands.tolerations)
           for key, value, effect in node.taints):
        found -= 3 * FULL
    return found + 20 * _wishes(trial, pod, node) if wishes else found


def _wishes(trial: Trial, pod: Pod, node: Node) -> int:
    """At most some hundreds: weights go from 1 to 100."""
    found = sum(weight for weight, term in pod.demands.node_wishes if term.matches(node.name, node.labels))
    for weight, near in pod.demands.pod_wishes:
        if trial.neighbours(near).get(node.labels.get(near.topology, "\0")):
            found += weight
    for spread in pod.demands.spreads:
        if not spread.hard:
            found -= 10 * trial.neighbours(spread.term).get(node.labels.get(spread.term.topology, "\0"), 0)
    return found
