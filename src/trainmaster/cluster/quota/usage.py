"""What one object uses of what quotas limit, and which names of a quota its kind is counted under. Pure.

Pods are measured by compute, services by ports and balancers, claims by storage; everything else is only counted. A pod
that has ended, or should have, uses nothing but its place in the store.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from trainmaster.api.core import CLAIMS, PODS, SERVICES
from trainmaster.api.meta import Object, Resource, metadata, moment
from trainmaster.cluster.quota.amounts import NONE, ONE, Amount, Amounts, amount, most, plus, read

NODE_PORTS, BALANCERS = "services.nodeports", "services.loadbalancers"
STORAGE = "requests.storage"
OF_CLASS = ".storageclass.storage.k8s.io/"
# Compute that every container must name as soon as a quota limits it.
NAMED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})

_MEASURED = ("cpu", "memory", "ephemeral-storage")
_COMPUTE = frozenset({"pods", *_MEASURED, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _MEASURED)})
# Kinds that had names of their own before everything could be counted.
_OLD_NAMES = frozenset({
    "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services",
})


def count_name(resource: Resource) -> str:
    """`count/pods`, `count/jobs.batch`."""
    return f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"


def is_counted(resource: Resource) -> bool:
    """Events are not: they come and go by themselves."""
    return resource.namespaced and resource.plural != "events"


def names_of(resource: Resource, names: Iterable[str]) -> list[str]:
    """Those of the names under which objects of this kind are counted."""
    return [name for name in names if _is_name_of(resource, name)]


def _is_name_of(resource: Resource, name: str) -> bool:
    if name == count_name(resource):
        return True
    if resource.group:
        return False
    if resource.plural == PODS.plural:
        return name in _COMPUTE or name.removeprefix("requests.").startswith("hugepages-") or (
            name.startswith("requests.") and _is_extended(name.removeprefix("requests.")))
    if resource.plural == CLAIMS.plural:
        return name in (CLAIMS.plural, STORAGE) or (OF_CLASS in name and name.endswith((STORAGE, CLAIMS.plural)))
    if resource.plural == SERVICES.plural:
        return name in (SERVICES.plural, NODE_PORTS, BALANCERS)
    return name == resource.plural and name in _OLD_NAMES


def changes_with(resource: Resource) -> bool:
    """Whether an object of this kind can come to use more or less after it was made."""
    return not resource.group and resource.plural in (PODS.plural, SERVICES.plural, CLAIMS.plural)


def usage(resource: Resource, thing: Object, now: datetime) -> Amounts:
    used: Amounts = {count_name(resource): ONE}
    if resource.group:
        return used
    if resource.plural == PODS.plural:
        return {**used, **_compute(thing)} if _is_alive(thing, now) else used
    if resource.plural in _OLD_NAMES:
        used[resource.plural] = ONE
    if resource.plural == SERVICES.plural:
        used |= _ports(thing.get("spec") or {})
    elif resource.plural == CLAIMS.plural:
        used |= _storage(thing)
    return used


def container_usage(resources: Object) -> Amounts:
    return _measured(read(resources.get("requests")), read(resources.get("limits")))


def _is_alive(pod: Object, now: datetime) -> bool:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    about = metadata(pod)
    ends, grace = about.get("deletionTimestamp"), about.get("deletionGracePeriodSeconds")
    return not ends or grace is None or now <= moment(ends) + timedelta(seconds=grace)


def _compute(pod: Object) -> Amounts:
    spec = pod.get("spec") or {}
    requests, limits = (_needs(spec, field) for field in ("requests", "limits"))
    overhead = read(spec.get("overhead"))
    requests = plus(requests, overhead)
    limits = plus(limits, {name: each for name, each in overhead.items() if limits.get(name, NONE).value})
    return {"pods": ONE, **_measured(requests, limits)}


def _needs(spec: Object, field: str) -> Amounts:
    """What the containers need at once: those that stay together, or the hungriest of those that run before them."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = plus(total, read((container.get("resources") or {}).get(field)))
    staying: Amounts = {}
    first: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = read((container.get("resources") or {}).get(field))
        if container.get("restartPolicy") == "Always":
            staying = plus(staying, own)
            first = most(first, staying)
        else:
            first = most(first, plus(staying, own))
    total = most(plus(total, staying), first)
    return {**total, **read((spec.get("resources") or {}).get(field))}   # what the pod as a whole says goes first


def _measured(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {}
    for name in _MEASURED:
        if name in requests:
            found[name] = found[f"requests.{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, each in requests.items():
        if name.startswith("hugepages-"):
            found[name] = each
        if name.startswith("hugepages-") or _is_extended(name):
            found[f"requests.{name}"] = each
    return found


def _is_extended(name: str) -> bool:
    """Whether it is a resource that somebody added to nodes, such as `nvidia.com/gpu`."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _ports(spec: Object) -> Amounts:
    ports = spec.get("ports") or ()
    kind = spec.get("type")
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        on_nodes = sum(1 for port in ports if port.get("nodePort"))
    else:
        on_nodes = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    return {NODE_PORTS: amount(on_nodes), BALANCERS: ONE if kind == "LoadBalancer" else NONE}


def _storage(claim: Object) -> Amounts:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    used: Amounts = {}
    name = spec.get("storageClassName") or ""
    if name:
        used[f"{name}{OF_CLASS}{CLAIMS.plural}"] = ONE
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is not None:
        size = max(amount(asked), amount((status.get("allocatedResources") or {}).get("storage", 0)), key=_value)
        used[STORAGE] = size
        if name:
            used[f"{name}{OF_CLASS}{STORAGE}"] = size
    return used


def _value(each: Amount) -> float:
    return float(each.value)
