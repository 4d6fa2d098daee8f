"""What a pod may say of itself, in a pod and in the templates of other kinds; refused in the words of Kubernetes."""

import re
from collections.abc import Iterable, Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, container_rules, labels, names
from trainmaster.cluster.apiserver.causes import Cause

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII)
_SYSCTL_FAULT = ("must have at most 253 characters and match regex "
                 r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")
_LONGEST_SYSCTL = 253
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", \
    "preferredDuringSchedulingIgnoredDuringExecution"


_NOT_EPHEMERAL = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "resizePolicy",
                  "restartPolicy")
_NO_PLACE = "cannot be set for an Ephemeral Container"


def spec_rules(spec: Object, path: str) -> Iterator[Cause]:
    """The faults of a pod spec at `path`."""
    volumes = [str(volume.get("name") or "") for volume in spec.get("volumes") or ()]
    yield from _volume_rules(spec.get("volumes") or [], f"{path}.volumes")
    if not spec.get("containers"):
        yield causes.required(f"{path}.containers")
    taken: set[str] = set()
    for field in ("containers", "initContainers"):
        yield from _names_of(spec.get(field) or (), f"{path}.{field}", taken)
        for index, container in enumerate(spec.get(field) or ()):
            yield from container_rules.rules(container, f"{path}.{field}[{index}]", volumes,
                                             host_network=bool(spec.get("hostNetwork")))
    yield from _host_port_rules(spec.get("containers") or (), f"{path}.containers")
    for field, choices in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        if spec.get(field) not in choices:
            yield causes.unsupported(f"{path}.{field}", spec.get(field), sorted(choices))
    yield from names.labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    for field, rule in (("hostname", names.label), ("subdomain", names.label), ("nodeName", names.subdomain),
                        ("serviceAccountName", names.subdomain), ("priorityClassName", names.subdomain)):
        if spec.get(field):
            yield from names.refused(f"{path}.{field}", spec[field], rule(spec[field]))
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield causes.invalid(f"{path}.terminationGracePeriodSeconds", spec["terminationGracePeriodSeconds"],
                             "must be greater than or equal to 0")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield causes.invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    yield from _sysctl_rules(spec, f"{path}.securityContext.sysctls")
    yield from _placement_rules(spec, path)
    yield from _name_server_rules(spec, path)


def ephemeral_rules(spec: Object) -> Iterator[Cause]:
    """The faults of containers that are put into a pod that runs."""
    path, found = "spec.ephemeralContainers", spec.get("ephemeralContainers") or ()
    volumes = [str(volume.get("name") or "") for volume in spec.get("volumes") or ()]
    others = {str(each.get("name")) for field in ("containers", "initContainers") for each in spec.get(field) or ()}
    yield from _names_of(found, path, set(others))
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        kept = {field: value for field, value in container.items() if field not in _NOT_EPHEMERAL}
        yield from container_rules.rules({"imagePullPolicy": "Always", **kept}, at, volumes, host_network=False)
        if (target := container.get("targetContainerName")) and target not in others:
            yield Cause(f"{at}.targetContainerName", "FieldValueNotFound", f"Not found: {causes.quoted(target)}")
        for field in _NOT_EPHEMERAL:
            if container.get(field):
                yield causes.forbidden(f"{at}.{field}", _NO_PLACE)
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    yield causes.forbidden(f"{at}.volumeMounts[{number}].{field}", _NO_PLACE)


def _names_of(things: Iterable[Object], path: str, taken: set[str]) -> Iterator[Cause]:
    for index, thing in enumerate(things):
        name = thing.get("name") or ""
        if not name:
            yield causes.required(f"{path}[{index}].name")
        elif name in taken:
            yield causes.duplicate(f"{path}[{index}].name", name)
        else:
            yield from names.refused(f"{path}[{index}].name", name, names.label(name))
        taken.add(name)


def _volume_rules(volumes: list[Object], path: str) -> Iterator[Cause]:
    yield from _names_of(volumes, path, set())
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        for source in [field for field in volume if field != "name"][1:]:
            yield causes.forbidden(f"{at}.{source}", "may not specify more than 1 volume type")
        for source, field in (("persistentVolumeClaim", "claimName"), ("secret", "secretName"),
                              ("hostPath", "path")):
            if volume.get(source) is not None and not volume[source].get(field):
                yield causes.required(f"{at}.{source}.{field}")
        path_on_host = (volume.get("hostPath") or {}).get("path") or ""
        if ".." in path_on_host.split("/"):
            yield causes.invalid(f"{at}.hostPath.path", path_on_host, "must not contain '..'")
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit is not None and quantity.parse(limit) < 0:
            yield causes.forbidden(f"{at}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")


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


