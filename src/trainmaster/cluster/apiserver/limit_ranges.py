"""LimitRange as an object: bounds of what pods, containers and claims ask for. What is made of them is in `limits`."""

from collections.abc import Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, names, resource_names
from trainmaster.cluster.apiserver.causes import Cause

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def defaults(thing: Object) -> None:
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


def rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    taken = set()
    for index, item in enumerate((thing.get("spec") or {}).get("limits") or ()):
        path, type_ = f"spec.limits[{index}]", item.get("type") or ""
        yield from _type_rules(type_, f"{path}.type")
        if type_ in taken:
            yield causes.duplicate(f"{path}.type", type_)
        taken.add(type_)
        yield from _item_rules(item, path, type_)


def _type_rules(type_: str, path: str) -> Iterator[Cause]:
    faults = names.qualified(type_)
    yield from names.refused(path, type_, faults)
    if not faults and "/" not in type_ and type_ not in _TYPES:
        yield causes.invalid(path, type_, "must be a standard limit type or fully qualified")


def _item_rules(item: Object, path: str, type_: str) -> Iterator[Cause]:
    named = resource_names.container_rules if type_ in {"Pod", "Container"} else resource_names.rules
    read: dict[str, None] = {}
    for field in _FIELDS:
        if field == "maxLimitRequestRatio" and type_ == "PersistentVolumeClaim" and not any(
                "storage" in (item.get(bound) or {}) for bound in ("min", "max")):
            yield causes.required(f"{path}.limits",
                                  "either minimum or maximum storage value is required, but neither was provided")
        if field.startswith("default") and type_ == "Pod":
            if item.get(field):
                yield causes.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        for name in item.get(field) or ():
            yield from named(name, f"{path}.{field}[{name}]")
            read[name] = None
    for name in read:
        yield from _order_rules(item, name, path, pod=type_ == "Pod")


def _order_rules(item: Object, name: str, path: str, *, pod: bool) -> Iterator[Cause]:
    """min <= defaultRequest <= default <= max, wherever both are there; and a ratio that the bounds allow."""
    def at(field: str) -> Json:
        return None if pod and field.startswith("default") else (item.get(field) or {}).get(name)

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
    yield from _ratio_rules(at("maxLimitRequestRatio"), least, most, f"{path}.maxLimitRequestRatio[{name}]")
    if not resource_names.is_shared(name) and None not in (limit, request) \
            and quantity.parse(limit) != quantity.parse(request):
        yield causes.invalid(f"{path}.defaultRequest[{name}]", str(request),
                             f"default value {limit} must equal to defaultRequest value {request} in {name}")


def _ratio_rules(ratio: Json, least: Json, most: Json, path: str) -> Iterator[Cause]:
    if ratio is None:
        return
    if quantity.parse(ratio) < 1:
        yield causes.invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if least is None or most is None or not quantity.parse(least):      # of nothing, anything is a multiple
        return
    widest = quantity.parse(most) / quantity.parse(least)
    if quantity.parse(ratio) > widest:
        yield causes.invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {float(widest):f}")
