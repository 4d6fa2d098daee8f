"""The built-in kinds, one row each: what they are called, their subresources, defaults, rules and columns."""

import base64
import binascii
import json
from collections.abc import Iterator
from datetime import datetime

from trainmaster.api import core
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver import (
    access,
    access_reviews,
    causes,
    checks,
    columns,
    definition_rules,
    definitions,
    drivers,
    endpoints,
    events,
    jobs,
    metadata,
    names,
    network,
    nodes,
    pod_status,
    pods,
    quotas,
    scaling,
    seldom,
    service_rules,
    services,
    statuses,
    storage,
    webhooks,
    workloads,
)
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind, Subresource
from trainmaster.cluster.apiserver.rows import row

# Namespaces that cannot be deleted, and those that exist from the start.
PERMANENT = ("default", "kube-system", "kube-public")
FIRST = (*PERMANENT, core.NODE_LEASES)
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

LARGEST_DATA = 1024 * 1024

BINDINGS = Resource("", "v1", "bindings", "Binding")


def _namespace_begin(namespace: Object) -> None:
    spec = namespace.setdefault("spec", {})
    held = spec.get("finalizers") or []
    spec["finalizers"] = held if "kubernetes" in held else [*held, "kubernetes"]
    namespace["status"] = {"phase": "Active"}


def _namespace_defaults(namespace: Object) -> None:
    meta = namespace["metadata"]
    if meta.get("name"):
        meta.setdefault("labels", {}).setdefault(NAMESPACE_LABEL, meta["name"])


def _namespace_rules(namespace: Object, old: Object | None) -> Iterator[Cause]:
    for index, name in enumerate((namespace.get("spec") or {}).get("finalizers") or ()):
        yield from metadata.finalizer(name, "spec.finalizers" if old is None else f"spec.finalizers[{index}]")


def _namespace_carry(namespace: Object, old: Object) -> None:
    """The finalizers of the content are changed through /finalize only."""
    namespace["spec"] = old.get("spec") or {}


def _namespace_ending(namespace: Object, _now: datetime) -> Object:
    return {**namespace, "status": {**(namespace.get("status") or {}), "phase": "Terminating"}}


def _config_map_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    data, binary = thing.get("data") or {}, thing.get("binaryData") or {}
    for field, found in (("data", data), ("binaryData", binary)):
        for key in found:
            yield from names.refused(f"{field}[{key}]", key, names.data_key(key))
    for key in data.keys() & binary.keys():
        yield causes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_size, binary.values())) > LARGEST_DATA:
        yield causes.too_long("[]", LARGEST_DATA)
    yield from _frozen(thing, old, ("data", "binaryData"))


def _secret_defaults(secret: Object) -> None:
    """`stringData` is for writing only: it ends up, encoded, in `data`."""
    plain = secret.pop("stringData", None) or {}
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}
    secret["type"] = secret.get("type") or "Opaque"


def _secret_rules(secret: Object, old: Object | None) -> Iterator[Cause]:
    for key, value in (secret.get("data") or {}).items():
        yield from names.refused(f"data[{key}]", key, names.data_key(key))
        if not _is_base64(value):
            yield causes.invalid(f"data[{key}]", "<redacted>", "must be base64")
    if sum(map(_decoded_size, (secret.get("data") or {}).values())) > LARGEST_DATA:
        yield causes.too_long("data", LARGEST_DATA)
    yield from _typed_secret_rules(secret)
    if old is not None and old.get("type") != secret.get("type"):
        yield causes.invalid("type", secret.get("type"), "field is immutable")
    yield from _frozen(secret, old, ("data",))


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


# What a secret of a well-known type must have; of the third, one of the two is enough.
_SECRET_KEYS: dict[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",), "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/basic-auth": ("username", "password"), "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT = "kubernetes.io/service-account.name"


def _typed_secret_rules(secret: Object) -> Iterator[Cause]:
    type_, data = secret.get("type"), secret.get("data") or {}
    wanted = _SECRET_KEYS.get(str(type_), ())
    missing = [key for key in wanted if key not in data or (key == "ssh-privatekey" and not data[key])]
    if type_ == "kubernetes.io/basic-auth" and len(missing) < len(wanted):
        missing = []
    for key in missing:
        yield causes.required(f"data[{key}]")
    if type_ == "kubernetes.io/service-account-token" and \
            not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT):
        yield causes.required(f"metadata.annotations[{_ACCOUNT}]")
    for key in wanted if str(type_).startswith("kubernetes.io/docker") else ():
        if key in data and _is_base64(data[key]) and (why := _json_fault(base64.b64decode(data[key]))):
            yield causes.invalid(f"data[{key}]", "<secret contents redacted>", why)


