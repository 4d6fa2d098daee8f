"""Why a pod cannot go to a node, in the words of kube-scheduler: an empty answer means that it can.

The order is that of kube-scheduler, and so is the rule that a node is told about by the first thing in its way only
(amounts excepted: all that it lacks are named). What a node is by nature (labels, taints) is remembered for all pods
with the same demands; what changes with every placement is asked each time.
"""

from collections import Counter
from collections.abc import Mapping

from trainmaster.cluster.scheduler.amounts import PODS, Amounts, fits, lacking, minus
from trainmaster.cluster.scheduler.demands import Demands, PodTerm, Spread, chosen, untolerated
from trainmaster.cluster.scheduler.snapshot import Node, Pod
from trainmaster.cluster.scheduler.trial import Trial, clash
from trainmaster.cluster.scheduler.volumes import IN_USE

UNSCHEDULABLE = "node(s) were unschedulable"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
PORTS = "node(s) didn't have free ports for the requested pod ports"
NEAR = "node(s) didn't match pod affinity rules"
AWAY = "node(s) didn't match pod anti-affinity rules"
KEPT_AWAY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"
HELD = "node(s) were held for a gang that was here before, or for a more important pod"


def candidates(trial: Trial, pod: Pod) -> list[Node]:
    """The nodes a pod can go to, in the order in which they are known."""
    snapshot, demands, wanted = trial.snapshot, pod.demands, pod.requests
    if not demands.social and not trial.holds:
        known = trial.refusals.get(_sort(trial, pod))
        if known is not None and known[0] == trial.growth:
            return []
    if demands.claims and snapshot.storage.trouble(pod.key.namespace, demands.claims):
        return []
    verdicts = snapshot.verdicts.setdefault(demands, {})
    social = demands.social or trial.hermits or bool(demands.ports) or trial.holds
    found = []
    for name, node in snapshot.nodes.items():
        verdict = verdicts.get(name)
        if verdict is None:
            verdict = verdicts[name] = by_nature(demands, node)
        if not verdict and fits(wanted, trial.idle(node)) and not (social and _in_company(trial, pod, node)) \
                and not (demands.claims and _stored_elsewhere(trial, pod, node)):
            found.append(node)
    return found


def refusal(trial: Trial, pod: Pod) -> Mapping[str, int]:
    """For a pod without candidates: how many nodes there are for each thing in its way."""
    key = _sort(trial, pod)
    known = trial.refusals.get(key)
    if known is not None and known[0] == trial.growth and not pod.demands.social:
        return known[1]
    counts: Counter[str] = Counter()
    for node in trial.snapshot.nodes.values():
        counts.update(obstacles(trial, pod, node))
    trial.refusals[key] = (trial.growth, counts)
    return counts


def obstacles(trial: Trial, pod: Pod, node: Node) -> list[str]:
    """Everything that is told about one node."""
    claims = pod.demands.claims
    if claims and (trouble := trial.snapshot.storage.trouble(pod.key.namespace, claims)):
        return [trouble]
    if nature := by_nature(pod.demands, node):
        return [nature]
    if pod.demands.ports and clash(pod.demands.ports, trial.taken_ports(node)):
        return [PORTS]
    if short := lacking(pod.requests, trial.idle(node)):
        return ["Too many pods" if name == PODS else f"Insufficient {name}" for name in short]
    if claims and (stored := _stored_elsewhere(trial, pod, node)):
        return [stored]
    return [found] if (found := _in_company(trial, pod, node)) else []


def by_nature(demands: Demands, node: Node) -> str:
    """What keeps pods with these demands off a node whatever else is there."""
    if node.unschedulable and not any(
            each.covers(("node.kubernetes.io/unschedulable", "", "NoSchedule")) for each in demands.tolerations):
        return UNSCHEDULABLE
    if (taint := untolerated(demands.tolerations, node.taints)) is not None:
        return f"node(s) had taint {{{taint[0]}: {taint[1]}}}, that the pod didn't tolerate"
    return "" if chosen(demands.node_selector, demands.node_terms, node.name, node.labels) else AFFINITY


def _stored_elsewhere(trial: Trial, pod: Pod, node: Node) -> str:
    if trial.in_use(pod):
        return IN_USE
    return trial.snapshot.storage.obstacle(pod.key.namespace, pod.demands.claims, node.name, node.labels, trial.stored,
                                           trial.kept)


def room_but_for(trial: Trial, pod: Pod, node: Node, held: Amounts) -> bool:
    return fits(pod.requests, minus(trial.idle(node), held))


def _sort(trial: Trial, pod: Pod) -> object:
    """Pods of one sort are refused for the same reasons. Where somebody keeps others away, it matters who they are."""
    who = (pod.key.namespace, frozenset(pod.labels.items())) if trial.hermits else None
    return (pod.demands, tuple(pod.requests.items()), trial.future, who)


def _in_company(trial: Trial, pod: Pod, node: Node) -> str:
    """What other pods have against it."""
    demands = pod.demands
    if demands.ports and clash(demands.ports, trial.taken_ports(node)):
        return PORTS
    if trial.holds and (held := trial.claimed(node.name, pod.group)) and not room_but_for(trial, pod, node, held):
        return HELD
    for spread in demands.spreads:
        if spread.hard and (found := _uneven(trial, pod, node, spread)):
            return found
    if any(not _near(trial, pod, node, term) for term in demands.near):
        return NEAR
    if any(_neighbours(trial, node, term) for term in demands.away):
        return AWAY
    if not trial.hermits:
        return ""
    return KEPT_AWAY if any(node.labels.get(topology) in domains
                            for topology, domains in trial.taboo(pod).items()) else ""


def _neighbours(trial: Trial, node: Node, term: PodTerm) -> int:
    return trial.neighbours(term).get(node.labels.get(term.topology, "\0"), 0)


def _near(trial: Trial, pod: Pod, node: Node, term: PodTerm) -> bool:
    if term.topology not in node.labels:
        return False
    if _neighbours(trial, node, term):
        return True
    # The first of pods that want to be near each other has nobody to be near to.
    return not any(trial.neighbours(term).values()) and term.means(
        pod.key.namespace, pod.labels, trial.snapshot.spaces)


def _uneven(trial: Trial, pod: Pod, node: Node, spread: Spread) -> str:
    domain = node.labels.get(spread.term.topology)
    if domain is None:
        return UNLABELLED
    domains, fewest = trial.fewest(spread.term)
    there = trial.neighbours(spread.term).get(domain, 0)
    itself = int(spread.term.means(pod.key.namespace, pod.labels, trial.snapshot.spaces))
    return SPREAD if there + itself - (fewest if domains >= spread.least_domains else 0) > spread.skew else ""
