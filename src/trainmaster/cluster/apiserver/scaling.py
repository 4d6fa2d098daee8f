"""HorizontalPodAutoscaler in both versions, and PodDisruptionBudget.

A scaler is stored in v2. Seen through v1, its first CPU metric is a number of its own, and what v1 has no field for
travels in annotations, so that a client of the old version can write back what it read.
"""

from collections.abc import Iterator
from dataclasses import replace

import orjson

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver import causes, checks, labels, names, resource_names, statuses, workload_columns
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Column, Kind, View
from trainmaster.cluster.apiserver.rows import row

_STORED = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
_METRICS = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES = ("object", "external", "pods", "resource", "containerResource")      # in the order that they are looked at
_WINDOW, _PERIOD = 3600, 1800
_ASIDE = "autoscaling.alpha.kubernetes.io/"
_CPU_PERCENT = 80
_UP: list[Object] = [{"type": "Pods", "value": 4, "periodSeconds": 15},
                     {"type": "Percent", "value": 100, "periodSeconds": 15}]
_DOWN: list[Object] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def _defaults(scaler: Object) -> None:
    spec = scaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [_cpu(_CPU_PERCENT)]
    behavior = spec.get("behavior")
    if behavior is None:
        return
    for direction, policies in (("scaleUp", _UP), ("scaleDown", _DOWN)):
        rules = behavior.setdefault(direction, {})
        rules.setdefault("selectPolicy", "Max")
        if rules.get("policies") is None:
            rules["policies"] = [dict(policy) for policy in policies]
    behavior["scaleUp"].setdefault("stabilizationWindowSeconds", 0)


def _cpu(percent: int) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": percent}}}


def _rules(scaler: Object, old: Object | None) -> Iterator[Cause]:
    spec = scaler["spec"]
    least, most = spec["minReplicas"], spec.get("maxReplicas") or 0
    if least < 1:
        yield causes.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if not most:
        yield causes.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield causes.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield causes.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    was = None if old is None else (old.get("spec") or {}).get("scaleTargetRef") or {}
    yield from _target_rules(spec.get("scaleTargetRef") or {}, was)
    for index, metric in enumerate(spec["metrics"]):
        yield from _metric_rules(metric, f"spec.metrics[{index}]")
    if not least and not any(metric.get("type") in {"Object", "External"} for metric in spec["metrics"]):
        yield causes.forbidden("spec.metrics", "must specify at least one Object or External metric to support "
                               "scaling to zero replicas")
    for direction in ("scaleUp", "scaleDown"):
        yield from _direction_rules((spec.get("behavior") or {}).get(direction), f"spec.behavior.{direction}")


def _target_rules(about: Object, was: Object | None) -> Iterator[Cause]:
    yield from _named_rules(about, "spec.scaleTargetRef")
    version, kind = about.get("apiVersion") or "", about.get("kind") or ""
    if was is not None and (version, kind) == (was.get("apiVersion") or "", was.get("kind") or ""):
        return
    yield from _version_rules(version, "spec.scaleTargetRef.apiVersion")
    # One kind of the core group can be scaled.
    if kind != "ReplicationController" and version.count("/") < 2 and version.partition("/")[0] in {"", version}:
        yield causes.invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")


def _version_rules(version: str, path: str) -> Iterator[Cause]:
    if version.count("/") > 1:
        yield causes.invalid(path, version, f"unexpected GroupVersion string: {version}")


def _named_rules(about: Object, path: str) -> Iterator[Cause]:
    for field in ("kind", "name"):
        if not about.get(field):
            yield causes.required(f"{path}.{field}")
        else:
            yield from names.refused(f"{path}.{field}", about[field], names.path_segment(about[field]))


def _metric_rules(metric: Object, path: str) -> Iterator[Cause]:
    type_ = str(metric.get("type") or "")
    if not type_:
        yield causes.required(f"{path}.type", "must specify a metric source type")
    if type_ not in _METRICS:
        yield causes.unsupported(f"{path}.type", type_, _METRICS)
    there = [field for field in _SOURCES if metric.get(field) is not None]
    for field in there[:1]:
        part = metric[field]
        yield from _source_rules(field, part, f"{path}.{field}")
        yield from _goal_rules(part.get("target") or {}, f"{path}.{field}.target")
        yield from _measure_rules(field, part.get("target") or {}, f"{path}.{field}.target")
    wanted = type_[:1].lower() + type_[1:]
    if type_ not in _METRICS:       # a real server says it twice, too
        yield causes.unsupported(f"{path}.type", type_, _METRICS)
    elif wanted not in there:
        yield causes.required(f"{path}.{wanted}", "must populate information for the given metric source")
    for field in there if len(there) > 1 else ():
        if field != wanted:
            yield causes.forbidden(f"{path}.{field}", "must populate the given metric source only")


