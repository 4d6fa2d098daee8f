"""What one container of a pod may say: image, environment, mounts, ports, resources, when it is started again."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks, field_references, names, resource_names, security_rules
from trainmaster.cluster.apiserver.causes import Cause

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("TCP", "UDP", "SCTP")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
_PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_HUGE = "hugepages-"
_OF_PODS = ("cpu", "memory")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_TWO_SOURCES = "may not have more than one field specified at a time"
_MOST_RESTART_RULES, _MOST_EXIT_CODES = 20, 255


def rules(container: Object, path: str, spec: Object, volumes: Mapping[str, Object]) -> Iterator[Cause]:
    """The faults of a container of the pod with this spec and these volumes, whichever of its lists it is in."""
    name = container.get("name") or ""
    if not name:
        yield causes.required(f"{path}.name")
    else:
        yield from names.refused(f"{path}.name", name, names.label(name))
    if not container.get("image"):
        yield causes.required(f"{path}.image")
    yield from checks.choice(container.get("terminationMessagePolicy"), f"{path}.terminationMessagePolicy",
                             ("File", "FallbackToLogsOnError"))
    yield from _port_rules(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        # Dozens of them in a pod of a job, nearly all a name and a text: no generator for those.
        if variable.get("valueFrom") is None and not names.env_name(variable.get("name") or ""):
            continue
        yield from _variable_rules(variable, f"{path}.env[{index}]")
    if container.get("envFrom"):
        yield from _variables_rules(container["envFrom"], f"{path}.envFrom")
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    yield from _mount_rules(mounts, devices, f"{path}.volumeMounts", volumes, container)
    if devices:
        yield from _device_rules(devices, mounts, f"{path}.volumeDevices", volumes)
    yield from pull_policy_rules(container.get("imagePullPolicy") or "", f"{path}.imagePullPolicy")
    yield from resource_rules(container.get("resources") or {}, f"{path}.resources", spec)
    if container.get("resizePolicy"):
        yield from _resize_rules(container["resizePolicy"], f"{path}.resizePolicy", spec.get("restartPolicy"))
    if container.get("securityContext"):
        yield from security_rules.container_rules(container["securityContext"], f"{path}.securityContext",
                                                  host_users=spec.get("hostUsers") is not False)


def image_rules(containers: Iterable[Object], path: str) -> Iterator[Cause]:
    """What is asked of images in pods, but not in templates."""
    for index, container in enumerate(containers):
        image = container.get("image") or ""
        if image != image.strip():
            yield causes.invalid(f"{path}[{index}].image", image, "must not have leading or trailing whitespace")


def pull_policy_rules(policy: str, path: str) -> Iterator[Cause]:
    if not policy:
        yield causes.required(path)
    elif policy not in PULL_POLICIES:
        yield causes.unsupported(path, policy, PULL_POLICIES)


def restart_rules(container: Object, path: str) -> Iterator[Cause]:
    """When the container is started again, if it is not for the pod to say."""
    policy, found = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None and found:
        yield causes.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    yield from checks.choice(policy, f"{path}.restartPolicy", RESTART_POLICIES)
    if len(found) > _MOST_RESTART_RULES:
        yield causes.too_many(f"{path}.restartPolicyRules", len(found), _MOST_RESTART_RULES)
    for index, rule in enumerate(found):
        at, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        yield from checks.choice(rule.get("action") or "", f"{at}.action", ("Restart", "RestartAllContainers"))
        if codes is None:
            yield causes.required(f"{at}.exitCodes", "must be specified")
            continue
        yield from checks.choice(codes.get("operator") or "", f"{at}.exitCodes.operator", ("In", "NotIn"))
        if len(codes.get("values") or ()) > _MOST_EXIT_CODES:
            yield causes.too_many(f"{at}.exitCodes.values", len(codes["values"]), _MOST_EXIT_CODES)


def _variable_rules(variable: Object, path: str) -> Iterator[Cause]:
    if not variable.get("name"):
        yield causes.required(f"{path}.name")
    else:
        yield from names.refused(f"{path}.name", variable["name"], names.env_name(variable["name"]))
    source, path = variable.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return
    found = [field for field in source if source[field] is not None]
    if "fieldRef" in found:
        yield from field_references.field_rules(source["fieldRef"], f"{path}.fieldRef", field_references.IN_VARIABLES)
    if "resourceFieldRef" in found:
        yield from field_references.resource_rules(source["resourceFieldRef"], f"{path}.resourceFieldRef",
                                                   in_file=False)
    for field in ("configMapKeyRef", "secretKeyRef"):
        if field in found:
            yield from _key_rules(source[field], f"{path}.{field}")
    if "fileKeyRef" in found:
        yield from _file_key_rules(source["fileKeyRef"], f"{path}.fileKeyRef")
    if not found:
        yield causes.invalid(path, "", _NO_SOURCE)
    elif variable.get("value"):
        yield causes.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield causes.invalid(path, "", _TWO_SOURCES)


def _key_rules(reference: Object, path: str) -> Iterator[Cause]:
    name, key = reference.get("name") or "", reference.get("key") or ""
    yield from names.refused(f"{path}.name", name, names.subdomain(name))
    if not key:
        yield causes.required(f"{path}.key")
    else:
        yield from names.refused(f"{path}.key", key, names.data_key(key))


def _file_key_rules(reference: Object, path: str) -> Iterator[Cause]:
    for field, rule in (("key", names.env_name), ("volumeName", names.label)):
        if not reference.get(field):
            yield causes.required(f"{path}.{field}")
        else:
            yield from names.refused(f"{path}.{field}", reference[field], rule(reference[field]))
    if not reference.get("path"):
        yield causes.required(f"{path}.path")
    else:
        yield from checks.no_steps_back(reference["path"], f"{path}.path")


def file_rules(container: Object, path: str, volumes: Mapping[str, Object]) -> Iterator[Cause]:
    """Files of variables are read from volumes that are empty at first, of those the pod has."""
    for index, variable in enumerate(container.get("env") or ()):
        source = variable.get("valueFrom")
        if source is None or source.get("fileKeyRef") is None:
            continue
        name, at = source["fileKeyRef"].get("volumeName") or "", f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName"
        if name not in volumes:
            yield causes.not_found(at, name)
        elif volumes[name].get("emptyDir") is None:
            yield causes.invalid(at, name, "referenced volume must be of type emptyDir")


def _variables_rules(sources: Sequence[Object], path: str) -> Iterator[Cause]:
    """Whole ConfigMaps and Secrets that become variables."""
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if source.get("prefix"):
            yield from names.refused(f"{at}.prefix", source["prefix"], names.env_name(source["prefix"]))
        found = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in found:
            name = source[field].get("name") or ""
            if not name:
                yield causes.required(f"{at}.{field}.name")
            else:       # looked at as if it were the beginning of one
                whole = f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name
                yield from names.refused(f"{at}.{field}.name", name, names.subdomain(whole))
        if not found:
            yield causes.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(found) > 1:
            yield causes.invalid(path, "", _TWO_SOURCES)


def _mount_rules(mounts: Iterable[Object], devices: Iterable[Object], path: str, volumes: Mapping[str, Object],
                 container: Object) -> Iterator[Cause]:
    taken = set()
    named, placed = {device.get("name") for device in devices}, {device.get("devicePath") for device in devices}
    for index, mount in enumerate(mounts):
        at, name, where = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield causes.required(f"{at}.name")
        if name not in volumes:
            yield causes.not_found(f"{at}.name", name)
        if not where:
            yield causes.required(f"{at}.mountPath")
        if where in taken:
            yield causes.invalid(f"{at}.mountPath", where, "must be unique")
        taken.add(where)
        if name in named:
            yield causes.invalid(f"{at}.name", name, "must not already exist in volumeDevices")
        if where in placed:
            yield causes.invalid(f"{at}.mountPath", where, "must not already exist as a path in volumeDevices")
        if len(mount) > 2:
            yield from _special_mount_rules(mount, at, path, container)


def _special_mount_rules(mount: Object, at: str, path: str, container: Object) -> Iterator[Cause]:
    """What few mounts say. Kubernetes tells most of it of all mounts, at `path`."""
    if mount.get("subPath"):
        yield from checks.below(mount["subPath"], f"{path}.subPath")
    if mount.get("subPathExpr"):
        if mount.get("subPath"):
            yield causes.invalid(f"{at}.subPathExpr", mount["subPathExpr"],
                                 "subPathExpr and subPath are mutually exclusive")
        yield from checks.below(mount["subPathExpr"], f"{path}.subPathExpr")
    propagation, read_only = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    yield from checks.choice(propagation, f"{path}.mountPropagation", ("Bidirectional", "HostToContainer", "None"))
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield causes.forbidden(f"{path}.mountPropagation",
                               "Bidirectional mount propagation is available only to privileged containers")
    yield from checks.choice(read_only, f"{path}.recursiveReadOnly", ("Disabled", "Enabled", "IfPossible"))
    if read_only in {"Enabled", "IfPossible"}:
        if not mount.get("readOnly"):
            yield causes.forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation not in {None, "None"}:
            yield causes.forbidden(f"{path}.recursiveReadOnly",
                                   "may only be specified when mountPropagation is None or not specified")


def _device_rules(devices: Iterable[Object], mounts: Iterable[Object], path: str,
                  volumes: Mapping[str, Object]) -> Iterator[Cause]:
    called, placed = set(), set()
    mounted, taken = {mount.get("name") for mount in mounts}, {mount.get("mountPath") for mount in mounts}
    for index, device in enumerate(devices):
        at, name, where = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        if not name:
            yield causes.required(f"{at}.name")
        if name in called:
            yield causes.invalid(f"{at}.name", name, "must be unique")
        if name not in volumes:
            yield causes.not_found(f"{at}.name", name)
        elif not any(volumes[name].get(source) is not None for source in ("persistentVolumeClaim", "ephemeral")):
            yield causes.invalid(f"{at}.name", name, "can only use volume source type of PersistentVolumeClaim or "
                                 "Ephemeral for block mode")
        if not where:
            yield causes.required(f"{at}.devicePath")
        if where in placed:
            yield causes.invalid(f"{at}.devicePath", where, "must be unique")
        if ".." in where.split("/"):
            yield causes.invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')")
        else:
            placed.add(where)
        if name in mounted:
            yield causes.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if where in taken:
            yield causes.invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts")
        if name:
            called.add(name)


def _port_rules(ports: Iterable[Object], path: str) -> Iterator[Cause]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        if name := port.get("name"):
            faults = names.port_name(name)
            yield from names.refused(f"{path}[{index}].name", name, faults)
            if name in taken:
                yield causes.duplicate(f"{path}[{index}].name", name)
            if not faults:
                taken.add(name)
        if not port.get("containerPort"):
            yield causes.required(f"{path}[{index}].containerPort")
        for field in ("containerPort", "hostPort"):
            if port.get(field):
                yield from checks.port(port[field], f"{path}[{index}].{field}")
        if port.get("protocol") not in PROTOCOLS:
            yield causes.unsupported(f"{path}[{index}].protocol", port.get("protocol"), sorted(PROTOCOLS))


def _resize_rules(policies: Iterable[Object], path: str, of_pod: str | None) -> Iterator[Cause]:
    taken = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in taken:
            yield causes.duplicate(f"{path}[{index}]", name)
        taken.add(name)
        for value, choices in ((name, ("cpu", "memory")), (restart, ("NotRequired", "RestartContainer"))):
            if not value:
                yield causes.required(path)
            else:
                yield from checks.choice(value, path, choices)
        if of_pod == "Never" and restart != "NotRequired":
            yield causes.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def resource_rules(resources: Object, path: str, spec: Object, *, of_pod: bool = False) -> Iterator[Cause]:
    """What a container asks for and may have, or a pod as a whole; also the overhead of a pod."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount_rules(name, str(amount), f"{path}.{group}[{name}]", of_pod=of_pod)
    for name, amount in requests.items():
        limit = limits.get(name)
        if amount == limit:      # the usual case: what is not asked for is what the limit is
            continue
        shared = resource_names.is_shared(name)
        if limit is None:
            if not shared:
                yield causes.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif not shared and quantity.parse(amount) != quantity.parse(limit):
            yield causes.invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limit}")
        elif quantity.parse(amount) > quantity.parse(limit):
            yield causes.invalid(f"{path}.requests", str(amount), f"must be less than or equal to {name} limit of "
                                 f"{limit}")
    everything = {**limits, **requests}
    if "cpu" not in everything and "memory" not in everything \
            and any(name.startswith(_HUGE) for name in everything):
        yield causes.forbidden(path, "HugePages require cpu or memory")
    if resources.get("claims"):
        yield from _claim_rules(resources["claims"], f"{path}.claims", spec)


