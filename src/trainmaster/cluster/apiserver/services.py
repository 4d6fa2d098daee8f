"""Services: defaults, and the addresses and ports they are given. What one may say is in `service_rules`."""

import ipaddress
from collections.abc import Iterable

from trainmaster.api.meta import Object

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
# Addresses with a fixed meaning: the network, the API server, DNS, broadcast.
RESERVED = frozenset({str(NETWORK[0]), str(NETWORK[1]), str(NETWORK[10]), str(NETWORK[-1])})
HEADLESS = "None"
NODE_PORTS = range(30000, 32768)
TAKEN = "provided port is already allocated"
_AFFINITY_SECONDS = 10800


class Addresses:
    """Which cluster addresses are taken. Rebuilt from the stored services at start; the next free one is the next in
    turn, so that an address just given back is not reused while names still point to it.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {address for address in taken if address and address != HEADLESS}
        self._last = 0

    def reserve(self, wanted: str) -> str:
        """Take `wanted`, or any free address for "". Raises ValueError with the reason."""
        if wanted:
            return self._exactly(wanted)
        size = NETWORK.num_addresses
        for step in range(1, size):
            at = (self._last + step) % size
            address = str(NETWORK[at])
            if address not in self._taken and address not in RESERVED:
                self._last = at
                self._taken.add(address)
                return address
        raise ValueError(f"no address is left in {NETWORK}")

    def release(self, address: str) -> None:
        self._taken.discard(address)

    def _exactly(self, wanted: str) -> str:
        try:
            address = ipaddress.IPv4Address(wanted)
        except ValueError:
            raise ValueError("must be a valid IP address, (e.g. 10.9.8.7)") from None
        if address not in NETWORK:
            raise ValueError(f"failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the valid range. "
                             f"The range of valid IPs is {NETWORK}")
        if wanted in self._taken:
            raise ValueError(f"failed to allocate IP {wanted}: provided IP is already allocated")
        self._taken.add(wanted)
        return wanted


class NodePorts:
    """Which node ports are taken; the next free one is the next in turn, as with addresses."""

    def __init__(self, taken: Iterable[int] = ()) -> None:
        self._taken = set(taken)
        self._last = NODE_PORTS[-1]

    def take(self, wanted: int) -> int:
        """Take `wanted`, or any free port for 0. Raises ValueError with the reason."""
        if wanted:
            if wanted not in NODE_PORTS:
                raise ValueError(f"provided port is not in the valid range. The range of valid ports is "
                                 f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}")
            if wanted in self._taken:
                raise ValueError(TAKEN)
            self._taken.add(wanted)
            return wanted
        for step in range(1, len(NODE_PORTS) + 1):
            port = NODE_PORTS[(self._last - NODE_PORTS[0] + step) % len(NODE_PORTS)]
            if port not in self._taken:
                self._last = port
                self._taken.add(port)
                return port
        raise ValueError("failed to allocate a nodePort: range is full")

    def release(self, ports: Iterable[int]) -> None:
        self._taken.difference_update(ports)


def node_ports(service: Object) -> set[int]:
    """Those that a service has."""
    spec = service.get("spec") or {}
    found = {port.get("nodePort") for port in spec.get("ports") or ()} | {spec.get("healthCheckNodePort")}
    return {port for port in found if port}


def shared_node_ports(spec: Object) -> dict[int, int]:
    """The node port of each port for which one is asked: with another protocol, it has the same."""
    found = [(port.get("port") or 0, port["nodePort"]) for port in spec.get("ports") or () if port.get("nodePort")]
    return dict(reversed(found))


def begin(service: Object) -> None:
    service["status"] = {"loadBalancer": {}}


def defaults(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec["type"] = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "ClientIP":
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client.setdefault("timeoutSeconds", _AFFINITY_SECONDS)
    else:
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        if "port" in port and port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port["port"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["type"] != "ExternalName":
        both = is_without_pods(spec) and spec.get("ipFamilyPolicy") != "SingleStack"
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if is_outside(spec):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def is_without_pods(spec: Object) -> bool:
    """Whether it is a name only, for endpoints that somebody else keeps."""
    return spec.get("clusterIP") == HEADLESS and not spec.get("selector")


def is_outside(spec: Object) -> bool:
    """Whether it can be reached from outside the cluster."""
    return spec.get("type") in {"NodePort", "LoadBalancer"} or (
        spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def wants_node_ports(spec: Object) -> bool:
    return spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def needs_health_check(spec: Object) -> bool:
    """Whether whoever balances load must be able to ask each node for pods: that takes a port of its own."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def carry(service: Object, old: Object) -> None:
    """What an update leaves out stays as it was; what belongs to another type goes with the type."""
    spec, was = service.setdefault("spec", {}), old.get("spec") or {}
    type_ = spec.get("type") or "ClusterIP"
    if type_ == "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            if spec.get(field) == was.get(field):
                spec.pop(field, None)
    elif was.get("clusterIP"):
        if not spec.get("clusterIP"):
            spec.pop("clusterIP", None)
        moved = spec.get("clusterIP") not in (None, was["clusterIP"])
        if moved and spec.get("clusterIPs") == was.get("clusterIPs"):
            spec.pop("clusterIPs", None)      # who changes the one field means the other, too
        spec.setdefault("clusterIP", was["clusterIP"])
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if needs_health_check(was):
        if needs_health_check(spec):
            spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or was.get("healthCheckNodePort")
        elif spec.get("healthCheckNodePort") == was.get("healthCheckNodePort"):
            spec.pop("healthCheckNodePort", None)
    if type_ not in {"NodePort", "LoadBalancer"}:
        _forget_node_ports(spec, was)
        return
    known = {(port.get("port"), port.get("protocol", "TCP")): port["nodePort"]
             for port in was.get("ports") or () if port.get("nodePort")}
    for port in spec.get("ports") or ():
        if not port.get("nodePort") and (found := known.get((port.get("port"), port.get("protocol", "TCP")))):
            port["nodePort"] = found


def _forget_node_ports(spec: Object, was: Object) -> None:
    if was.get("type") not in {"NodePort", "LoadBalancer"}:
        return
    given = {port.get("nodePort") for port in was.get("ports") or ()}
    for port in spec.get("ports") or ():
        if port.get("nodePort") in given:
            port.pop("nodePort", None)
    for field in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"):
        if spec.get(field) == was.get(field):
            spec.pop(field, None)
