"""Where a service's address leads: the doors of services and pods, and what is behind each. Pure.

A door is an address, port and protocol that clients use; behind it are the addresses and ports of pods. Cluster
addresses are doors inside the cluster's network, node ports and host ports are doors on the machine's loopback (and
node ports also on the node's address, as pods see it).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from trainmaster.api.meta import Key, Object, labels_of, name_of, namespace_of
from trainmaster.cluster.network.layout import DNS_PORT, WAY_OUT_PORT

SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "service.kubernetes.io/headless"
LOOPBACK = "127.0.0.1"
PROTOCOLS = ("TCP", "UDP")
_AFFINITY_SECONDS = 10800

Backend: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class Door:
    """What clients connect to."""

    address: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True)
class Forward:
    """What is behind a door; nothing: whoever knocks is refused."""

    backends: tuple[Backend, ...] = ()
    affinity: int = 0          # seconds for which a client stays with the backend it was given; 0: each time any


@dataclass(frozen=True, slots=True)
class Plan:
    """All doors, and for those on the machine's loopback the object that asked for each."""

    inside: Mapping[Door, Forward]
    outside: Mapping[Door, Forward]
    shared: Mapping[Door, Forward]       # on the node's address, to pods that share the machine's network
    askers: Mapping[Door, Object]


def plan(services: Iterable[Object], slices: Iterable[Object], pods: Iterable[Object], node: str) -> Plan:
    """The doors that these objects ask for; `node` is the address of the node as pods see it."""
    inside: dict[Door, Forward] = {}
    outside: dict[Door, Forward] = {}
    shared: dict[Door, Forward] = {}
    askers: dict[Door, Object] = {}
    behind: dict[Key, list[Object]] = {}
    for one in slices:
        name = labels_of(one).get(SERVICE_NAME)
        if name and one.get("addressType", "IPv4") == "IPv4":
            behind.setdefault(Key(namespace_of(one), name), []).append(one)
    for service in services:
        spec = service.get("spec") or {}
        address = spec.get("clusterIP")
        if not address or address == "None" or spec.get("type") == "ExternalName":
            continue
        found = behind.get(Key(namespace_of(service), name_of(service)), [])
        for port in spec.get("ports") or ():
            protocol = str(port.get("protocol") or "TCP")
            if protocol not in PROTOCOLS:
                continue
            forward = Forward(_backends(found, str(port.get("name") or "")), _affinity(spec))
            inside[Door(str(address), int(port["port"]), protocol)] = forward
            if number := int(port.get("nodePort") or 0):
                inside[Door(node, number, protocol)] = forward
                outside[door := Door(LOOPBACK, number, protocol)] = forward
                askers[door] = service
    for pod in pods:
        for door, backend in _host_ports(pod):
            outside.setdefault(door, Forward((backend,)))
            askers.setdefault(door, pod)
        for door in _shared_ports(pod, node):
            shared[door] = Forward(((LOOPBACK, door.port),))
    return Plan(inside, outside, shared, askers)


def has_door(service: Object) -> bool:
    """Whether a change of this service can change a plan."""
    return (service.get("spec") or {}).get("clusterIP") != "None"


def is_behind_door(one: Object) -> bool:
    """The same of a slice of endpoints."""
    return HEADLESS not in labels_of(one)


def opens_door(pod: Object) -> bool:
    """The same of a pod."""
    spec = pod.get("spec") or {}
    ports = (port for container in spec.get("containers") or () for port in container.get("ports") or ())
    return bool(spec.get("hostNetwork")) or any(port.get("hostPort") for port in ports)


def _affinity(spec: Object) -> int:
    if spec.get("sessionAffinity") != "ClientIP":
        return 0
    client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    return int(client.get("timeoutSeconds") or _AFFINITY_SECONDS)


def _backends(slices: Iterable[Object], port: str) -> tuple[Backend, ...]:
    """The ready ones; while all are ending, those that still serve."""
    ready: set[Backend] = set()
    serving: set[Backend] = set()
    for one in slices:
        for number in [entry.get("port") for entry in one.get("ports") or () if (entry.get("name") or "") == port]:
            for endpoint in one.get("endpoints") or () if number else ():
                conditions = endpoint.get("conditions") or {}
                found = {(str(address), int(number)) for address in (endpoint.get("addresses") or ())[:1]}
                if conditions.get("ready") is not False:
                    ready |= found
                elif conditions.get("serving") and conditions.get("terminating"):
                    serving |= found
    return tuple(sorted(ready or serving))


def _host_ports(pod: Object) -> Iterable[tuple[Door, Backend]]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not status.get("podIP") or spec.get("hostNetwork") or status.get("phase") in ("Succeeded", "Failed"):
        return
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            protocol = str(port.get("protocol") or "TCP")
            if port.get("hostPort") and protocol in PROTOCOLS:
                backend = (str(status["podIP"]), int(port["containerPort"]))
                yield Door(LOOPBACK, int(port["hostPort"]), protocol), backend


def _shared_ports(pod: Object, node: str) -> Iterable[Door]:
    """What a pod in the machine's network says it listens on, but for what the node itself has there."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("hostNetwork") or not status.get("podIP") or status.get("phase") in ("Succeeded", "Failed"):
        return
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            protocol = str(port.get("protocol") or "TCP")
            if protocol in PROTOCOLS and int(port["containerPort"]) not in (DNS_PORT, WAY_OUT_PORT):
                yield Door(node, int(port["containerPort"]), protocol)
