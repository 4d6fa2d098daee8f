"""What a pod asks for as a whole, beside what its containers ask for."""

from collections.abc import Iterator
from fractions import Fraction

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, container_rules
from trainmaster.cluster.apiserver.causes import Cause

_KINDS = ("cpu", "memory")


def fill(spec: Object) -> None:
    """A pod that says what it may have asks for what its containers ask for, or else for that."""
    whole = spec.get("resources")
    if not isinstance(whole, dict) or not whole.get("limits"):
        return
    asked = whole.get("requests") or {}
    for name in _KINDS:
        if name not in asked and (found := requested(spec, name)) is not None:
            asked[name] = quantity.show(found)
    whole["requests"] = {**whole["limits"], **asked}


def rules(spec: Object, path: str) -> Iterator[Cause]:
    whole, at = spec.get("resources"), f"{path}.resources"
    if whole is None:
        return
    if whole.get("claims") is not None:
        yield causes.forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level")
    yield from container_rules.resource_rules(whole, at, spec, of_pod=True)
    for name, amount in (whole.get("requests") or {}).items():
        found = requested(spec, name)
        if found is not None and found > quantity.parse(amount):
            yield causes.invalid(f"{at}.requests[{name}]", str(amount), "must be greater than or equal to aggregate "
                                 f"container requests of {quantity.show(found)}")
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            most = (whole.get("limits") or {}).get(name)
            if most is not None and quantity.parse(amount) > quantity.parse(most):
                yield causes.invalid(f"{at}.containers[{index}][{name}].limits", str(amount),
                                     f"must be less than or equal to pod limits of {most}")


def requested(spec: Object, name: str) -> Fraction | None:
    """As much as the containers need at a time at most; none if none says anything."""
    running, most, said = Fraction(0), Fraction(0), False
    for container in spec.get("initContainers") or ():
        amount = _requested_by(container, name)
        said = said or amount is not None
        if container.get("restartPolicy") == "Always":
            running += amount or 0
            most = max(most, running)
        else:
            most = max(most, running + (amount or 0))
    for container in spec.get("containers") or ():
        amount = _requested_by(container, name)
        said = said or amount is not None
        running += amount or 0
    return max(most, running) if said else None


def _requested_by(container: Object, name: str) -> Fraction | None:
    amount = ((container.get("resources") or {}).get("requests") or {}).get(name)
    return None if amount is None else quantity.parse(amount)
