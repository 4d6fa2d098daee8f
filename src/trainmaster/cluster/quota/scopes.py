"""Which objects a quota is about: its `scopes` and its `scopeSelector`. Pure. Scopes speak of pods, but for one."""

from collections.abc import Iterator

from trainmaster.api.core import CLAIMS, PODS
from trainmaster.api.labels import meets
from trainmaster.api.meta import Object, Resource

VOLUME_CLASS = "VolumeAttributesClass"


def covers(quota: Object, resource: Resource, thing: Object) -> bool:
    """Whether an object counts in a quota as far as scopes are concerned."""
    return all(_fits(term, resource, thing) for term in terms(quota))


def terms(quota: Object) -> Iterator[Object]:
    spec = quota.get("spec") or {}
    for scope in spec.get("scopes") or ():
        yield {"scopeName": scope, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def _fits(term: Object, resource: Resource, thing: Object) -> bool:
    scope, spec = term.get("scopeName"), thing.get("spec") or {}
    if resource.group or resource.plural != PODS.plural:
        is_claim = not resource.group and resource.plural == CLAIMS.plural
        return is_claim and scope == VOLUME_CLASS and _named(term, str(spec.get("volumeAttributesClassName") or ""))
    ends = spec.get("activeDeadlineSeconds") is not None
    match scope:
        case "Terminating":
            return ends
        case "NotTerminating":
            return not ends
        case "BestEffort":
            return _is_best_effort(thing)
        case "NotBestEffort":
            return not _is_best_effort(thing)
        case "PriorityClass":
            return _named(term, str(spec.get("priorityClassName") or ""))
        case "CrossNamespacePodAffinity":
            return _looks_abroad(spec)
        case _:
            return False


def _named(term: Object, name: str) -> bool:
    return meets({**term, "key": "name"}, {"name": name} if name else {})


def _is_best_effort(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("qosClass") == "BestEffort")


def _looks_abroad(spec: Object) -> bool:
    affinity = spec.get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(side) or {}
        needed = list(found.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        liked = found.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in needed + [each.get("podAffinityTerm") or {} for each in liked]:
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False
