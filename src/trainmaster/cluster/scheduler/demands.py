"""What a pod demands of the node it goes to, apart from amounts: read once, shared by all pods that demand the same.

The pods of one role differ in name and environment only. They get the very same `Demands`, so that an answer about a
node is worked out once for all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import orjson

from trainmaster.api.claims import claims_of
from trainmaster.api.meta import Object, labels_of, namespace_of
from trainmaster.cluster.scheduler.selecting import EVERYTHING, NodeTerm, Selector, label_selector, node_term

Port = tuple[str, str, int]      # address, protocol, number
ANY_ADDRESS = "0.0.0.0"          # noqa: S104  a value that is compared, nothing listens here
NOT_READY = ("node.kubernetes.io/not-ready", "", "NoSchedule")
Taint = tuple[str, str, str]     # key, value, effect


Spaces = Mapping[str, Mapping[str, str]]    # namespaces and their labels
NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: Taint) -> bool:
        key, value, effect = taint
        if self.effect and self.effect != effect:
            return False
        if self.operator == "Exists":
            return not self.key or self.key == key
        return self.key == key and self.value == value


@dataclass(frozen=True, slots=True)
class Within:
    """The nodes on which pods count for a spread."""

    selector: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None      # None: taints do not matter
    topologies: tuple[str, ...] = ()                       # labels that a node must have

    def covers(self, name: str, labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
        return (all(topology in labels for topology in self.topologies)
                and chosen(self.selector, self.terms, name, labels)
                and (self.tolerations is None or untolerated(self.tolerations, taints) is None))


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods near which, or away from which, a pod wants to be."""

    selector: Selector | None
    namespaces: frozenset[str]
    topology: str
    spaces: Selector | None = None        # namespaces by their labels, besides those that are named
    within: Within | None = None          # of a spread: where pods count, of which those on their way out do not

    def means(self, namespace: str, labels: Mapping[str, str], spaces: Spaces) -> bool:
        """Whether a pod is meant. `spaces` are the labels of the namespaces."""
        if self.selector is None or not self.selector.matches(labels):
            return False
        return namespace in self.namespaces or (
            self.spaces is not None and self.spaces.matches(spaces.get(namespace, NO_LABELS)))


