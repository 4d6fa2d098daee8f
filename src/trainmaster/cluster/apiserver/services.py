"""Services: defaults, rules, and the addresses they are given."""

import ipaddress
from collections.abc import Iterable, Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
# Addresses with a fixed meaning: the network, the API server, DNS, broadcast.
RESERVED = frozenset({str(NETWORK[0]), str(NETWORK[1]), str(NETWORK[10]), str(NETWORK[-1])})
HEADLESS = "None"
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_FAMILIES = ("IPv4", "IPv6")
NODE_PORTS = range(30000, 32768)
TAKEN = "provided port is already allocated"
_AFFINITY_SECONDS, _LONGEST_AFFINITY = 10800, 86400


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
            raise ValueError(f"failed to allocate IP {wanted}: the provided IP is not in the valid range. "
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
        port.setdefault("protocol", "TCP")
        if "port" in port and port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port["port"]
    if spec["type"] != "ExternalName":
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if is_outside(spec):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])


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


def rules(service: Object, old: Object | None) -> Iterator[Cause]:
    spec = service["spec"]
    if wrong := list(_family_rules(spec)):       # nothing else is looked at then
        yield from wrong
        return
    headless = spec.get("clusterIP") == HEADLESS
    if spec["type"] != "ExternalName" and not spec.get("ports") and not headless:
        yield causes.required("spec.ports")
    if headless and spec["type"] in {"NodePort", "LoadBalancer"}:
        yield causes.invalid("spec.clusterIPs[0]", HEADLESS,
                             f"may not be set to 'None' for {spec['type']} services")
    if spec["type"] == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield causes.forbidden(f"spec.{field}", "may not be set for ExternalName services")
        yield from _external_name_rules(spec.get("externalName") or "")
    yield from _port_rules(spec.get("ports") or [], spec["type"])
    yield from names.labels(spec.get("selector") or {}, "spec.selector")
    yield from checks.choice(spec["sessionAffinity"], "spec.sessionAffinity", ("ClientIP", "None"))
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= _LONGEST_AFFINITY:
        yield causes.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds,
                             f"must be greater than 0 and less than {_LONGEST_AFFINITY}")
    for index, address in enumerate(spec.get("externalIPs") or ()):
        if checks.address(address) is None:
            yield causes.invalid(f"spec.externalIPs[{index}]", address, checks.NOT_AN_ADDRESS)
    yield from checks.choice(spec["type"], "spec.type", TYPES)
    yield from _policy_rules(spec)
    yield from _health_check_rules(spec, (old or {}).get("spec") or {})
    was = ((old or {}).get("spec") or {}).get("clusterIP")
    if was and spec["type"] != "ExternalName" and spec.get("clusterIP") != was:
        yield causes.invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")


def _external_name_rules(name: str) -> Iterator[Cause]:
    if not name:
        yield causes.required("spec.externalName")
    else:
        yield from names.refused("spec.externalName", name.removesuffix("."), names.subdomain(name.removesuffix(".")))


def _family_rules(spec: Object) -> Iterator[Cause]:
    """This cluster speaks IPv4 only."""
    if spec["type"] == "ExternalName":
        return
    families = spec.get("ipFamilies") or ()
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            yield causes.unsupported(path, family, _FAMILIES)
        elif family in families[:index]:
            yield causes.duplicate(path, family)
        elif family != "IPv4":
            yield causes.invalid(path, family, "not configured on this cluster")
    policy = spec.get("ipFamilyPolicy")
    yield from checks.choice(policy, "spec.ipFamilyPolicy", ("PreferDualStack", "RequireDualStack", "SingleStack"))
    if policy == "RequireDualStack":
        yield causes.invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")


def _policy_rules(spec: Object) -> Iterator[Cause]:
    policy = spec.get("externalTrafficPolicy")
    if policy and not is_outside(spec):
        yield causes.invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    elif policy:
        yield from checks.choice(policy, "spec.externalTrafficPolicy", ("Cluster", "Local"))
    yield from checks.choice(spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy", ("Cluster", "Local"))


def _health_check_rules(spec: Object, was: Object) -> Iterator[Cause]:
    port = spec.get("healthCheckNodePort") or 0
    if port and not needs_health_check(spec):
        yield causes.invalid("spec.healthCheckNodePort", port,
                             "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
    if needs_health_check(was) and needs_health_check(spec) and port != (was.get("healthCheckNodePort") or 0):
        yield causes.forbidden("spec.healthCheckNodePort", "field is immutable")


def _port_rules(ports: list[Object], type_: str) -> Iterator[Cause]:
    taken: set[str] = set()
    served: set[tuple[int, str]] = set()
    exposed: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        path, name, protocol = f"spec.ports[{index}]", port.get("name") or "", str(port.get("protocol"))
        if not name and len(ports) > 1:
            yield causes.required(f"{path}.name")
        elif name:
            yield from names.refused(f"{path}.name", name, names.label(name))
            if name in taken:
                yield causes.duplicate(f"{path}.name", name)
            taken.add(name)
        if not 1 <= (port.get("port") or 0) <= checks.LARGEST_PORT:
            yield causes.invalid(f"{path}.port", port.get("port") or 0, "must be between 1 and 65535, inclusive")
        yield from checks.choice(protocol, f"{path}.protocol", PROTOCOLS)
        yield from checks.port(port.get("targetPort"), f"{path}.targetPort")
        if (port.get("port") or 0, protocol) in served:
            told = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": port.get("port"), "TargetPort": 0,
                    "NodePort": 0}
            yield causes.duplicate(path, told)
        served.add((port.get("port") or 0, protocol))
        if port.get("nodePort"):
            if type_ not in {"NodePort", "LoadBalancer"}:
                yield causes.forbidden(f"{path}.nodePort", f"may not be used when `type` is '{type_}'")
            elif (port["nodePort"], protocol) in exposed:
                yield causes.invalid(f"{path}.nodePort", port["nodePort"], TAKEN)
            exposed.add((port["nodePort"], protocol))
