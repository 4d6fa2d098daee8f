"""How pods are reached, besides services: EndpointSlice, NetworkPolicy, Ingress, IngressClass; and old Endpoints."""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, labels, names, other_columns, statuses
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ADDRESSES = 100
_MOST_PORTS = 20000
_NOT_A_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _slice_defaults(thing: Object) -> None:
    for port in thing.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
    thing.setdefault("endpoints", [])


def _slice_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    type_ = thing.get("addressType") or ""
    if not type_:
        yield causes.required("addressType")
    else:
        yield from checks.choice(type_, "addressType", ("FQDN", "IPv4", "IPv6"))
    for index, endpoint in enumerate(thing.get("endpoints") or ()):
        yield from _endpoint_rules(endpoint, f"endpoints[{index}]", type_)
    yield from _slice_port_rules(thing.get("ports") or [])
    if old is not None:
        yield from checks.unchanged(type_, old.get("addressType"), "addressType")


def _endpoint_rules(endpoint: Object, path: str, type_: str) -> Iterator[Cause]:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        yield causes.required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield causes.too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        at = f"{path}.addresses[{index}]"
        if type_ in {"IPv4", "IPv6"}:
            found = checks.address(address)
            if found is None:
                yield causes.invalid(at, address, checks.NOT_AN_ADDRESS)
            elif f"IPv{found.version}" != type_:
                yield causes.invalid(f"{path}.addresses", address, f"must be an {type_} address")
            yield from checks.outside(address, at)
        elif type_ == "FQDN":
            yield from names.refused(at, address, names.subdomain(address))
    if endpoint.get("nodeName") is not None:
        yield from names.refused(f"{path}.nodeName", endpoint["nodeName"], names.subdomain(endpoint["nodeName"]))
    if endpoint.get("hostname"):
        yield from names.refused(f"{path}.hostname", endpoint["hostname"], names.label(endpoint["hostname"]))


