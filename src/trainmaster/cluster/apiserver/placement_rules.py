"""Where a pod may go, beside whom, and when: tolerations, affinity, gates, spreading."""

from collections import Counter
from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks, labels, names, node_selectors
from trainmaster.cluster.apiserver.causes import Cause

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", \
    "preferredDuringSchedulingIgnoredDuringExecution"


def rules(spec: Object, path: str) -> Iterator[Cause]:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from toleration_rules(toleration, f"{path}.tolerations[{index}]")
    if spec.get("affinity"):
        yield from _affinity_rules(spec["affinity"], f"{path}.affinity")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        name = gate.get("conditionType") or ""
        yield from names.refused(f"{path}.readinessGates[{index}].conditionType", name, names.qualified(name))
    taken = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        at, name = f"{path}.schedulingGates[{index}]", gate.get("name") or ""
        yield from names.refused(at, name, names.qualified(name))
        if name in taken:
            yield causes.duplicate(at, name)
        taken.add(name)
    spreads = spec.get("topologySpreadConstraints") or ()
    left = Counter(_over(spread) for spread in spreads)
    for index, spread in enumerate(spreads):
        left[_over(spread)] -= 1
        yield from _spread_rules(spread, f"{path}.topologySpreadConstraints[{index}]", again=left[_over(spread)] > 0)


def _affinity_rules(affinity: Object, path: str) -> Iterator[Cause]:
    yield from _node_affinity_rules(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        found, at = affinity.get(field) or {}, f"{path}.{field}"
        for index, term in enumerate(found.get(_REQUIRED) or ()):
            yield from _pod_term_rules(term, f"{at}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(found.get(_PREFERRED) or ()):
            where = f"{at}.{_PREFERRED}[{index}]"
            yield from _weight_rules(weighted, where)
            yield from _pod_term_rules(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _over(spread: Object) -> tuple[str, str]:
    """Of what there may be one constraint only."""
    return spread.get("topologyKey") or "", spread.get("whenUnsatisfiable") or ""


def _spread_rules(spread: Object, path: str, *, again: bool) -> Iterator[Cause]:
    """`again`: another one like it follows."""
    key, action = _over(spread)
    if (spread.get("maxSkew") or 0) <= 0:
        yield causes.invalid(f"{path}.maxSkew", spread.get("maxSkew") or 0, "must be greater than zero")
    if not key:
        yield causes.required(f"{path}.topologyKey", "can not be empty")
    yield from checks.choice(action, f"{path}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
    if again:
        yield causes.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
    domains = spread.get("minDomains")
    if domains is not None:
        if domains <= 0:
            yield causes.invalid(f"{path}.minDomains", domains, "must be greater than zero")
        if action != "DoNotSchedule":
            yield causes.invalid(f"{path}.minDomains", domains, "can only use minDomains if "
                                 f"whenUnsatisfiable=DoNotSchedule, not {action}")
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        yield from checks.choice(spread.get(field), f"{path}.{field}", ("Honor", "Ignore"))
    yield from _label_key_rules(spread, path)
    yield from labels.rules(spread.get("labelSelector") or {}, f"{path}.labelSelector")


def _label_key_rules(term: Object, path: str) -> Iterator[Cause]:
    """Keys of labels whose values are taken from the pod itself."""
    selector = term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(field) or ()
        if keys and selector is None:
            yield causes.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            yield from names.refused(f"{path}.{field}[{index}]", key, names.qualified(key))
    mismatched = set(term.get("mismatchLabelKeys") or ())
    for index, key in enumerate(term.get("matchLabelKeys") or ()):
        if key in mismatched:
            yield causes.invalid(f"{path}.matchLabelKeys[{index}]", key,
                                 "exists in both matchLabelKeys and mismatchLabelKeys")


def toleration_rules(toleration: Object, path: str) -> Iterator[Cause]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from names.refused(f"{path}.key", key, names.qualified(key))
    elif operator != "Exists":
        yield causes.invalid(f"{path}.operator", operator, "operator must be Exists when `key` is empty, which means "
                             '"match all values and all keys"')
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield causes.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in {"", "Equal"}:
        yield from names.refused(f"{path}.operator", value, names.label_value(value))
    elif operator == "Exists":
        if value:
            yield causes.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield causes.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect:
        yield from checks.choice(effect, f"{path}.effect", EFFECTS)


def _node_affinity_rules(affinity: Object, path: str) -> Iterator[Cause]:
    if affinity.get(_REQUIRED) is not None:
        yield from node_selectors.rules(affinity[_REQUIRED], f"{path}.{_REQUIRED}")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_rules(weighted, at)
        yield from node_selectors.term_rules(weighted.get("preference") or {}, f"{at}.preference", values=False)


def _weight_rules(weighted: Object, path: str) -> Iterator[Cause]:
    if not 1 <= (weighted.get("weight") or 0) <= 100:
        yield causes.invalid(f"{path}.weight", weighted.get("weight") or 0, "must be in the range 1-100")


def _pod_term_rules(term: Object, path: str) -> Iterator[Cause]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from labels.rules(term.get(field) or {}, f"{path}.{field}")
    for name in term.get("namespaces") or ():
        yield from names.refused(f"{path}.namespace", name, names.label(name))
    yield from _label_key_rules(term, path)
    key = term.get("topologyKey") or ""
    if not key:
        yield causes.required(f"{path}.topologyKey", "can not be empty")
    yield from names.refused(f"{path}.topologyKey", key, names.qualified(key))
