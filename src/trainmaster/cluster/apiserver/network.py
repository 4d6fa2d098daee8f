"""Who may reach pods, and how they are reached from outside: NetworkPolicy, Ingress, IngressClass."""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import addresses, causes, checks, labels, names, other_columns, statuses
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_INSIDE = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_THE_END = ("/..", "/.")
_LONGEST_CONTROLLER = 250


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
    else:
        if end < start:
            yield causes.invalid(f"{path}.endPort", start, "must be greater than or equal to `port`")
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
    yield from addresses.network_rules(cidr, f"{path}.cidr")
    whole = addresses.network(cidr)
    for index, text in enumerate(block.get("except") or ()) if whole is not None else ():
        at, part = f"{path}.except[{index}]", addresses.network(text)
        yield from addresses.network_rules(text, at)
        if part is not None and whole is not None and not addresses.is_inside(part, whole):
            yield causes.invalid(at, text, "must be a strict subset of `cidr`")


def _ingress_rules(ingress: Object, old: Object | None) -> Iterator[Cause]:
    spec = ingress.get("spec") or {}
    if spec.get("defaultBackend") is None and not spec.get("rules"):
        yield causes.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend_rules(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        path, host, http = f"spec.rules[{index}]", rule.get("host") or "", rule.get("http")
        yield from _host_rules(host, f"{path}.host")
        if http is not None and not http.get("paths"):
            yield causes.required(f"{path}.http.paths")
        for at, entry in enumerate((http or {}).get("paths") or ()):
            yield from _path_rules(entry, f"{path}.http.paths[{at}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for at, host in enumerate(tls.get("hosts") or ()):
            yield from names.refused(f"spec.tls[{index}].hosts[{at}]", host, names.host(host))
        if secret := tls.get("secretName"):
            yield from names.refused(f"spec.tls[{index}].secretName", secret, names.subdomain(secret))
    class_ = spec.get("ingressClassName")
    if class_ is not None:
        yield from names.refused("spec.ingressClassName", class_, names.subdomain(class_))
    marked = (ingress["metadata"].get("annotations") or {}).get(_CLASS)
    if old is None and None not in (marked, class_) and marked != class_:
        yield causes.invalid(f"annotations.{_CLASS}", marked, "must match `ingressClassName` when both are specified")


def _host_rules(host: str, path: str) -> Iterator[Cause]:
    if not host:
        return
    if addresses.parsed(host) is not None:
        yield causes.invalid(path, host, "must be a DNS name, not an IP address")
    yield from names.refused(path, host, names.host(host))


def _path_rules(entry: Object, path: str) -> Iterator[Cause]:
    type_, text = entry.get("pathType"), entry.get("path") or ""
    if type_ is None:       # without it, nobody knows what the rest means
        yield causes.required(f"{path}.pathType", "pathType must be specified")
        return
    if type_ not in _PATH_TYPES:
        yield causes.unsupported(f"{path}.pathType", type_, _PATH_TYPES)
    else:
        exact = type_ != "ImplementationSpecific"
        if (text or exact) and not text.startswith("/"):
            yield causes.invalid(f"{path}.path", text, "must be an absolute path")
        for part in _NOT_INSIDE if exact else ():
            if part in text:
                yield causes.invalid(f"{path}.path", text, f"must not contain '{part}'")
        for end in _NOT_AT_THE_END if exact else ():
            if text.endswith(end):
                yield causes.invalid(f"{path}.path", text, f"cannot end with '{end}'")
    yield from _backend_rules(entry.get("backend") or {}, f"{path}.backend")


def _backend_rules(backend: Object, path: str) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield causes.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference_rules(resource, f"{path}.resource")
    elif service is not None:
        yield from _service_rules(service, path)
    else:
        yield causes.invalid(path, "", "resource or service backend is required")


def _service_rules(service: Object, path: str) -> Iterator[Cause]:
    name, port = service.get("name") or "", service.get("port") or {}
    if not name:
        yield causes.required(f"{path}.service.name")
    else:
        yield from names.refused(f"{path}.service.name", name, names.label(name))
    if port.get("name") and port.get("number"):
        yield causes.invalid(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from checks.port(port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        yield from checks.port(port["number"], f"{path}.service.port.number")
    else:
        yield causes.required(path, "port name or number is required")


def _reference_rules(reference: Object, path: str) -> Iterator[Cause]:
    """An object of some other kind, which nobody here knows."""
    if reference.get("apiGroup") is not None:
        yield from names.refused(f"{path}.apiGroup", reference["apiGroup"], names.subdomain(reference["apiGroup"]))
    for field in ("kind", "name"):
        if not reference.get(field):
            yield causes.required(f"{path}.{field}")
        else:
            yield from names.refused(f"{path}.{field}", reference[field], names.path_segment(reference[field]))


def _class_defaults(thing: Object) -> None:
    parameters = (thing.get("spec") or {}).get("parameters")
    if isinstance(parameters, dict):
        parameters.setdefault("scope", "Cluster")


def _class_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec: Json = thing.get("spec") or {}
    controller = spec.get("controller") or ""
    if len(controller) > _LONGEST_CONTROLLER:
        yield causes.too_long("spec.controller", _LONGEST_CONTROLLER)
    yield from checks.domain_path(controller, "spec.controller")
    if spec.get("parameters") is not None:
        yield from _reference_rules(spec["parameters"], "spec.parameters")
        yield from _scope_rules(spec["parameters"], "spec.parameters")
    if old is not None:
        yield from checks.unchanged(controller, (old.get("spec") or {}).get("controller"), "spec.controller")


def _scope_rules(parameters: Object, path: str) -> Iterator[Cause]:
    """Where the parameters are: in a namespace, which is named, or in none."""
    scope = parameters.get("scope")
    space: Json = parameters.get("namespace")
    yield from checks.choice(scope, f"{path}.scope", ("Cluster", "Namespace"))
    if scope == "Namespace" and space is None:
        yield causes.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from names.refused(f"{path}.namespace", space, names.label(space))
    elif scope == "Cluster" and space is not None:
        yield causes.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


KINDS: tuple[Kind, ...] = (
    row("networking.k8s.io/v1", "networkpolicies", generation=True, defaults=_policy_defaults, rules=_policy_rules,
        columns=other_columns.NETWORK_POLICY),
    row("networking.k8s.io/v1", "ingresses", generation=True, rules=_ingress_rules,
        status_rules=statuses.ingress, columns=other_columns.INGRESS),
    row("networking.k8s.io/v1", "ingressclasses", generation=True, defaults=_class_defaults, rules=_class_rules,
        columns=other_columns.INGRESS_CLASS),
)
