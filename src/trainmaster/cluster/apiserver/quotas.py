"""What a namespace and its pods may use: ResourceQuota, LimitRange, PriorityClass, RuntimeClass. As objects; what
admission makes of priorities is in `admission`.
"""

from collections.abc import Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, columns, names, other_columns
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

HIGHEST_PRIORITY = 1_000_000_000
# Priorities that exist without anybody making them.
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_MEASURED = frozenset({
    "cpu", "memory", "ephemeral-storage", "storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
})
_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity",
           "VolumeAttributesClass")
_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
                            "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"})


def _name_rules(name: str, path: str, known: frozenset[str], what: str) -> Iterator[Cause]:
    faults = list(names.refused(path, name, names.qualified(name)))
    yield from faults
    if not faults and "/" not in name and name not in known and not name.startswith("requests.hugepages-"):
        if name not in checks.COUNTED | _MEASURED:
            yield causes.invalid(path, name, "must be a standard resource type or fully qualified")
        yield causes.invalid(path, name, f"must be a standard resource for {what}")


def _quota_rules(quota: Object, old: Object | None) -> Iterator[Cause]:
    spec = quota.get("spec") or {}
    for name, amount in (spec.get("hard") or {}).items():
        yield from _amount_rules(name, amount, f"spec.hard[{name}]")
    yield from _scope_rules(spec.get("scopes") or [], spec.get("hard") or {})
    if old is not None:
        was = old.get("spec") or {}
        for field in ("scopes", "scopeSelector"):
            yield from checks.unchanged(spec.get(field), was.get(field), f"spec.{field}")


def _amount_rules(name: str, amount: Json, path: str) -> Iterator[Cause]:
    yield from _name_rules(name, path, checks.COUNTED | _MEASURED, "quota")
    yield from checks.amount(name, amount, path)


def _quota_status_rules(quota: Object, _old: Object) -> Iterator[Cause]:
    for field in ("hard", "used"):
        for name, amount in ((quota.get("status") or {}).get(field) or {}).items():
            yield from _amount_rules(name, amount, f"status.{field}[{name}]")


def _scope_rules(scopes: list[str], hard: Object) -> Iterator[Cause]:
    if not scopes:
        return
    for scope in scopes:
        if scope not in _SCOPES:
            yield causes.invalid("spec.scopes", scopes, "unsupported scope")
            continue
        for name in hard:
            if (scope == "BestEffort" and name != "pods") or name not in _POD_RESOURCES:
                yield causes.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for pair in ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}):
        if pair <= set(scopes):
            yield causes.invalid("spec.scopes", scopes, "conflicting scopes")


def _range_defaults(thing: Object) -> None:
    """A limit that is not given is the most there may be; a request is the limit, or the least there may be."""
    for item in (thing.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        most, least = item.get("max") or {}, item.get("min") or {}
        limit = {**most, **(item.get("default") or {})}
        request = {**least, **limit, **(item.get("defaultRequest") or {})}
        for field, value in (("default", limit), ("defaultRequest", request)):
            if value:
                item[field] = value


def _range_rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    taken = set()
    for index, item in enumerate((thing.get("spec") or {}).get("limits") or ()):
        path, type_ = f"spec.limits[{index}]", item.get("type") or ""
        yield from names.refused(f"{path}.type", type_, names.qualified(type_))
        if type_ in taken:
            yield causes.duplicate(f"{path}.type", type_)
        taken.add(type_)
        if type_ == "Pod":
            for field in ("default", "defaultRequest"):
                if item.get(field):
                    yield causes.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
        elif type_ == "PersistentVolumeClaim" and not any("storage" in (item.get(field) or {})
                                                          for field in ("min", "max")):
            yield causes.required(f"{path}.limits",
                                  "either minimum or maximum storage value is required, but neither was provided")
        resources = {name for field in ("max", "min", "default", "defaultRequest") for name in item.get(field) or ()}
        for name in sorted(resources):
            yield from _order_rules(item, name, path)
        for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
            if quantity.parse(ratio) < 1:
                yield causes.invalid(f"{path}.maxLimitRequestRatio[{name}]", str(ratio),
                                     f"ratio {ratio} is less than 1")


def _order_rules(item: Object, name: str, path: str) -> Iterator[Cause]:
    """min <= defaultRequest <= default <= max, wherever both are there."""
    def at(field: str) -> Json:
        return (item.get(field) or {}).get(name)

    least, request, limit, most = at("min"), at("defaultRequest"), at("default"), at("max")
    for low, high, field, quoted, said in (
        (least, most, "min", least, f"min value {least} is greater than max value {most}"),
        (least, request, "defaultRequest", request,
         f"min value {least} is greater than default request value {request}"),
        (request, most, "defaultRequest", request,
         f"default request value {request} is greater than max value {most}"),
        (request, limit, "defaultRequest", request,
         f"default request value {request} is greater than default limit value {limit}"),
        (least, limit, "default", least, f"min value {least} is greater than default value {limit}"),
        (limit, most, "default", most, f"default value {limit} is greater than max value {most}"),
    ):
        if low is not None and high is not None and quantity.parse(low) > quantity.parse(high):
            yield causes.invalid(f"{path}.{field}[{name}]", str(quoted), said)


def _priority_defaults(thing: Object) -> None:
    thing.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _priority_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    name, value = thing["metadata"].get("name", ""), thing.get("value") or 0
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != value:
            yield causes.forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for "
                                   f"system use only. error: {_not_known(name, value)}")
    elif value > HIGHEST_PRIORITY:
        yield causes.forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}")
    yield from checks.choice(thing["preemptionPolicy"], "preemptionPolicy", ("PreemptLowerPriority", "Never"))
    if old is not None:
        if value != (old.get("value") or 0):
            yield causes.forbidden("value", "may not be changed in an update.")
        yield from checks.unchanged(thing["preemptionPolicy"], old.get("preemptionPolicy"), "preemptionPolicy")


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
    if old is not None:
        yield from checks.unchanged(handler, old.get("handler"), "handler")


KINDS: tuple[Kind, ...] = (
    row("v1", "resourcequotas", answers_object=True, rules=_quota_rules, status_rules=_quota_status_rules,
        columns=other_columns.QUOTA),
    row("v1", "limitranges", defaults=_range_defaults, rules=_range_rules, columns=columns.DEFINITION),
    row("scheduling.k8s.io/v1", "priorityclasses", generation=True, defaults=_priority_defaults,
        rules=_priority_rules, columns=other_columns.PRIORITY),
    row("node.k8s.io/v1", "runtimeclasses", rules=_runtime_rules, columns=other_columns.RUNTIME),
)
