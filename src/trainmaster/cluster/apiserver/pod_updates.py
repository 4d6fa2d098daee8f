"""What may change of a pod that is there: images, a deadline that comes nearer, more tolerations, fewer gates.

A pod that is held by a gate may also be told more narrowly which nodes it may go to.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes
from trainmaster.cluster.apiserver.causes import Cause

_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")
_LOOSE = frozenset({"activeDeadlineSeconds", "tolerations", "schedulingGates"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LATEST = 2**31 - 1


def rules(spec: Object, old: Object) -> Iterator[Cause]:
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(old.get(field) or ()):
            yield causes.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    late = list(_deadline_rules(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")))
    yield from late
    if late and spec.get("activeDeadlineSeconds") is not None:
        return
    kept = [_without_seconds(item) for item in spec.get("tolerations") or ()]
    if any(_without_seconds(item) not in kept for item in old.get("tolerations") or ()):
        yield causes.forbidden("spec.tolerations",
                               "existing toleration can not be modified except its tolerationSeconds")
    gates = {gate.get("name") or "" for gate in old.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if (name := gate.get("name") or "") not in gates:
            yield causes.forbidden(f"spec.schedulingGates[{index}].name",
                                   f"only deletion is allowed, but found new scheduling gate '{name}'")
    now, was = _fixed(spec), _fixed(old)
    if gates:
        yield from _narrower(now, was)
    if now != was:
        yield causes.forbidden("spec", _MAY_CHANGE)


def _deadline_rules(now: int | None, was: int | None) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    if now is None:
        if was is not None:
            yield causes.invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= now <= _LATEST:
        yield causes.invalid(path, now, f"must be between 0 and {_LATEST}, inclusive")
    elif was is not None and now > was:
        yield causes.invalid(path, now, "must be less than or equal to previous value")


def _without_seconds(toleration: Object) -> Object:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


def _fixed(spec: Object) -> Object:
    """What an update may not touch."""
    kept = {name: value for name, value in spec.items() if name not in _LOOSE}
    for field in ("containers", "initContainers"):
        kept[field] = [{name: value for name, value in container.items() if name != "image"}
                       for container in spec.get(field) or ()]
    return kept


def _narrower(now: Object, was: Object) -> Iterator[Cause]:
    """Which nodes a pod may go to that waits for its gates; what is right of it is no difference any more."""
    selector, before = now.pop("nodeSelector", None), was.pop("nodeSelector", None)
    if not (before or {}).items() <= (selector or {}).items():
        yield causes.invalid("spec.nodeSelector", selector,
                             "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
    affinity, had = [dict(spec.pop("affinity", None) or {}) for spec in (now, was)]
    nodes, held = affinity.pop("nodeAffinity", None) or {}, had.pop("nodeAffinity", None) or {}
    if nodes != held:
        yield from _affinity_rules((nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [],
                                   (held.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [])
    now["affinity"], was["affinity"] = affinity, had


def _affinity_rules(terms: list[Object], old: list[Object]) -> Iterator[Cause]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if old and len(terms) != len(old):
        yield causes.invalid(path, terms or None,
                             "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, before) in enumerate(zip(terms, old, strict=False)):
        if not _only_adds(term, before):
            yield causes.invalid(f"{path}[{index}]", term, "only additions are allowed (no mutations or deletions)")


def _only_adds(term: Object, old: Object) -> bool:
    """A term without expressions is for no node, and stays so."""
    pairs = [(term.get(field) or [], old.get(field) or []) for field in ("matchExpressions", "matchFields")]
    if not any(had for _, had in pairs):
        return not any(has for has, _ in pairs)
    return all(has[:len(had)] == had for has, had in pairs)