def _slice_port_rules(ports: list[Object]) -> Iterator[Cause]:
    if len(ports) > _MOST_PORTS:
        yield causes.too_many("ports", len(ports), _MOST_PORTS)
    taken = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            yield from names.refused(f"{path}.name", name, names.label(name))
        if name in taken:
            yield causes.duplicate(f"{path}.name", name)
        taken.add(name)
        yield from checks.choice(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from names.refused(f"{path}.appProtocol", port["appProtocol"], names.qualified(port["appProtocol"]))


def endpoints_rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    for index, subset in enumerate(thing.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield causes.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(field) or ()):
                where, found = f"{path}.{field}[{at}].ip", address.get("ip") or ""
                if checks.address(found) is None:
                    yield causes.invalid(where, found, checks.NOT_AN_ADDRESS)
                    yield causes.invalid(where, found, "must be a valid IP address")
                yield from checks.outside(found, where)
        ports = subset.get("ports") or []
        for at, port in enumerate(ports):
            if len(ports) > 1 and not port.get("name"):
                yield causes.required(f"{path}.ports[{at}].name")
            yield from checks.port(port.get("port") or 0, f"{path}.ports[{at}].port")
            yield from checks.choice(port.get("protocol"), f"{path}.ports[{at}].protocol", _PROTOCOLS)


def _policy_defaults(policy: Object) -> None:
    spec = policy.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _policy_rules(policy: Object, _old: Object | None) -> Iterator[Cause]:
    spec = policy["spec"]
    yield from labels.rules(spec["podSelector"], "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port_rules(port, f"{path}.ports[{at}]")
            for at, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_rules(peer, f"{path}.{peers}[{at}]")
    if len(spec["policyTypes"]) > 2:
        yield causes.invalid("spec.policyTypes", spec["policyTypes"], "may not specify more than two policyTypes")
        return
    for index, type_ in enumerate(spec["policyTypes"]):
        yield from checks.choice(type_, f"spec.policyTypes[{index}]", ("Ingress", "Egress"))


def _policy_port_rules(port: Object, path: str) -> Iterator[Cause]:
    yield from checks.choice(port.get("protocol"), f"{path}.protocol", ("TCP", "UDP", "SCTP"))
    start, end = port.get("port"), port.get("endPort")
    yield from checks.port(start, f"{path}.port")
    if end is None:
        return
    if start is None:
        yield causes.invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(start, str):
        yield causes.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
    elif end < start:
        yield causes.invalid(f"{path}.endPort", start, "must be greater than or equal to `port`")
    else:
        yield from checks.port(end, f"{path}.endPort")


def _peer_rules(peer: Object, path: str) -> Iterator[Cause]:
    block = peer.get("ipBlock")
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    for field in selectors:
        yield from labels.rules(peer[field], f"{path}.{field}")
    if block is not None:
        yield from _block_rules(block, f"{path}.ipBlock")
    if block is None and not selectors:
        yield causes.required(path, "must specify a peer")
    elif block is not None and selectors:
        yield causes.forbidden(path, "may not specify both ipBlock and another peer")


def _block_rules(block: Object, path: str) -> Iterator[Cause]:
    cidr = block.get("cidr") or ""
    if not cidr:
        yield causes.required(f"{path}.cidr")
        return
    whole = checks.network(cidr)
    if whole is None:
        yield causes.invalid(f"{path}.cidr", cidr, _NOT_A_NETWORK)
        return
    for index, text in enumerate(block.get("except") or ()):
        at, part = f"{path}.except[{index}]", checks.network(text)
        if part is None:
            yield causes.invalid(at, text, _NOT_A_NETWORK)
        # mypy does not see that both are of one version by then
        elif part.version != whole.version or part == whole or not part.subnet_of(whole):  # type: ignore[arg-type]
            yield causes.invalid(at, text, "must be a strict subset of `cidr`")


def _ingress_rules(ingress: Object, _old: Object | None) -> Iterator[Cause]:
    spec = ingress.get("spec") or {}
    if spec.get("defaultBackend") is None and not spec.get("rules"):
        yield causes.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend_rules(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        path, host = f"spec.rules[{index}]", rule.get("host") or ""
        yield from _host_rules(host, f"{path}.host")
        for at, entry in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _path_rules(entry, f"{path}.http.paths[{at}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for at, host in enumerate(tls.get("hosts") or ()):
            yield from names.refused(f"spec.tls[{index}].hosts[{at}]", host, names.host(host))
    if spec.get("ingressClassName") is not None:
        yield from names.refused("spec.ingressClassName", spec["ingressClassName"],
                                 names.subdomain(spec["ingressClassName"]))


def _host_rules(host: str, path: str) -> Iterator[Cause]:
    if not host:
        return
    if checks.address(host) is not None:
        yield causes.invalid(path, host, "must be a DNS name, not an IP address")
    else:
        yield from names.refused(path, host, names.host(host))


def _path_rules(entry: Object, path: str) -> Iterator[Cause]:
    type_, text = entry.get("pathType"), entry.get("path") or ""
    if type_ is None:       # without it, nobody knows what the rest means
        yield causes.required(f"{path}.pathType", "pathType must be specified")
        return
    if type_ not in {"Exact", "ImplementationSpecific", "Prefix"}:
        yield causes.unsupported(f"{path}.pathType", type_, ("Exact", "ImplementationSpecific", "Prefix"))
    elif (text or type_ != "ImplementationSpecific") and not text.startswith("/"):
        yield causes.invalid(f"{path}.path", text, "must be an absolute path")
    yield from _backend_rules(entry.get("backend") or {}, f"{path}.backend")


def _backend_rules(backend: Object, path: str) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is None and resource is None:
        yield causes.invalid(path, "", "resource or service backend is required")
    elif service is not None and resource is not None:
        yield causes.invalid(path, "", "cannot set both resource and service backends")
    elif service is not None:
        name, port = service.get("name") or "", service.get("port") or {}
        if not name:
            yield causes.required(f"{path}.service.name")
        else:
            yield from names.refused(f"{path}.service.name", name, names.label_1035(name))
        if port.get("name") and port.get("number"):
            yield causes.invalid(path, "", "cannot set both port name & port number")
        elif port.get("name"):
            yield from checks.port(port["name"], f"{path}.service.port.name")
        elif port.get("number"):
            yield from checks.port(port["number"], f"{path}.service.port.number")
        else:
            yield causes.required(path, "port name or number is required")


def _class_defaults(thing: Object) -> None:
    parameters = (thing.get("spec") or {}).get("parameters")
    if parameters:
        parameters.setdefault("scope", "Cluster")


def _class_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec: Json = thing.get("spec") or {}
    controller = spec.get("controller") or ""
    if not controller:
        yield causes.required("spec.controller")
    else:
        yield from checks.domain_path(controller, "spec.controller")
    if old is not None:
        yield from checks.unchanged(controller, (old.get("spec") or {}).get("controller"), "spec.controller")


KINDS: tuple[Kind, ...] = (
    row("discovery.k8s.io/v1", "endpointslices", generation=True, defaults=_slice_defaults, rules=_slice_rules,
        columns=other_columns.SLICE),
    row("networking.k8s.io/v1", "networkpolicies", generation=True, defaults=_policy_defaults, rules=_policy_rules,
        columns=other_columns.NETWORK_POLICY),
    row("networking.k8s.io/v1", "ingresses", generation=True, rules=_ingress_rules,
        status_rules=statuses.ingress, columns=other_columns.INGRESS),
    row("networking.k8s.io/v1", "ingressclasses", generation=True, defaults=_class_defaults, rules=_class_rules,
        columns=other_columns.INGRESS_CLASS),
)