def _json_fault(text: bytes) -> str:
    """Why this is no JSON object, in the words of Go as far as they are simple; "" if it is one."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        left = error.doc[error.pos:].strip()
        if not left:
            return "unexpected end of JSON input"
        return f"invalid character '{left[0]}' looking for beginning of value" if left == error.doc.strip() else \
            "it is not JSON"
    except (ValueError, RecursionError):     # no text, figures without end, or too deep
        return "it is not JSON"
    kinds = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    kind = kinds.get(type(found), "")
    return kind and f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


def _frozen(thing: Object, old: Object | None, fields: tuple[str, ...]) -> Iterator[Cause]:
    """Once `immutable` is set, it stays and the data stays."""
    if old is None or not old.get("immutable"):
        return
    if not thing.get("immutable"):
        yield causes.forbidden("immutable", "field is immutable when `immutable` is set")
    for field in fields:
        if (thing.get(field) or {}) != (old.get(field) or {}):
            yield causes.forbidden(field, "field is immutable when `immutable` is set")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _lease_rules(lease: Object, _old: Object | None) -> Iterator[Cause]:
    spec = lease.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from checks.not_negative(spec, "spec", "leaseTransitions")


_PROXIED = ("create", "delete", "get", "patch", "update")
_POD_PARTS = (
    Subresource("attach", "PodAttachOptions", ("create", "get")),
    Subresource("binding", "Binding", ("create",)),
    Subresource("ephemeralcontainers", "Pod", ("get", "patch", "update")),
    Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    Subresource("exec", "PodExecOptions", ("create", "get")),
    Subresource("log", "Pod", ("get",)),
    Subresource("portforward", "PodPortForwardOptions", ("create", "get")),
    Subresource("proxy", "PodProxyOptions", _PROXIED),
    Subresource("resize", "Pod", ("get", "patch", "update")),
)
_POD_FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)

BUILT_IN: tuple[Kind, ...] = (
    row("v1", "namespaces", naming=names.label, answers_object=True,
        parts=(Subresource("finalize", "Namespace", ("update",)),), selectable=("status.phase",),
        begin=_namespace_begin, defaults=_namespace_defaults, carry=_namespace_carry, rules=_namespace_rules,
        ending=_namespace_ending, status_carry=statuses.namespace_defaults,
        status_rules=statuses.namespace, content_finalizers=True, columns=columns.NAMESPACE),
    row("v1", "nodes", keeps_status=True, parts=(Subresource("proxy", "NodeProxyOptions", _PROXIED),),
        selectable=("spec.unschedulable",), defaults=nodes.defaults, rules=nodes.rules,
        status_carry=statuses.node_defaults, status_rules=statuses.node,
        columns=columns.NODE),
    row("v1", "pods", generation=True, answers_object=True, parts=_POD_PARTS, selectable=_POD_FIELDS,
        begin=pods.begin, defaults=pods.defaults, of_spec=True, rules=pods.rules, grace=pods.grace,
        status_carry=pod_status.carry, status_rules=pod_status.rules,
        columns=columns.POD),
    row("v1", "services", naming=names.label, answers_object=True,
        parts=(Subresource("proxy", "ServiceProxyOptions", _PROXIED),), selectable=("spec.clusterIP", "spec.type"),
        begin=services.begin, defaults=services.defaults, carry=services.carry, rules=service_rules.rules,
        status_carry=statuses.service_defaults, status_rules=statuses.service,
        columns=columns.SERVICE),
    row("v1", "configmaps", rules=_config_map_rules, columns=columns.CONFIG_MAP),
    row("v1", "secrets", selectable=("type",), defaults=_secret_defaults, rules=_secret_rules,
        columns=columns.SECRET),
    row("v1", "serviceaccounts", answers_object=True,
        parts=(Subresource("token", "TokenRequest", ("create",), "authentication.k8s.io", "v1"),),
        columns=columns.SERVICE_ACCOUNT),
    # To be found and kept; nothing is passed on to the servers they name.
    row("apiregistration.k8s.io/v1", "apiservices"),
    row("coordination.k8s.io/v1", "leases", unconditional=False, rules=_lease_rules,
        columns=columns.LEASE),
    Kind(core.DEFINITIONS, ("crd", "crds"), ("api-extensions",), status=True, status_only=True, generation=True,
         unconditional=False, begin=definitions.begin, defaults=definitions.defaults, rules=definition_rules.rules,
         answers_object=True, ending=definitions.ending, columns=columns.DEFINITION),
    *events.KINDS, *workloads.KINDS, *jobs.KINDS, *scaling.KINDS, *endpoints.KINDS, *network.KINDS, *storage.KINDS,
    *drivers.KINDS, *quotas.KINDS, *access.KINDS, *access_reviews.KINDS, *webhooks.KINDS, *seldom.KINDS,
)
