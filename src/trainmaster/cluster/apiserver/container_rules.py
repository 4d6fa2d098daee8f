"""What one container of a pod may say: image, environment, mounts, ports, probes, resources."""

from collections.abc import Iterable, Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("TCP", "UDP", "SCTP")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_FIELDS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
})


def rules(container: Object, path: str, volumes: list[str], *, host_network: bool) -> Iterator[Cause]:
    image = container.get("image") or ""
    if not image:
        yield causes.required(f"{path}.image")
    elif image != image.strip():
        yield causes.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from checks.choice(container.get("terminationMessagePolicy"), f"{path}.terminationMessagePolicy",
                             ("File", "FallbackToLogsOnError"))
    yield from _port_rules(container.get("ports") or (), f"{path}.ports", host_network=host_network)
    for index, variable in enumerate(container.get("env") or ()):
        # Dozens of them in a pod of a job, nearly all a name and a text: no generator for those.
        if variable.get("valueFrom") is None and not names.env_name(variable.get("name") or ""):
            continue
        yield from _variable_rules(variable, f"{path}.env[{index}]")
    yield from _mount_rules(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    if container.get("imagePullPolicy") not in PULL_POLICIES:
        yield causes.unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    yield from _resource_rules(container.get("resources") or {}, f"{path}.resources")
    for policy in container.get("resizePolicy") or ():
        yield from checks.choice(policy.get("resourceName") or "", f"{path}.resizePolicy", ("cpu", "memory"))
        yield from checks.choice(policy.get("restartPolicy") or "", f"{path}.resizePolicy",
                                 ("NotRequired", "RestartContainer"))
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            yield from _probe_rules(container[probe], f"{path}.{probe}", once=probe != "readinessProbe")
    for moment in ("postStart", "preStop"):
        if (container.get("lifecycle") or {}).get(moment) is not None:
            yield from _handler_rules(container["lifecycle"][moment], f"{path}.lifecycle.{moment}")


def _variable_rules(variable: Object, path: str) -> Iterator[Cause]:
    if not variable.get("name"):
        yield causes.required(f"{path}.name")
    else:
        yield from names.refused(f"{path}.name", variable["name"], names.env_name(variable["name"]))
    source = variable.get("valueFrom")
    if source is None:
        return
    found = [field for field in source if source[field] is not None]
    if not found:
        yield causes.invalid(f"{path}.valueFrom", "", _NO_SOURCE)
    elif variable.get("value"):
        yield causes.invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield causes.invalid(f"{path}.valueFrom", "", "may not have more than one field specified at a time")
    for field in ("configMapKeyRef", "secretKeyRef"):
        if field in found and not source[field].get("key"):
            yield causes.required(f"{path}.valueFrom.{field}.key")
    if "fieldRef" in found:
        yield from _field_rules(source["fieldRef"].get("fieldPath") or "", f"{path}.valueFrom.fieldRef.fieldPath")


def _field_rules(text: str, path: str) -> Iterator[Cause]:
    if not text:
        yield causes.required(path)
    elif text not in _FIELDS and not text.startswith(("metadata.labels['", "metadata.annotations['")):
        yield causes.invalid(path, text, f"error converting fieldPath: field label not supported: {text}")


def _mount_rules(mounts: Iterable[Object], path: str, volumes: list[str]) -> Iterator[Cause]:
    taken = set()
    for index, mount in enumerate(mounts):
        at, name, where = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield causes.required(f"{at}.name")
        elif name not in volumes:
            yield Cause(f"{at}.name", "FieldValueNotFound", f"Not found: {causes.quoted(name)}")
        if not where:
            yield causes.required(f"{at}.mountPath")
        elif where in taken:
            yield causes.invalid(f"{at}.mountPath", where, "must be unique")
        taken.add(where)
        if ".." in (mount.get("subPath") or "").split("/"):
            yield causes.invalid(f"{at}.subPath", mount["subPath"], "must not contain '..'")


def _port_rules(ports: Iterable[Object], path: str, *, host_network: bool) -> Iterator[Cause]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if name:
            yield from names.refused(f"{path}[{index}].name", name, names.port_name(name))
            if name in taken:
                yield causes.duplicate(f"{path}[{index}].name", name)
            taken.add(name)
        if not port.get("containerPort"):
            yield causes.required(f"{path}[{index}].containerPort")
        for field in ("containerPort", "hostPort"):
            if port.get(field):
                yield from checks.port(port[field], f"{path}[{index}].{field}")
        if host_network and port.get("hostPort") != port.get("containerPort"):
            yield causes.invalid(f"{path}[{index}].hostPort", port.get("hostPort") or 0,
                                 "must match `containerPort` when `hostNetwork` is true")
        if port.get("protocol") not in PROTOCOLS:
            yield causes.unsupported(f"{path}[{index}].protocol", port.get("protocol"), sorted(PROTOCOLS))


def _probe_rules(probe: Object, path: str, *, once: bool) -> Iterator[Cause]:
    yield from _handler_rules(probe, path)
    yield from checks.not_negative(probe, path, "initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                   "successThreshold", "failureThreshold")
    if once and probe.get("successThreshold", 1) > 1:
        yield causes.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_rules(action: Object, path: str) -> Iterator[Cause]:
    found = [handler for handler in _HANDLERS if action.get(handler) is not None]
    if not found:
        yield causes.required(path, "must specify a handler type")
    for handler in found[1:]:
        yield causes.forbidden(f"{path}.{handler}", "may not specify more than 1 handler type")
    for handler in found[:1]:
        if handler == "exec" and not action["exec"].get("command"):
            yield causes.required(f"{path}.exec.command")
        elif handler in {"httpGet", "tcpSocket", "grpc"}:
            yield from checks.port(action[handler].get("port"), f"{path}.{handler}.port")


def _resource_rules(resources: Object, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount_rules(name, str(amount), f"{path}.{group}[{name}]")
    lacking = False
    for name, amount in requests.items():
        if name in limits and amount == limits[name]:      # the usual case: what is not asked for is what the limit is
            continue
        if name in limits and quantity.parse(amount) > quantity.parse(limits[name]):
            yield causes.invalid(f"{path}.requests", str(amount),
                                 f"must be less than or equal to {name} limit of {limits[name]}")
        elif name in limits and "/" in name and quantity.parse(amount) != quantity.parse(limits[name]):
            yield causes.invalid(f"{path}.requests", str(amount),
                                 f"must be equal to {name} limit of {limits[name]}")
        lacking = lacking or ("/" in name and name not in limits)
    if lacking:
        yield causes.required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _amount_rules(name: str, amount: str, path: str) -> Iterator[Cause]:
    if "/" not in name and name not in _PLAIN_RESOURCES and not name.startswith("hugepages-"):
        yield causes.invalid(path, name, "must be a standard resource type or fully qualified")
        yield causes.invalid(path, name, "must be a standard resource for containers")
    found = quantity.parse(amount)
    if found.numerator < 0:      # comparing fractions takes ten times as long
        yield causes.invalid(path, amount, "must be greater than or equal to 0")
    elif "/" in name and found.denominator != 1:
        yield causes.invalid(path, amount, "must be an integer")
