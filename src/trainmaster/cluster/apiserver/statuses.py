"""What the status of nodes, namespaces, services, ingresses, claims, volumes, budgets and scalers may say, and what a
write of it fills in. Pure. Workloads, jobs and pods have modules of their own: their rules are many.
"""

import re
from collections.abc import Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import addresses, causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

_RESIZES = ("ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
            "NodeResizePending")
_MODES = ("Proxy", "VIP")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_NO_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')")
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024


def _status(thing: Object) -> Object:
    found: Object = thing.get("status") or {}
    return found


def node_defaults(node: Object, _old: Object) -> None:
    """A node that keeps nothing for itself has all it has to give."""
    status = _status(node)
    if status.get("capacity") and status.get("allocatable") is None:
        node["status"] = {**status, "allocatable": status["capacity"]}


def node_amounts(node: Object) -> Iterator[Cause]:
    """The part that is looked at when the node is made, too."""
    for field in ("capacity", "allocatable"):
        for name, amount in (_status(node).get(field) or {}).items():
            yield from checks.amount(name, amount, f"status.{field}.{name}")


def node(node: Object, _old: Object | None) -> Iterator[Cause]:
    yield from node_amounts(node)
    seen = set()
    for index, each in enumerate(_status(node).get("addresses") or ()):
        pair = (each.get("type") or "", each.get("address") or "")
        if pair in seen:
            yield causes.duplicate(f"status.addresses[{index}]", {"Type": pair[0], "Address": pair[1]})
        seen.add(pair)


def namespace_defaults(namespace: Object, _old: Object) -> None:
    status = _status(namespace)
    if not status.get("phase"):
        namespace["status"] = {**status, "phase": "Active"}


def namespace(namespace: Object, _old: Object) -> Iterator[Cause]:
    phase, ending = _status(namespace).get("phase"), bool(namespace["metadata"].get("deletionTimestamp"))
    if ending != (phase == "Terminating") or (not ending and phase != "Active"):
        wanted, such = ("Terminating", "not empty") if ending else ("Active", "empty")
        yield causes.invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {such}")


def service_defaults(service: Object, _old: Object) -> None:
    """An address of a load balancer that says nothing else is one that packets are sent to."""
    ways = (_status(service).get("loadBalancer") or {}).get("ingress") or []
    if service["spec"].get("type") == "LoadBalancer" and any(way.get("ip") and way.get("ipMode") is None
                                                             for way in ways):
        told = [{**way, "ipMode": "VIP"} if way.get("ip") and way.get("ipMode") is None else way for way in ways]
        service["status"] = {**_status(service), "loadBalancer": {"ingress": told}}


def service(service: Object, old: Object) -> Iterator[Cause]:
    ways = (_status(service).get("loadBalancer") or {}).get("ingress") or []
    if service["spec"].get("type") != "LoadBalancer":
        if ways:
            yield causes.forbidden("status.loadBalancer.ingress",
                                   "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, way in enumerate(ways):
        path, mode = f"status.loadBalancer.ingress[{index}]", way.get("ipMode")
        yield from _new_address(way, old, path)
        if mode is not None and not way.get("ip"):
            yield causes.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
        else:
            yield from checks.choice(mode, f"{path}.ipMode", _MODES)
        yield from _host(way, path)


def ingress(ingress: Object, old: Object) -> Iterator[Cause]:
    for index, way in enumerate((_status(ingress).get("loadBalancer") or {}).get("ingress") or ()):
        path = f"status.loadBalancer.ingress[{index}]"
        yield from _new_address(way, old, path)
        yield from _host(way, path)


def _new_address(way: Object, old: Object, path: str) -> Iterator[Cause]:
    """An address that was there before is kept, whatever it is."""
    before = [each.get("ip") for each in (_status(old).get("loadBalancer") or {}).get("ingress") or ()]
    if way.get("ip") and way["ip"] not in before:
        yield from addresses.rules(way["ip"], f"{path}.ip")


def _host(way: Object, path: str) -> Iterator[Cause]:
    if host := way.get("hostname"):
        yield from names.refused(f"{path}.hostname", host, names.subdomain(host))
        if addresses.parsed(host) is not None:
            yield causes.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")


def claim(claim: Object, _old: Object) -> Iterator[Cause]:
    status = _status(claim)
    for name, amount in (status.get("capacity") or {}).items():
        yield from _something(amount, f"status.capacity[{name}]")
    path: str = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        yield from _claimed(name, path)
        if state not in _RESIZES:
            yield causes.unsupported(path, name, _RESIZES)
    for name, amount in (status.get("allocatedResources") or {}).items():
        faults = list(_claimed(name, "status.allocatedResources"))
        yield from faults or _something(amount, f"status.allocatedResources[{name}]")


def _claimed(name: str, path: str) -> Iterator[Cause]:
    """What a claim can have: storage, and what others name."""
    faults = list(names.refused(path, name, names.qualified(name)))
    yield from faults
    domain = name.rpartition("/")[0]
    if not faults and name != "storage" and (not domain or "kubernetes.io/" in name):
        yield causes.unsupported(path, name, ("storage",))


def _something(amount: Json, path: str) -> Iterator[Cause]:
    found = quantity.parse(amount)
    if found < 0:
        yield causes.invalid(path, found.__floor__(), "must be a valid resource quantity")


def budget(budget: Object, _old: Object) -> Iterator[Cause]:
    status = _status(budget)
    taken = set()
    for index, condition in enumerate(status.get("conditions") or ()):
        path, type_ = f"status.conditions[{index}]", condition.get("type") or ""
        if type_ in taken:
            yield causes.duplicate(f"{path}.type", type_)
        taken.add(type_)
        yield from _condition(condition, path)
    yield from checks.not_negative(status, "status", "disruptionsAllowed", "currentHealthy", "desiredHealthy",
                                   "expectedPods")


def _condition(condition: Object, path: str) -> Iterator[Cause]:
    type_, reason = condition.get("type") or "", condition.get("reason") or ""
    yield from names.refused(f"{path}.type", type_, names.qualified(type_))
    yield from checks.choice(condition.get("status") or "", f"{path}.status", ("False", "True", "Unknown"))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        yield causes.invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield causes.required(f"{path}.lastTransitionTime")
    if not reason:
        yield causes.required(f"{path}.reason")
    elif not _REASON.fullmatch(reason):
        yield causes.invalid(f"{path}.reason", reason, _NO_REASON)
    if len(reason.encode()) > _LONGEST_REASON:
        yield causes.too_long(f"{path}.reason", _LONGEST_REASON)
    if len((condition.get("message") or "").encode()) > _LONGEST_MESSAGE:
        yield causes.too_long(f"{path}.message", _LONGEST_MESSAGE)


def scaler(scaler: Object, _old: Object) -> Iterator[Cause]:
    yield from checks.not_negative(_status(scaler), "status", "currentReplicas", "desiredReplicas")


def phase_defaults(thing: Object, _old: Object) -> None:
    """A claim or a volume of which nothing is known is pending."""
    status = _status(thing)
    if not status.get("phase"):
        thing["status"] = {**status, "phase": "Pending"}