def _sysctl_rules(spec: Object, path: str) -> Iterator[Cause]:
    taken = set()
    for index, sysctl in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        name = sysctl.get("name") or ""
        if not name:
            yield causes.required(f"{path}[{index}].name")
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield causes.invalid(f"{path}[{index}].name", name, _SYSCTL_FAULT)
        elif name in taken:
            yield causes.duplicate(f"{path}[{index}].name", name)
        taken.add(name)


def _placement_rules(spec: Object, path: str) -> Iterator[Cause]:
    """Where the pod may go: tolerations, affinity, spreading."""
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_rules(toleration, f"{path}.tolerations[{index}]")
    affinity = spec.get("affinity") or {}
    yield from _node_affinity_rules(affinity.get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        found, at = affinity.get(field) or {}, f"{path}.affinity.{field}"
        for index, term in enumerate(found.get(_REQUIRED) or ()):
            yield from _pod_term_rules(term, f"{at}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(found.get(_PREFERRED) or ()):
            where = f"{at}.{_PREFERRED}[{index}]"
            yield from _weight_rules(weighted, where)
            yield from _pod_term_rules(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    for index, spread in enumerate(spec.get("topologySpreadConstraints") or ()):
        at = f"{path}.topologySpreadConstraints[{index}]"
        if (spread.get("maxSkew") or 0) <= 0:
            yield causes.invalid(f"{at}.maxSkew", spread.get("maxSkew") or 0, "must be greater than zero")
        if not spread.get("topologyKey"):
            yield causes.required(f"{at}.topologyKey", "can not be empty")
        yield from checks.choice(spread.get("whenUnsatisfiable") or "", f"{at}.whenUnsatisfiable",
                                 ("DoNotSchedule", "ScheduleAnyway"))
        yield from labels.rules(spread.get("labelSelector") or {}, f"{at}.labelSelector")


def _toleration_rules(toleration: Object, path: str) -> Iterator[Cause]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from names.refused(f"{path}.key", key, names.qualified(key))
    elif operator != "Exists":
        yield causes.invalid(f"{path}.operator", operator, "operator must be Exists when `key` is empty, which means "
                             '"match all values and all keys"')
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield causes.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in {"", "Equal"}:
        yield from names.refused(f"{path}.operator", value, names.label_value(value))
    elif operator == "Exists":
        if value:
            yield causes.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield causes.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect:
        yield from checks.choice(effect, f"{path}.effect", EFFECTS)


def _node_affinity_rules(affinity: Object, path: str) -> Iterator[Cause]:
    required = affinity.get(_REQUIRED)
    if required is not None:
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            yield causes.required(f"{path}.{_REQUIRED}.nodeSelectorTerms",
                                  "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _node_term_rules(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_rules(weighted, at)
        yield from _node_term_rules(weighted.get("preference") or {}, f"{at}.preference")


def _weight_rules(weighted: Object, path: str) -> Iterator[Cause]:
    if not 1 <= (weighted.get("weight") or 0) <= 100:
        yield causes.invalid(f"{path}.weight", weighted.get("weight") or 0, "must be in the range 1-100")


def _node_term_rules(term: Object, path: str) -> Iterator[Cause]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at, operator = f"{path}.matchExpressions[{index}]", expression.get("operator") or ""
        values: Json = expression.get("values") or []
        if operator not in _NODE_OPERATORS:
            yield causes.invalid(f"{at}.operator", operator, "not a valid selector operator")
        elif operator in {"In", "NotIn"} and not values:
            yield causes.required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in {"Exists", "DoesNotExist"} and values:
            yield causes.forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator in {"Gt", "Lt"} and len(values) != 1:
            yield causes.required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        key = expression.get("key") or ""
        yield from names.refused(f"{at}.key", key, names.qualified(key))


def _pod_term_rules(term: Object, path: str) -> Iterator[Cause]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from labels.rules(term.get(field) or {}, f"{path}.{field}")
    key = term.get("topologyKey") or ""
    if not key:
        yield causes.required(f"{path}.topologyKey", "can not be empty")
    yield from names.refused(f"{path}.topologyKey", key, names.qualified(key))


def _name_server_rules(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("dnsPolicy") == "None":
        if not spec.get("dnsConfig"):
            yield causes.required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not spec["dnsConfig"].get("nameservers"):
            yield causes.required(f"{path}.dnsConfig.nameservers",
                                  "must provide at least one DNS nameserver when `dnsPolicy` is None")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found = alias.get("ip") or ""
        if checks.address(found) is None:
            yield causes.invalid(f"{path}.hostAliases[{index}].ip", found, checks.NOT_AN_ADDRESS)