def _amount_rules(name: str, amount: str, path: str, *, of_pod: bool) -> Iterator[Cause]:
    if name not in _PLAIN_RESOURCES or (of_pod and name not in _OF_PODS):
        yield from (_name_rules_of_pods if of_pod else resource_names.container_rules)(name, path)
    found = quantity.parse(amount)
    if found.numerator < 0:      # comparing fractions takes ten times as long
        yield causes.invalid(path, amount, "must be greater than or equal to 0")
    if found.denominator != 1 and _is_extended(name):
        yield causes.invalid(path, amount, "must be an integer")
    if name.startswith(_HUGE) and not _is_multiple(found, name.removeprefix(_HUGE)):
        yield causes.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")


def _is_multiple(amount: Fraction, size: str) -> bool:
    try:
        page = quantity.parse(size)
    except ValueError:
        return False
    return page > 0 and page.denominator == 1 and math.ceil(abs(amount)) % page == 0


def _name_rules_of_pods(name: str, path: str) -> Iterator[Cause]:
    faults = list(resource_names.rules(name, path))
    yield from faults
    if not faults and not name.startswith(_HUGE):
        yield causes.unsupported(path, name, sorted((*_OF_PODS, _HUGE)))


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.") \
        and not names.qualified(f"requests.{name}")


def _claim_rules(claims: Iterable[Object], path: str, spec: Object) -> Iterator[Cause]:
    """Devices that the container gets of those the pod claims."""
    offered = {each.get("name") or "" for each in spec.get("resourceClaims") or ()} - {""}
    listed = f": {causes.cut(', '.join(sorted(offered)))}" if offered else " which is empty"
    taken: set[tuple[str, str]] = set()
    claimed: set[str] = set()
    for index, claim in enumerate(claims):
        at, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            yield causes.required(at)
            continue
        if request:
            yield from names.refused(f"{at}.request", request, names.label(request))
        if (name, "") in taken or (not request and name in claimed):
            yield causes.duplicate(at, name)
        elif (name, request) in taken:
            yield causes.duplicate(at, f"{name}/{request}")
        taken.add((name, request))
        claimed.add(name)
        if name not in offered:
            yield causes.not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{listed}")
