"""The built-in kinds, one row each: what they are called, their subresources, defaults, rules and columns."""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime

from trainmaster.api import core
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver import causes, columns, definitions, names, pods, services, shapes
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind, Subresource

# Namespaces that cannot be deleted, and those that exist from the start.
PERMANENT = ("default", "kube-system", "kube-public")
FIRST = (*PERMANENT, "kube-node-lease")
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

BINDINGS = Resource("", "v1", "bindings", "Binding")


def _namespace_begin(namespace: Object) -> None:
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _namespace_defaults(namespace: Object) -> None:
    meta = namespace["metadata"]
    if meta.get("name"):
        meta.setdefault("labels", {}).setdefault(NAMESPACE_LABEL, meta["name"])


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
    yield from _frozen(thing, old, ("data", "binaryData"))


def _secret_defaults(secret: Object) -> None:
    """`stringData` is for writing only: it ends up, encoded, in `data`."""
    plain = secret.pop("stringData", None) or {}
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}
    secret.setdefault("type", "Opaque")


def _secret_rules(secret: Object, old: Object | None) -> Iterator[Cause]:
    for key, value in (secret.get("data") or {}).items():
        yield from names.refused(f"data[{key}]", key, names.data_key(key))
        if not _is_base64(value):
            yield causes.invalid(f"data[{key}]", "<redacted>", "must be base64")
    if old is not None and old.get("type") != secret.get("type"):
        yield causes.invalid("type", secret.get("type"), "field is immutable")
    yield from _frozen(secret, old, ("data",))


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


def _endpoints_defaults(thing: Object) -> None:
    for subset in thing.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _event_rules(event: Object, _old: Object | None) -> Iterator[Cause]:
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    home = event["metadata"].get("namespace")
    if about and about != home:
        yield causes.invalid("involvedObject.namespace", about, "does not match event.namespace")


def _lease_rules(lease: Object, _old: Object | None) -> Iterator[Cause]:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")


_POD_PARTS = (
    Subresource("binding", "Binding", ("create",)),
    Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    Subresource("log", "Pod", ("get",)),
)
_EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "source", "type",
)
_POD_FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)

BUILT_IN: tuple[Kind, ...] = (
    Kind(core.NAMESPACES, ("ns",), naming=names.label, status=True, answers_object=True,
         subresources=(Subresource("finalize", "Namespace", ("update",)),), selectable=("status.phase",),
         shape=shapes.NAMESPACE, begin=_namespace_begin, defaults=_namespace_defaults, carry=_namespace_carry,
         ending=_namespace_ending, content_finalizers=True, columns=columns.NAMESPACE),
    Kind(core.NODES, ("no",), status=True, keeps_status=True, selectable=("spec.unschedulable",), shape=shapes.NODE,
         columns=columns.NODE),
    Kind(core.PODS, ("po",), ("all",), status=True, generation=True, answers_object=True, subresources=_POD_PARTS,
         selectable=_POD_FIELDS, shape=shapes.POD, begin=pods.begin, defaults=pods.defaults, rules=pods.rules,
         grace=pods.grace, columns=columns.POD),
    Kind(core.SERVICES, ("svc",), ("all",), naming=names.label_1035, status=True, answers_object=True,
         selectable=("spec.clusterIP", "spec.type"), shape=shapes.SERVICE, begin=services.begin,
         defaults=services.defaults, carry=services.keep_address, rules=services.rules, columns=columns.SERVICE),
    Kind(core.ENDPOINTS, ("ep",), singular="endpoints", shape=shapes.ENDPOINTS, defaults=_endpoints_defaults,
         list_kind="EndpointsList", columns=columns.ENDPOINTS),
    Kind(core.CONFIG_MAPS, ("cm",), shape=shapes.CONFIG_MAP, rules=_config_map_rules, columns=columns.CONFIG_MAP),
    Kind(core.SECRETS, selectable=("type",), shape=shapes.SECRET, defaults=_secret_defaults, rules=_secret_rules,
         columns=columns.SECRET),
    Kind(core.SERVICE_ACCOUNTS, ("sa",), shape=shapes.SERVICE_ACCOUNT, columns=columns.SERVICE_ACCOUNT),
    Kind(core.EVENTS, ("ev",), selectable=_EVENT_FIELDS, shape=shapes.EVENT, rules=_event_rules,
         columns=columns.EVENT),
    Kind(core.LEASES, shape=shapes.LEASE, unconditional=False, rules=_lease_rules, columns=columns.LEASE),
    Kind(core.DEFINITIONS, ("crd", "crds"), ("api-extensions",), status=True, generation=True, unconditional=False,
         shape=shapes.DEFINITION, begin=definitions.begin, defaults=definitions.defaults, rules=definitions.rules,
         answers_object=True, ending=definitions.ending, columns=columns.DEFINITION),
)
