"""What the LimitRanges of a namespace make of a new pod or claim: amounts that were left out, and bounds. Pure.

Amounts are filled in before anything counts them (quality of service, quotas, the scheduler), so this belongs to
admission and not to a controller.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

import orjson

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object

ANNOTATION = "kubernetes.io/limit-ranger"


def fill(pod: Object, ranges: Iterable[Object]) -> bool:
    """Give containers the requests and limits that they do not name; whether there were any."""
    said = []
    for item in _items(ranges, "Container"):
        for container in _containers(pod):
            resources = container.setdefault("resources", {})
            for field, source in (("requests", "defaultRequest"), ("limits", "default")):
                there = resources.get(field) or {}
                added = {name: amount for name, amount in (item.get(source) or {}).items() if name not in there}
                if added:
                    resources[field] = {**there, **added}
                    names = ", ".join(sorted(added))
                    said.append(f"{names} {field.removesuffix('s')} for {_role(pod, container)} {container['name']}")
    if said:
        pod["metadata"].setdefault("annotations", {})[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"
    return bool(said)


def amounts(pod: Object) -> bytes:
    """What the containers of a pod ask for: all of it that limits are about."""
    return orjson.dumps({field: [container.get("resources") or {} for container in pod["spec"].get(field) or ()]
                         for field in ("containers", "initContainers")})


def fit(asked: dict[str, list[Object]], ranges: Iterable[Object]) -> bool:
    """Whether a pod that asks for these `amounts` gets no others, and breaks no bound."""
    containers = {field: [{"name": "", "resources": each} for each in found] for field, found in asked.items()}
    pod: Object = {"kind": "Pod", "metadata": {}, "spec": containers}
    return not fill(pod, ranges) and not broken(pod, ranges)


def _role(pod: Object, container: Object) -> str:
    return "init container" if any(each is container for each in pod["spec"].get("initContainers") or ()) \
        else "container"


def broken(thing: Object, ranges: Iterable[Object]) -> list[str]:
    """The bounds that a pod or a claim breaks."""
    found: list[str] = []
    for item in _items(ranges, "Container", "Pod", "PersistentVolumeClaim"):
        type_ = item["type"]
        if (type_ == "PersistentVolumeClaim") is not (thing["kind"] == "PersistentVolumeClaim"):
            continue
        if type_ == "Container":
            for container in _containers(thing):
                found += _bounds(item, container.get("resources") or {})
        else:
            found += _bounds(item, _total(thing) if type_ == "Pod" else thing["spec"].get("resources") or {})
    return found


def _bounds(item: Object, resources: Object) -> Iterator[str]:
    requests, limits, type_ = resources.get("requests") or {}, resources.get("limits") or {}, item["type"]
    for name, least in sorted((item.get("min") or {}).items()):
        said = f"minimum {name} usage per {type_} is {least}"
        if name not in requests:
            yield f"{said}.  No request is specified"
        elif quantity.parse(requests[name]) < quantity.parse(least):
            yield f"{said}, but request is {requests[name]}"
    for name, most in sorted((item.get("max") or {}).items()):
        said = f"maximum {name} usage per {type_} is {most}"
        if type_ != "PersistentVolumeClaim" and name not in limits:
            yield f"{said}.  No limit is specified"
        elif name in limits and quantity.parse(limits[name]) > quantity.parse(most):
            yield f"{said}, but limit is {limits[name]}"
        elif name in requests and quantity.parse(requests[name]) > quantity.parse(most):
            yield f"{said}, but request is {requests[name]}"
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _ratio(f"{name} max limit to request ratio per {type_} is {ratio}", quantity.parse(ratio),
                          requests.get(name), limits.get(name))


def _ratio(said: str, most: Fraction, request: Json, limit: Json) -> Iterator[str]:
    if request is None or not quantity.parse(request):
        yield f"{said}, but no request is specified or request is 0"
    elif limit is None or not quantity.parse(limit):
        yield f"{said}, but no limit is specified or limit is 0"
    elif (found := quantity.parse(limit) / quantity.parse(request)) > most:
        yield f"{said}, but provided ratio is {float(found):.6f}"


def _total(pod: Object) -> Object:
    """What all containers together ask for and may use."""
    total: Object = {}
    for field in ("requests", "limits"):
        sums: dict[str, Fraction] = {}
        for container in pod["spec"].get("containers") or ():
            for name, amount in ((container.get("resources") or {}).get(field) or {}).items():
                sums[name] = sums.get(name, Fraction(0)) + quantity.parse(amount)
        total[field] = {name: quantity.show(amount) for name, amount in sums.items()}
    return total


def _containers(pod: Object) -> list[Object]:
    if pod["kind"] != "Pod":
        return []
    return [*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())]


def _items(ranges: Iterable[Object], *types: str) -> list[Object]:
    return [item for each in ranges for item in (each.get("spec") or {}).get("limits") or () if item["type"] in types]