@dataclass(frozen=True, slots=True)
class Spread:
    term: PodTerm
    skew: int
    hard: bool
    least_domains: int


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """Equal only to itself: `demands_of` gives equal pods the same one."""

    node_selector: Selector = EVERYTHING
    node_terms: tuple[NodeTerm, ...] | None = None
    node_wishes: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    ports: frozenset[Port] = frozenset()
    near: tuple[PodTerm, ...] = ()
    away: tuple[PodTerm, ...] = ()
    pod_wishes: tuple[tuple[int, PodTerm], ...] = ()
    spreads: tuple[Spread, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def social(self) -> bool:
        """Whether other pods matter for where it may go."""
        return bool(self.near or self.away or self.spreads)


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """The first taint that keeps a pod with these tolerations off a node."""
    return next((taint for taint in taints if taint[2] in {"NoSchedule", "NoExecute"}
                 and not any(each.covers(taint) for each in tolerations)), None)


def chosen(selector: Selector, terms: tuple[NodeTerm, ...] | None, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node is one of those that a pod asks for by selector and required affinity."""
    return selector.matches(labels) and (terms is None or any(term.matches(name, labels) for term in terms))


@lru_cache(maxsize=4096)
def narrowed(demands: Demands, nodes: Selector) -> Demands:
    """The same, and only on such nodes; the same object for the same question."""
    return replace(demands, node_selector=_both(demands.node_selector, nodes),
                   spreads=tuple(_narrowed(spread, nodes) for spread in demands.spreads))


def _narrowed(spread: Spread, nodes: Selector) -> Spread:
    within = spread.term.within
    if within is None:
        return spread
    return replace(spread, term=replace(spread.term, within=replace(within, selector=_both(within.selector, nodes))))


def _both(one: Selector, other: Selector) -> Selector:
    return Selector((*one.requirements, *other.requirements))


def demands_of(pod: Object) -> Demands:
    """The demands of a pod; pods that demand the same get the same object."""
    spec = pod["spec"]
    claims = claims_of(pod)
    affinity, spreads = spec.get("affinity") or None, spec.get("topologySpreadConstraints") or None
    # Labels and namespace count only where a term may be about the pod itself.
    self_named = [namespace_of(pod), labels_of(pod)] if affinity or spreads or claims else None
    essence = [spec.get("nodeSelector"), affinity, spec.get("tolerations"), _ports(spec), spreads, claims, self_named]
    return _read(orjson.dumps(essence, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=4096)
def _read(essence: bytes) -> Demands:
    selector, affinity, tolerations, ports, spreads, claims, self_named = orjson.loads(essence)
    namespace, labels = self_named or ("", {})
    affinity = affinity or {}
    nodes = affinity.get("nodeAffinity") or {}
    required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution")
    near, away = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    spreads = spreads or ()
    asked = Within(
        label_selector({"matchLabels": selector or {}}) or EVERYTHING,
        tuple(map(node_term, required.get("nodeSelectorTerms") or ())) if required else None,
        tuple(_toleration(each) for each in tolerations or ()),
        tuple(str(each.get("topologyKey") or "") for each in spreads if _hard(each)))
    return Demands(
        node_selector=asked.selector, node_terms=asked.terms,
        node_wishes=tuple((int(wish.get("weight") or 0), node_term(wish.get("preference") or {}))
                          for wish in nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or ()),
        tolerations=asked.tolerations or (),
        ports=frozenset((str(address), str(protocol), int(number)) for address, protocol, number in ports),
        near=_terms(near, namespace), away=_terms(away, namespace),
        pod_wishes=(*_wishes(near, namespace, 1), *_wishes(away, namespace, -1)),
        spreads=tuple(_spread(each, namespace, labels, asked) for each in spreads),
        claims=tuple(claims),
    )


def _ports(spec: Object) -> list[Port]:
    """The ports of the host that a pod takes."""
    host = bool(spec.get("hostNetwork"))
    found: set[Port] = set()
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if host else 0)
            if number:
                found.add((port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", int(number)))
    return sorted(found)


def _toleration(spec: Object) -> Toleration:
    return Toleration(str(spec.get("key") or ""), str(spec.get("operator") or "Equal"), str(spec.get("value") or ""),
                      str(spec.get("effect") or ""))


def _terms(affinity: Object, namespace: str) -> tuple[PodTerm, ...]:
    return tuple(_term(each, namespace)
                 for each in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _wishes(affinity: Object, namespace: str, sign: int) -> list[tuple[int, PodTerm]]:
    return [(sign * int(wish.get("weight") or 0), _term(wish.get("podAffinityTerm") or {}, namespace))
            for wish in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()]


def _term(spec: Object, namespace: str) -> PodTerm:
    named, spaces = frozenset(spec.get("namespaces") or ()), label_selector(spec.get("namespaceSelector"))
    if not named and spaces is None:
        named = frozenset((namespace,))
    return PodTerm(label_selector(spec.get("labelSelector")), named, str(spec.get("topologyKey") or ""), spaces)


def _hard(spread: Object) -> bool:
    return spread.get("whenUnsatisfiable") != "ScheduleAnyway"


def _spread(spec: Object, namespace: str, labels: Mapping[str, str], asked: Within) -> Spread:
    """`asked` is what the pod says about nodes; how much of that counts, the spread says itself."""
    wanted = spec.get("labelSelector")
    same = {key: labels[key] for key in spec.get("matchLabelKeys") or () if key in labels}
    if same:
        wanted = {**(wanted or {}), "matchLabels": {**((wanted or {}).get("matchLabels") or {}), **same}}
    topology = str(spec.get("topologyKey") or "")
    anywhere = spec.get("nodeAffinityPolicy") == "Ignore"
    within = Within(
        EVERYTHING if anywhere else asked.selector, None if anywhere else asked.terms,
        asked.tolerations if spec.get("nodeTaintsPolicy") == "Honor" else None,
        asked.topologies if _hard(spec) else (topology,))
    term = PodTerm(label_selector(wanted), frozenset((namespace,)), topology, within=within)
    return Spread(term, int(spec.get("maxSkew") or 1), _hard(spec), int(spec.get("minDomains") or 1))
