"""What a namespace and its pods may use: ResourceQuota, LimitRange, PriorityClass, RuntimeClass. As objects; what
admission makes of priorities is in `admission`.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, columns, limit_ranges, names, other_columns, resource_names
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

HIGHEST_PRIORITY = 1_000_000_000
# Priorities that exist without anybody making them.
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
# Which resources a scope can be about.
_SCOPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"),
                    _POD_RESOURCES),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_WITHOUT_VALUES = frozenset(_SCOPES) - {"PriorityClass", "VolumeAttributesClass"}
_EXISTS = ("must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
           "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
           "ResourceQuotaScopeCrossNamespacePodAffinity")


def _quota_rules(quota: Object, old: Object | None) -> Iterator[Cause]:
    spec = quota.get("spec") or {}
    for name, amount in (spec.get("hard") or {}).items():
        yield from _amount_rules(name, amount, f"spec.hard[{name}]")
    yield from _scope_rules(spec.get("scopes") or [], spec.get("hard") or {})
    if spec.get("scopeSelector") is not None:
        yield from _selector_rules(spec)
    if old is not None and set(spec.get("scopes") or ()) != set((old.get("spec") or {}).get("scopes") or ()):
        yield causes.invalid("spec.scopes", spec.get("scopes"), checks.IMMUTABLE)


def _amount_rules(name: str, amount: Json, path: str) -> Iterator[Cause]:
    yield from resource_names.rules(name, path)
    if "/" not in name and not resource_names.is_quota(name):
        yield causes.invalid(path, name, "must be a standard resource for quota")
    yield from checks.amount(name, amount, path)


def _quota_status_rules(quota: Object, _old: Object) -> Iterator[Cause]:
    for field in ("hard", "used"):
        for name, amount in ((quota.get("status") or {}).get(field) or {}).items():
            yield from _amount_rules(name, amount, f"status.{field}[{name}]")


def _scope_rules(scopes: list[str], hard: Object) -> Iterator[Cause]:
    for scope in scopes:
        if scope not in _SCOPES:
            yield causes.invalid("spec.scopes", scopes, "unsupported scope")
        for _ in _misplaced(scope, hard):
            yield causes.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for _ in _conflicts(set(scopes)):
        yield causes.invalid("spec.scopes", scopes, "conflicting scopes")


def _misplaced(scope: str, hard: Object) -> list[str]:
    """The resources that the scope says nothing about."""
    return [name for name in hard if resource_names.is_quota(name) and name not in _SCOPES.get(scope, (name,))]


def _conflicts(scopes: set[str]) -> list[set[str]]:
    return [pair for pair in ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}) if pair <= scopes]


def _selector_rules(spec: Object) -> Iterator[Cause]:
    """The newer way to say scopes. A real server does not say which of the expressions is wrong."""
    path, wanted = "spec.scopeSelector.matchExpressions", spec["scopeSelector"].get("matchExpressions") or []
    told = {"MatchExpressions": [{"ScopeName": each.get("scopeName") or "", "Operator": each.get("operator") or "",
                                  "Values": each.get("values")} for each in wanted]}
    for each in wanted:
        scope, operator, values = each.get("scopeName") or "", each.get("operator") or "", each.get("values") or []
        if scope not in _SCOPES:
            yield causes.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _misplaced(scope, spec.get("hard") or {}):
            yield causes.invalid(path, told, "unsupported scope applied to resource")
        if scope in _WITHOUT_VALUES and operator != "Exists":
            yield causes.invalid(f"{path}.operator", operator, _EXISTS)
        if operator in {"In", "NotIn"}:
            if not values:
                yield causes.required(f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn' "
                                      "for scope selector")
        elif operator not in {"Exists", "DoesNotExist"}:
            yield causes.invalid(f"{path}.operator", operator, "not a valid selector operator")
        elif values:
            yield causes.invalid(f"{path}.values", values,
                                 "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
    for _ in _conflicts({each.get("scopeName") or "" for each in wanted}):
        yield causes.invalid(path, spec.get("scopes"), "conflicting scopes")


def _priority_defaults(thing: Object) -> None:
    thing.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _priority_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    name, value = thing["metadata"].get("name", ""), thing.get("value") or 0
    if old is not None:
        if value != (old.get("value") or 0):
            yield causes.forbidden("value", "may not be changed in an update.")
        yield from checks.unchanged(thing["preemptionPolicy"], old.get("preemptionPolicy"), "preemptionPolicy")
        return
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != value:
            yield causes.forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for "
                                   f"system use only. error: {_not_known(name, value)}")
    elif value > HIGHEST_PRIORITY:
        yield causes.forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}")
    if not thing["preemptionPolicy"]:
        yield causes.required("preemptionPolicy")
    else:
        yield from checks.choice(thing["preemptionPolicy"], "preemptionPolicy", ("PreemptLowerPriority", "Never"))


def _not_known(name: str, value: int) -> str:
    if name not in SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    return f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}, and not {value}"


def _runtime_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    handler = thing.get("handler") or ""
    if not handler:
        yield causes.required("handler")
    else:
        yield from names.refused("handler", handler, names.label(handler))
    for name, amount in ((thing.get("overhead") or {}).get("podFixed") or {}).items():
        path = f"overhead.limits[{name}]"       # where a container has its own; clients see it
        yield from resource_names.container_rules(name, path)
        yield from checks.amount(name, amount, path)
    yield from names.labels((thing.get("scheduling") or {}).get("nodeSelector") or {}, "scheduling.nodeSelector")
    if old is not None:
        yield from checks.unchanged(handler, old.get("handler"), "handler")


KINDS: tuple[Kind, ...] = (
    row("v1", "resourcequotas", answers_object=True, rules=_quota_rules, status_rules=_quota_status_rules,
        columns=other_columns.QUOTA),
    row("v1", "limitranges", defaults=limit_ranges.defaults, rules=limit_ranges.rules, columns=columns.DEFINITION),
    row("scheduling.k8s.io/v1", "priorityclasses", generation=True, defaults=_priority_defaults,
        rules=_priority_rules, columns=other_columns.PRIORITY),
    row("node.k8s.io/v1", "runtimeclasses", rules=_runtime_rules, columns=other_columns.RUNTIME),
)
