"""What a service may say: its type, its addresses and ports, and how traffic comes to it. Pure.

This cluster speaks IPv4 only, and says so in the words of a real one that does.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import addresses, causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.services import HEADLESS, TAKEN, is_outside, is_without_pods, needs_health_check

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 86400
_RANGES, _HINTS, _MODE = ("service.beta.kubernetes.io/load-balancer-source-ranges",
                          "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
_BALANCED_ONLY = "may only be used when `type` is 'LoadBalancer'"


def rules(service: Object, old: Object | None) -> Iterator[Cause]:
    spec, was = service["spec"], (old or {}).get("spec") or {}
    marks = service["metadata"].get("annotations") or {}
    for look in (_address_rules, _family_rules, _node_port_rules):
        if wrong := list(look(spec, was)):      # seen when addresses and ports are given out: nothing else is looked at
            yield from wrong
            return
    if marks.get(_HINTS, marks.get(_MODE)) != marks.get(_MODE, marks.get(_HINTS)):
        yield causes.invalid(f"metadata.annotations[{_MODE}]", marks[_MODE],
                             f"must match annotations[{_HINTS}] when both are specified")
    yield from _type_rules(spec)
    yield from _port_rules(spec.get("ports") or [])
    yield from names.labels(spec.get("selector") or {}, "spec.selector")
    yield from _affinity_rules(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        faults = [] if address in (was.get("externalIPs") or ()) else list(addresses.rules(address, path))
        yield from faults or addresses.reach_rules(address, path)
    yield from checks.choice(spec["type"], "spec.type", TYPES)
    yield from _port_use_rules(spec.get("ports") or [], spec["type"])
    yield from _balancer_rules(spec, was, marks)
    yield from _policy_rules(spec, was)
    if was.get("clusterIP") and spec["type"] != "ExternalName" and spec.get("clusterIP") != was["clusterIP"]:
        yield causes.invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")


def _address_rules(spec: Object, was: Object) -> Iterator[Cause]:
    """The address inside the cluster: one, in two fields that must agree, and of a family that exists."""
    if spec["type"] == "ExternalName":
        return
    one, many, path = spec.get("clusterIP") or "", spec.get("clusterIPs") or [], "spec.clusterIPs"
    if one and not many:
        yield causes.required(path)
    elif one and many[0] != one:
        yield causes.invalid(path, many, "first value must match `clusterIP`")
    elif many and not one:
        yield causes.invalid(path, many, "must be empty when `clusterIP` is not specified")
    families = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        yield from checks.choice(family, f"spec.ipFamilies[{index}]", _FAMILIES)
        if family in families[:index]:
            yield causes.duplicate(f"spec.ipFamilies[{index}]", family)
    yield from checks.choice(spec.get("ipFamilyPolicy"), "spec.ipFamilyPolicy", _POLICIES)
    faults = list(_each_address(many, was.get("clusterIPs") or [], path))
    yield from faults
    if len(many) > 2:
        yield causes.invalid(path, many, "may only hold up to 2 values")
    if not faults and len(many) > 1 and sorted(map(_version, many)) != [4, 6]:
        yield causes.invalid(path, many, "may specify no more than one IP for each IP family")


def _each_address(found: list[str], before: list[str], path: str) -> Iterator[Cause]:
    for index, address in enumerate(found):
        if index == 0 and address == HEADLESS:
            if len(found) > 1:
                yield causes.invalid(path, found, "'None' must be the first and only value")
        elif address not in before:
            yield from addresses.rules(address, f"{path}[{index}]")


def _version(address: str) -> int:
    found = addresses.parsed(address)
    return 0 if found is None else found.version


def _family_rules(spec: Object, _was: Object) -> Iterator[Cause]:
    """What was asked of a cluster that has one family."""
    if spec["type"] == "ExternalName":
        return
    faults = list(_count_rules(spec))
    yield from faults
    if faults or is_without_pods(spec):      # whoever answers for a mere name may have any address
        return
    policy = spec.get("ipFamilyPolicy")
    if policy == "RequireDualStack":
        yield causes.invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family == "IPv6":
            yield causes.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _count_rules(spec: Object) -> Iterator[Cause]:
    """As many families and addresses as the policy says, and as there are."""
    families, many, policy = spec.get("ipFamilies") or [], spec.get("clusterIPs") or [], spec.get("ipFamilyPolicy")
    for what, found in (("cluster IPs", many), ("IP families", families)) if policy == "SingleStack" else ():
        if len(found) == 2:
            yield causes.invalid("spec.ipFamilyPolicy", policy, "must be 'RequireDualStack' or 'PreferDualStack' when "
                                 f"multiple {what} are specified")
    for index, address in enumerate(many):
        if _version(address) == 6:
            yield causes.invalid(f"spec.clusterIPs[{index}]", many, "IPv6 is not configured on this cluster")


def _node_port_rules(spec: Object, was: Object) -> Iterator[Cause]:
    """No port of the nodes is asked for twice, except for one port of the service, with two protocols."""
    ports = spec.get("ports") or []
    first = {each.get("port") or 0: each["nodePort"] for each in reversed(ports) if each.get("nodePort")}
    known: dict[int, int] = {}
    taken: set[int] = set()
    for index, port in enumerate(ports if spec["type"] in {"NodePort", "LoadBalancer"} and not was else ()):
        number, wanted = port.get("port") or 0, port.get("nodePort") or 0
        if number not in known:
            wanted = known[number] = first.get(number, 0)
        elif wanted == known[number]:
            continue
        if wanted in taken:
            yield causes.invalid(f"spec.ports[{index}].nodePort", wanted, TAKEN)
            return
        taken |= {wanted} - {0}


def _type_rules(spec: Object) -> Iterator[Cause]:
    headless = spec.get("clusterIPs") == [HEADLESS]
    if spec["type"] != "ExternalName" and not spec.get("ports") and not headless:
        yield causes.required("spec.ports")
    if headless and spec["type"] in {"NodePort", "LoadBalancer"}:
        yield causes.invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {spec['type']} services")
    if spec["type"] != "ExternalName":
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield causes.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield causes.required("spec.externalName")
    else:
        yield from names.refused("spec.externalName", name, names.subdomain(name))


def _port_rules(ports: list[Object]) -> Iterator[Cause]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            yield causes.required(f"{path}.name")
        elif name:
            yield from names.refused(f"{path}.name", name, names.label(name))
            if name in taken:
                yield causes.duplicate(f"{path}.name", name)
            taken.add(name)
        yield from checks.port(port.get("port") or 0, f"{path}.port")
        yield from checks.choice(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
        yield from checks.port(port.get("targetPort"), f"{path}.targetPort")
        if port.get("appProtocol") is not None:
            yield from names.refused(f"{path}.appProtocol", port["appProtocol"], names.qualified(port["appProtocol"]))


def _affinity_rules(spec: Object) -> Iterator[Cause]:
    yield from checks.choice(spec["sessionAffinity"], "spec.sessionAffinity", ("ClientIP", "None"))
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if spec["sessionAffinity"] == "ClientIP" and seconds is not None and not 0 < seconds <= _LONGEST_AFFINITY:
        yield causes.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds,
                             f"must be greater than 0 and less than {_LONGEST_AFFINITY}")


def _port_use_rules(ports: list[Object], type_: str) -> Iterator[Cause]:
    """No port is used twice with one protocol, inside the cluster or on the nodes."""
    for index, port in enumerate(ports if type_ == "ClusterIP" else ()):
        if port.get("nodePort"):
            yield causes.forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    exposed: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        key = (port.get("nodePort") or 0, str(port.get("protocol")))
        if key in exposed and key[0]:
            yield causes.duplicate(f"spec.ports[{index}].nodePort", key[0])
        exposed.add(key)
    served: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        key = (port.get("port") or 0, str(port.get("protocol")))
        if key in served:
            told = {"Name": "", "Protocol": key[1], "AppProtocol": None, "Port": key[0], "TargetPort": 0, "NodePort": 0}
            yield causes.duplicate(f"spec.ports[{index}]", told)
        served.add(key)


def _balancer_rules(spec: Object, was: Object, marks: Object) -> Iterator[Cause]:
    """What only a service with a load balancer may say."""
    # The path is misspelt in Kubernetes, and clients see it.
    balanced, path = spec["type"] == "LoadBalancer", "spec.LoadBalancerSourceRanges"
    ranges, before = spec.get("loadBalancerSourceRanges") or [], was.get("loadBalancerSourceRanges") or []
    if ranges and not balanced:
        yield causes.forbidden(path, _BALANCED_ONLY)
    for index, text in enumerate(ranges):
        if text.strip() not in [each.strip() for each in before]:
            yield from addresses.network_rules(text.strip(), f"{path}[{index}]")
    if not ranges and _RANGES in marks:
        yield from _marked_ranges(marks[_RANGES], f"metadata.annotations[{_RANGES}]", balanced=balanced)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        yield causes.forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY)
    class_ = spec.get("loadBalancerClass")
    if class_ is not None and not balanced:
        yield causes.forbidden("spec.loadBalancerClass", _BALANCED_ONLY)
    elif class_ is not None:
        yield from names.refused("spec.loadBalancerClass", class_, names.qualified(class_))


def _marked_ranges(text: str, path: str, *, balanced: bool) -> Iterator[Cause]:
    if not balanced:
        yield causes.forbidden(path, _BALANCED_ONLY)
    for each in text.strip().split(",") if text.strip() else ():
        yield from addresses.network_rules(each.strip(), path)


def _policy_rules(spec: Object, was: Object) -> Iterator[Cause]:
    """Which pods traffic goes to, depending on where it comes from."""
    policy = spec.get("externalTrafficPolicy")
    if policy and not is_outside(spec):
        yield causes.invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    elif policy:
        yield from checks.choice(policy, "spec.externalTrafficPolicy", ("Cluster", "Local"))
    port = spec.get("healthCheckNodePort") or 0
    if port and not needs_health_check(spec):
        yield causes.invalid("spec.healthCheckNodePort", port,
                             "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
    if needs_health_check(was) and needs_health_check(spec) and port != (was.get("healthCheckNodePort") or 0):
        yield causes.forbidden("spec.healthCheckNodePort", "field is immutable")
    yield from checks.choice(spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy", ("Cluster", "Local"))
    yield from checks.choice(spec.get("trafficDistribution"), "spec.trafficDistribution", _DISTRIBUTIONS)
