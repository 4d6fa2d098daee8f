"""What a pod may say of itself, in a pod and in the templates of other kinds; refused in the words of Kubernetes."""

import re
from collections.abc import Iterable, Iterator, Mapping

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    container_rules,
    handler_rules,
    names,
    placement_rules,
    pod_resources,
    security_rules,
    volume_rules,
)
from trainmaster.cluster.apiserver.causes import Cause

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_NAME_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
_LONGEST_HOST_NAME = 64
_MIRROR, _COST = "kubernetes.io/config.mirror", "controller.kubernetes.io/pod-deletion-cost"
_INTEGER = re.compile(r"0|[1-9][0-9]{0,11}|-[0-9]{1,12}", re.ASCII)
_NOT_EPHEMERAL = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "resizePolicy",
                  "restartPolicy")
_NO_PLACE = "cannot be set for an Ephemeral Container"


def spec_rules(spec: Object, path: str, *, pod: str = "") -> Iterator[Cause]:
    """The faults of a pod spec at `path`: that of a template, or of a pod with this name, if that is known."""
    volumes, faults = volume_rules.judged(spec.get("volumes") or (), f"{path}.volumes", pod)
    yield from faults
    if spec.get("resourceClaims"):
        yield from _claim_rules(spec["resourceClaims"], f"{path}.resourceClaims")
    if not spec.get("containers"):
        yield causes.required(f"{path}.containers")
    taken: set[str] = set()
    for index, container in enumerate(spec.get("containers") or ()):
        at = f"{path}.containers[{index}]"
        yield from container_rules.rules(container, at, spec, volumes)
        yield from _name_once(container, at, taken)
        yield from handler_rules.rules(container, spec, at)
        yield from container_rules.restart_rules(container, at)
    yield from _host_port_rules(spec.get("containers") or (), f"{path}.containers")
    for index, container in enumerate(spec.get("initContainers") or ()):
        yield from _init_rules(container, f"{path}.initContainers[{index}]", spec, volumes, taken)
        yield from _host_port_rules([container], f"{path}.initContainers")
    for field, choices in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        if spec.get(field) not in choices:
            yield causes.unsupported(f"{path}.{field}", spec.get(field), choices)
    yield from names.labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    if spec.get("securityContext") or spec.get("shareProcessNamespace"):
        yield from security_rules.pod_rules(spec.get("securityContext") or {}, spec, f"{path}.securityContext")
    yield from placement_rules.rules(spec, path)
    yield from _name_server_rules(spec, path)
    for field, rule in (("hostname", names.label), ("subdomain", names.label), ("nodeName", names.subdomain),
                        ("serviceAccountName", names.subdomain), ("priorityClassName", names.subdomain),
                        ("runtimeClassName", names.subdomain)):
        if spec.get(field):
            yield from names.refused(f"{path}.{field}", spec[field], rule(spec[field]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield causes.invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    yield from _seldom_rules(spec, path)


def only_in_pods(spec: Object, path: str) -> Iterator[Cause]:
    """What is asked of pods and not of templates, of which some are older than the rules."""
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    yield causes.forbidden(f"{path}.volumes[{index}].projected.sources[{number}].serviceAccountToken",
                                           "must not be specified when serviceAccountName is not set")
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image") is not None and not volume["image"].get("reference"):
            yield causes.required(f"{path}.volumes[{index}].image.reference")
    for field in ("containers", "initContainers"):
        yield from container_rules.image_rules(spec.get(field) or (), f"{path}.{field}")


def annotation_rules(annotations: Mapping[str, str], spec: Object) -> Iterator[Cause]:
    """Annotations of pods that mean something to Kubernetes."""
    if _MIRROR in annotations and not spec.get("nodeName"):
        yield causes.invalid(f"metadata.annotations[{_MIRROR}]", annotations[_MIRROR],
                             "must set spec.nodeName if mirror pod annotation is set")
    cost = annotations.get(_COST)
    if cost is not None and not (_INTEGER.fullmatch(cost) and -2**31 <= int(cost) < 2**31):
        yield causes.invalid(f"metadata.annotations[{_COST}]", cost, "must be a 32bit integer")


def ephemeral_rules(spec: Object) -> Iterator[Cause]:
    """The faults of containers that are put into a pod that runs."""
    path, found = "spec.ephemeralContainers", spec.get("ephemeralContainers") or ()
    volumes = {str(volume.get("name") or ""): volume for volume in spec.get("volumes") or ()}
    others = {str(each.get("name")) for field in ("containers", "initContainers") for each in spec.get(field) or ()}
    taken = set(others)
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        kept = {field: value for field, value in container.items() if field not in _NOT_EPHEMERAL}
        yield from container_rules.rules({"imagePullPolicy": "Always", **kept}, at, spec, volumes)
        yield from _name_once(container, at, taken)
        if (target := container.get("targetContainerName")) and target not in others:
            yield causes.not_found(f"{at}.targetContainerName", target)
        for field in _NOT_EPHEMERAL:
            if container.get(field):
                yield causes.forbidden(f"{at}.{field}", _NO_PLACE)
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    yield causes.forbidden(f"{at}.volumeMounts[{number}].{field}", _NO_PLACE)
    yield from container_rules.image_rules(found, path)


def _init_rules(container: Object, path: str, spec: Object, volumes: Mapping[str, Object],
                taken: set[str]) -> Iterator[Cause]:
    """A container that ends before the others begin, or that begins before them and stays."""
    yield from container_rules.rules(container, path, spec, volumes)
    yield from container_rules.restart_rules(container, path)
    yield from _name_once(container, path, taken)
    if container.get("restartPolicy") == "Always":
        yield from handler_rules.rules(container, spec, path)
        return
    yield from handler_rules.none_of_them(container, path)
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            yield causes.invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer",
                                 "must not be set to 'RestartContainer' for non-sidecar initContainers")


def _name_once(container: Object, path: str, taken: set[str]) -> Iterator[Cause]:
    name = container.get("name") or ""
    if name in taken:
        yield causes.duplicate(f"{path}.name", name)
    taken.add(name)


def _claim_rules(claims: Iterable[Object], path: str) -> Iterator[Cause]:
    """Devices that are claimed for the pod."""
    taken: set[str] = set()
    for index, claim in enumerate(claims):
        at, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            yield causes.required(f"{at}.name")
        elif name in taken:
            yield causes.duplicate(f"{at}.name", name)
        else:
            yield from names.refused(f"{at}.name", name, names.label(name))
        taken.add(name)
        found = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(found) > 1:
            yield causes.invalid(at, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                                 "specified")
        elif not found:
            yield causes.invalid(at, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field in found:
            yield from names.refused(f"{at}.{field}", claim[field], names.subdomain(claim[field]))


def _host_port_rules(containers: Iterable[Object], path: str) -> Iterator[Cause]:
    taken = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in taken:
                yield causes.duplicate(f"{path}[{index}].ports[{at}].hostPort", key)
            taken.add(key)


def host_network_rules(spec: Object, path: str, *, in_pod: bool) -> Iterator[Cause]:
    """On the machine's network a port is the machine's; in a template it may be left open."""
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            found = port.get("hostPort") or 0
            if (in_pod or found) and found != port.get("containerPort"):
                yield causes.invalid(f"{path}.containers[{index}].ports[{number}].hostPort", found,
                                     "must match `containerPort` when `hostNetwork` is true")


def _seldom_rules(spec: Object, path: str) -> Iterator[Cause]:
    """What few pods say."""
    if spec.get("preemptionPolicy") == "":
        yield causes.required(f"{path}.preemptionPolicy")
    else:
        yield from checks.choice(spec.get("preemptionPolicy"), f"{path}.preemptionPolicy",
                                 ("PreemptLowerPriority", "Never"))
    yield from pod_resources.rules(spec, path)
    if spec.get("overhead"):
        yield from container_rules.resource_rules({"limits": spec["overhead"]}, f"{path}.overhead", spec)
    if spec.get("hostUsers") is False:
        for field, said in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                yield causes.forbidden(f"{path}.{said}", "when `hostUsers` is false")
    if (system := spec.get("os")) is not None:
        if not system.get("name"):
            yield causes.required(f"{path}.os.name")
        else:
            yield from checks.choice(system["name"], f"{path}.os", ("linux", "windows"))
    if (name := spec.get("hostnameOverride")) is not None:
        yield from _host_name_rules(name, spec, f"{path}.hostnameOverride")
    volumes = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from container_rules.file_rules(container, f"{path}.{field}[{index}]", volumes)


def _host_name_rules(name: str, spec: Object, path: str) -> Iterator[Cause]:
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield causes.forbidden(path, f"may not be specified when {field} is true")
    if len(name.encode()) > _LONGEST_HOST_NAME:
        yield causes.too_long(path, _LONGEST_HOST_NAME)
    yield from names.refused(path, name, names.subdomain(name))


def _name_server_rules(spec: Object, path: str) -> Iterator[Cause]:
    config, at = spec.get("dnsConfig"), f"{path}.dnsConfig"
    lacking = spec.get("dnsPolicy") == "None"
    if config is None:
        if lacking:
            yield causes.required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
    elif lacking and not config.get("nameservers"):
        yield causes.required(f"{at}.nameservers",
                              "must provide at least one DNS nameserver when `dnsPolicy` is None")
    else:
        yield from _resolving_rules(config, at)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found, where = alias.get("ip") or "", f"{path}.hostAliases[{index}]"
        if checks.address(found) is None:
            yield causes.invalid(f"{where}.ip", found, checks.NOT_AN_ADDRESS)
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from names.refused(f"{where}.hostnames[{number}]", name, names.subdomain(name))


def _resolving_rules(config: Object, path: str) -> Iterator[Cause]:
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _MOST_NAME_SERVERS:
        yield causes.invalid(f"{path}.nameservers", servers,
                             f"must not have more than {_MOST_NAME_SERVERS} nameservers")
    for index, server in enumerate(servers):
        if checks.address(server) is None:
            yield causes.invalid(f"{path}.nameservers[{index}]", server, checks.NOT_AN_ADDRESS)
    if len(searches) > _MOST_SEARCHES:
        yield causes.invalid(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        yield causes.invalid(f"{path}.searches", searches, f"must not have more than {_LONGEST_SEARCHES} characters "
                             "(including spaces) in the search list")
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from names.refused(f"{path}.searches[{index}]", name, names.underscored(name))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield causes.required(f"{path}.options[{index}]", "must not be empty")
