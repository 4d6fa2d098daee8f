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
    needed = requested(spec)
    for name in _KINDS:
        if name not in asked and name in needed:
            asked[name] = quantity.show(needed[name])
    whole["requests"] = {**whole["limits"], **asked}


def rules(spec: Object, path: str) -> Iterator[Cause]:
    whole, at = spec.get("resources"), f"{path}.resources"
    if whole is None:
        return
    if whole.get("claims") is not None:
        yield causes.forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level")
    yield from container_rules.resource_rules(whole, at, spec, of_pod=True)
    needed = requested(spec)
    for name, amount in (whole.get("requests") or {}).items():
        if name in needed and needed[name] > quantity.parse(amount):
            yield causes.invalid(f"{at}.requests[{name}]", str(amount), "must be greater than or equal to aggregate "
                                 f"container requests of {quantity.show(needed[name])}")
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            most = (whole.get("limits") or {}).get(name)
            if most is not None and quantity.parse(amount) > quantity.parse(most):
                yield causes.invalid(f"{at}.containers[{index}][{name}].limits", str(amount),
                                     f"must be less than or equal to pod limits of {most}")


def requested(spec: Object) -> dict[str, Fraction]:
    """As much of each resource as the containers need at a time at most."""
    running: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        for name, amount in _requests_of(container):
            total = running.get(name, Fraction(0)) + amount
            most[name] = max(most.get(name, total), total)
            if container.get("restartPolicy") == "Always":
                running[name] = total
    for container in spec.get("containers") or ():
        for name, amount in _requests_of(container):
            running[name] = running.get(name, Fraction(0)) + amount
    return {**running, **{name: max(amount, running.get(name, amount)) for name, amount in most.items()}}


def _requests_of(container: Object) -> Iterator[tuple[str, Fraction]]:
    for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
        yield name, quantity.parse(amount)
