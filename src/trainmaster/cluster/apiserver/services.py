"""Services: defaults, rules, and the addresses they are given."""

import ipaddress
from collections.abc import Iterable, Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, names
from trainmaster.cluster.apiserver.causes import Cause

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
# Addresses with a fixed meaning: the network, the API server, DNS, broadcast.
RESERVED = frozenset({str(NETWORK[0]), str(NETWORK[1]), str(NETWORK[10]), str(NETWORK[-1])})
HEADLESS = "None"
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")


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


def begin(service: Object) -> None:
    service["status"] = {"loadBalancer": {}}


def defaults(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if "port" in port and not port.get("targetPort"):  # clients in Go send 0 for what was left out
            port["targetPort"] = port["port"]
    if spec["type"] != "ExternalName":
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])


def keep_address(service: Object, old: Object) -> None:
    """An update that leaves the address out means the one the service has."""
    was = (old.get("spec") or {}).get("clusterIP")
    spec = service.setdefault("spec", {})
    if spec.get("type") == "ExternalName":
        for field in ("clusterIP", "clusterIPs"):
            spec.pop(field, None)
    elif was:
        spec.setdefault("clusterIP", was)
        spec.setdefault("clusterIPs", [spec["clusterIP"]])


def rules(service: Object, old: Object | None) -> Iterator[Cause]:
    spec = service["spec"]
    if spec["type"] not in TYPES:
        yield causes.unsupported("spec.type", spec["type"], TYPES)
    if spec["type"] == "ExternalName":
        if not spec.get("externalName"):
            yield causes.required("spec.externalName")
    elif not spec.get("ports") and spec.get("clusterIP") != HEADLESS:
        yield causes.required("spec.ports")
    if spec["sessionAffinity"] not in {"ClientIP", "None"}:
        yield causes.unsupported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    yield from names.labels(spec.get("selector") or {}, "spec.selector")
    yield from _port_rules(spec.get("ports") or [])
    was = ((old or {}).get("spec") or {}).get("clusterIP")
    if was and spec["type"] != "ExternalName" and spec.get("clusterIP") != was:
        yield causes.invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")


def _port_rules(ports: list[Object]) -> Iterator[Cause]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name") or ""
        if not name and len(ports) > 1:
            yield causes.required(f"{path}.name")
        elif name:
            yield from names.refused(f"{path}.name", name, names.label(name))
            if name in taken:
                yield causes.duplicate(f"{path}.name", name)
            taken.add(name)
        if not 1 <= (port.get("port") or 0) <= 65535:
            yield causes.invalid(f"{path}.port", port.get("port") or 0, "must be between 1 and 65535, inclusive")
        target = port.get("targetPort")
        if isinstance(target, int) and not 1 <= target <= 65535:
            yield causes.invalid(f"{path}.targetPort", target, "must be between 1 and 65535, inclusive")
        if port.get("protocol") not in PROTOCOLS:
            yield causes.unsupported(f"{path}.protocol", port.get("protocol"), PROTOCOLS)
