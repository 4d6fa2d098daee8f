"""Where the pods behind a service are: EndpointSlice, and the older Endpoints."""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import addresses, causes, checks, columns, names, other_columns
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ADDRESSES, _MOST_ENDPOINTS, _MOST_PORTS = 100, 1000, 20000
_MOST_HINTS = 8


def _slice_defaults(thing: Object) -> None:
    for port in thing.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
    for endpoint in thing.setdefault("endpoints", []):
        endpoint.pop("deprecatedTopology", None)    # is read only in this version


def _slice_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    type_ = thing.get("addressType") or ""
    if not type_:
        yield causes.required("addressType")
    else:
        yield from checks.choice(type_, "addressType", ("FQDN", "IPv4", "IPv6"))
    yield from _slice_port_rules(thing.get("ports") or [])
    found = thing.get("endpoints") or []
    if len(found) > _MOST_ENDPOINTS:
        yield causes.too_many("endpoints", len(found), _MOST_ENDPOINTS)
    elif old is None or found != (old.get("endpoints") or []):      # what was taken once may stay
        for index, endpoint in enumerate(found):
            yield from _endpoint_rules(endpoint, f"endpoints[{index}]", type_)
    if old is not None:
        yield from checks.unchanged(type_, old.get("addressType"), "addressType")


def _slice_port_rules(ports: list[Object]) -> Iterator[Cause]:
    if len(ports) > _MOST_PORTS:
        yield causes.too_many("ports", len(ports), _MOST_PORTS)
        return
    taken = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            yield from names.refused(f"{path}.name", name, names.label(name))
        if name in taken:
            yield causes.duplicate(f"{path}.name", name)
        taken.add(name)
        yield from checks.choice(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
        yield from _application_rules(port, path)


def _application_rules(port: Object, path: str) -> Iterator[Cause]:
    if port.get("appProtocol") is not None:
        yield from names.refused(f"{path}.appProtocol", port["appProtocol"], names.qualified(port["appProtocol"]))


def _endpoint_rules(endpoint: Object, path: str, type_: str) -> Iterator[Cause]:
    found = endpoint.get("addresses") or []
    if not found:
        yield causes.required(f"{path}.addresses", "must contain at least 1 address")
    elif len(found) > _MOST_ADDRESSES:
        yield causes.too_many(f"{path}.addresses", len(found), _MOST_ADDRESSES)
    for index, address in enumerate(found):
        if type_ in {"IPv4", "IPv6"}:
            yield from _address_rules(address, f"{path}.addresses", index, type_)
        elif type_ == "FQDN":
            yield from _domain_rules(address, f"{path}.addresses[{index}]")
    if endpoint.get("nodeName") is not None:
        yield from names.refused(f"{path}.nodeName", endpoint["nodeName"], names.subdomain(endpoint["nodeName"]))
    if endpoint.get("hostname") is not None:
        yield from names.refused(f"{path}.hostname", endpoint["hostname"], names.label(endpoint["hostname"]))
    yield from _hint_rules(endpoint.get("hints") or {}, f"{path}.hints")


def _address_rules(address: str, path: str, index: int, type_: str) -> Iterator[Cause]:
    # What is newer is stricter: IPv6 came with this kind.
    rule = addresses.rules if type_ == "IPv4" else addresses.strict_rules
    if faults := list(rule(address, f"{path}[{index}]")):
        yield from faults
        return
    found = addresses.parsed(address)
    if found is not None and f"IPv{found.version}" != type_:
        yield causes.invalid(path, address, f"must be an {type_} address")
    yield from addresses.reach_rules(address, f"{path}[{index}]")


def _domain_rules(name: str, path: str) -> Iterator[Cause]:
    """A name of at least two parts, of which each could be a label."""
    if not name:
        yield causes.required(path)
        return
    name = name.removesuffix(".")
    if faults := names.subdomain(name):
        yield causes.invalid(path, name, ",".join(faults))
        return
    parts = name.split(".")
    if len(parts) < 2:
        yield causes.invalid(path, name, "should be a domain with at least two segments separated by dots")
        return
    for part in parts:
        if faults := names.label(part):
            yield causes.invalid(path, part, ",".join(faults))
            return


def _hint_rules(hints: Object, path: str) -> Iterator[Cause]:
    """Who is to use an endpoint: nobody is named twice."""
    for field, rule in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        found = hints.get(field) or []
        if len(found) > _MOST_HINTS:
            yield causes.too_many(f"{path}.{field}", len(found), _MOST_HINTS)
            return
        said = [hint.get("name") or "" for hint in found]
        for index, name in enumerate(said):
            at = f"{path}.{field}[{index}].name"
            if name in said[:index]:
                yield causes.duplicate(at, name)
            yield from names.refused(at, name, rule(name))


def _defaults(thing: Object) -> None:
    for subset in thing.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    subsets = thing.get("subsets") or []
    if old is not None and subsets == (old.get("subsets") or []):
        return      # what was taken once may stay
    for index, subset in enumerate(subsets):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield causes.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for at, place in enumerate(subset.get(field) or ()):
                yield from _place_rules(place, f"{path}.{field}[{at}]")
        ports = subset.get("ports") or []
        for at, port in enumerate(ports):
            yield from _port_rules(port, f"{path}.ports[{at}]", named=len(ports) > 1)


def _place_rules(place: Object, path: str) -> Iterator[Cause]:
    address, host, node = place.get("ip") or "", place.get("hostname") or "", place.get("nodeName")
    yield from addresses.rules(address, f"{path}.ip")
    if host:
        yield from names.refused(f"{path}.hostname", host, names.label(host))
    if node is not None:
        yield from names.refused(f"{path}.nodeName", node, names.subdomain(node))
    yield from addresses.reach_rules(address, f"{path}.ip")


def _port_rules(port: Object, path: str, *, named: bool) -> Iterator[Cause]:
    name = port.get("name") or ""
    if named and not name:
        yield causes.required(f"{path}.name")
    elif name:
        yield from names.refused(f"{path}.name", name, names.label(name))
    yield from checks.port(port.get("port") or 0, f"{path}.port")
    yield from checks.choice(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
    yield from _application_rules(port, path)


KINDS: tuple[Kind, ...] = (
    row("v1", "endpoints", defaults=_defaults, rules=_rules, columns=columns.ENDPOINTS),
    row("discovery.k8s.io/v1", "endpointslices", generation=True, defaults=_slice_defaults, rules=_slice_rules,
        columns=other_columns.SLICE),
)