def _source_rules(field: str, part: Object, path: str) -> Iterator[Cause]:
    """What is measured."""
    if field in {"resource", "containerResource"}:
        if not part.get("name"):
            yield causes.required(f"{path}.name", "must specify a resource name")
        elif field == "containerResource":
            yield from resource_names.container_rules(part["name"], f"{path}.name")
        container = part.get("container") or ""
        if field == "containerResource" and not container:
            yield causes.required(f"{path}.container", "must specify a container")
        elif field == "containerResource":
            yield from names.refused(f"{path}.container", container, names.label(container))
        return
    if field == "object":
        about = part.get("describedObject") or {}
        yield from _named_rules(about, f"{path}.describedObject")
        yield from _version_rules(about.get("apiVersion") or "", f"{path}.describedObject.apiVersion")
    name = (part.get("metric") or {}).get("name") or ""
    if not name:
        yield causes.required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from names.refused(f"{path}.metric.name", name, names.path_segment(name))


def _goal_rules(target: Object, path: str) -> Iterator[Cause]:
    type_ = target.get("type") or ""
    if not type_:
        yield causes.required(f"{path}.type", "must specify a metric target type")
    if type_ not in {"Utilization", "Value", "AverageValue"}:
        yield causes.invalid(f"{path}.type", type_, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if target.get(field) is not None and quantity.parse(target[field]) <= 0:
            yield causes.invalid(f"{path}.{field}", str(target[field]), "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield causes.invalid(f"{path}.averageUtilization", share, "must be greater than 0")


def _measure_rules(field: str, target: Object, path: str) -> Iterator[Cause]:
    """Which figures of a goal go with what is measured."""
    value, average, share = (target.get(name) for name in ("value", "averageValue", "averageUtilization"))
    if field in {"resource", "containerResource"}:
        if share is None and average is None:
            yield causes.required(f"{path}.averageUtilization",
                                  "must set either a target raw value or a target utilization")
        if share is not None and average is not None:
            yield causes.forbidden(f"{path}.averageValue",
                                   "may not set both a target raw value and a target utilization")
    elif field == "pods" and average is None:
        yield causes.required(f"{path}.averageValue", "must specify a positive target averageValue")
    elif field == "object" and value is None and average is None:
        yield causes.required(f"{path}.averageValue", "must set either a target value or averageValue")
    elif field == "external" and value is None and average is None:
        yield causes.required(f"{path}.averageValue",
                              "must set either a target value for metric or a per-pod target")
    elif field == "external" and value is not None and average is not None:
        yield causes.forbidden(f"{path}.value", "may not set both a target value for metric and a per-pod target")


def _direction_rules(rules: Json, path: str) -> Iterator[Cause]:
    if rules is None:
        return
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield causes.invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > _WINDOW:
        yield causes.invalid(f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {_WINDOW}")
    yield from checks.choice(rules.get("selectPolicy"), f"{path}.selectPolicy", ("Disabled", "Max", "Min"))
    if not rules.get("policies"):
        yield causes.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies") or ()):
        at = f"{path}.policies[{index}]"
        yield from checks.choice(policy.get("type") or "", f"{at}.type", ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            if (policy.get(field) or 0) <= 0:
                yield causes.invalid(f"{at}.{field}", policy.get(field) or 0, "must be greater than zero")
        if (policy.get("periodSeconds") or 0) > _PERIOD:
            yield causes.invalid(f"{at}.periodSeconds", policy["periodSeconds"],
                                 f"must be less than or equal to {_PERIOD}")
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance) < 0:
        yield causes.invalid(f"{path}.tolerance", str(tolerance), "must be greater than or equal to 0")


def _is_cpu_percent(metric: Object) -> bool:
    part = metric.get("resource") or {}
    return metric.get("type") == "Resource" and part.get("name") == "cpu" \
        and (part.get("target") or {}).get("averageUtilization") is not None


def from_v1(scaler: Object) -> Object:
    """A scaler as v2 stores it."""
    spec, meta = dict(scaler.get("spec") or {}), dict(scaler["metadata"])
    aside = {key.removeprefix(_ASIDE): value for key, value in (meta.get("annotations") or {}).items()
             if key.startswith(_ASIDE)}
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    metrics: list[Object] = _read(aside.get("metrics")) or []
    if percent is not None:
        metrics = [_cpu(percent), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if (behavior := _read(aside.get("behavior"))) is not None:
        spec["behavior"] = behavior
    status = dict(scaler.get("status") or {})
    seen = status.pop("currentCPUUtilizationPercentage", None)
    current: list[Object] = _read(aside.get("current-metrics")) or []
    if seen is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": seen}}}, *current]
    if current:
        status["currentMetrics"] = current
    if (conditions := _read(aside.get("conditions"))) is not None:
        status["conditions"] = conditions
    result = {**scaler, "metadata": _annotated(meta, {}), "spec": spec}
    if "status" in scaler or status:
        result["status"] = {"desiredReplicas": 0, "currentMetrics": None, **status}
    return result


def to_v1(scaler: Object) -> Object:
    """A stored scaler as v1 shows it."""
    spec, status = dict(scaler.get("spec") or {}), dict(scaler.get("status") or {})
    aside: Object = {}
    rest = []
    for metric in spec.pop("metrics", None) or ():
        if _is_cpu_percent(metric) and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
        else:
            rest.append(metric)
    others = []
    for metric in status.pop("currentMetrics", None) or ():
        seen = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if seen is not None and metric["resource"].get("name") == "cpu":
            status["currentCPUUtilizationPercentage"] = seen
        else:
            others.append(metric)
    for name, found in (("metrics", rest), ("behavior", spec.pop("behavior", None)), ("current-metrics", others),
                        ("conditions", status.pop("conditions", None))):
        if found:
            aside[_ASIDE + name] = orjson.dumps(found).decode()
    return {**scaler, "apiVersion": "autoscaling/v1", "metadata": _annotated(scaler["metadata"], aside), "spec": spec,
            "status": {"currentReplicas": 0, "desiredReplicas": 0, **status}}


def _annotated(meta: Object, aside: Object) -> Object:
    kept = {key: value for key, value in (meta.get("annotations") or {}).items() if not key.startswith(_ASIDE)}
    result = {**meta, "annotations": {**kept, **aside}}
    if not result["annotations"]:
        del result["annotations"]
    return result


def _read(text: Json) -> Json:
    try:
        return orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None


def _old_defaults(scaler: Object) -> None:
    (scaler.setdefault("spec", {})).setdefault("minReplicas", 1)


def _old_rules(scaler: Object, old: Object | None) -> Iterator[Cause]:
    newer = from_v1(scaler)
    _defaults(newer)
    yield from _rules(newer, old)


def _stored_from_v1(scaler: Object) -> Object:
    newer = from_v1(scaler)
    _defaults(newer)
    return newer


def _column(column: Column) -> Column:
    """The same cell for an object in v1."""
    def cell(scaler: Object) -> Json:
        return column.value(from_v1(scaler))

    return replace(column, value=cell)


def _budget_rules(budget: Object, _old: Object | None) -> Iterator[Cause]:
    spec = budget.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        told = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most,
                "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy")}
        yield causes.invalid("spec", told, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        yield from checks.share(spec.get(field), f"spec.{field}")
    yield from labels.rules(spec.get("selector") or {}, "spec.selector")
    yield from checks.choice(spec.get("unhealthyPodEvictionPolicy"), "spec.unhealthyPodEvictionPolicy",
                             ("AlwaysAllow", "IfHealthyBudget"))


KINDS: tuple[Kind, ...] = (
    row("autoscaling/v2", "horizontalpodautoscalers", defaults=_defaults, rules=_rules,
        status_rules=statuses.scaler, columns=workload_columns.SCALER),
    row("autoscaling/v1", "horizontalpodautoscalers", defaults=_old_defaults, rules=_old_rules,
        status_rules=statuses.scaler, view=View(_STORED, _stored_from_v1, to_v1),
        columns=tuple(map(_column, workload_columns.SCALER))),
    row("policy/v1", "poddisruptionbudgets", generation=True, rules=_budget_rules,
        status_rules=statuses.budget, columns=workload_columns.BUDGET),
)
