"""Types to OpenAPI v3 to CRD documents.

The documents are slim on purpose: the pod template keeps whatever the cluster's own Pod has, of any version, instead of
repeating eight thousand lines of it. So they fit into the annotation that client-side `kubectl apply` needs, and what
Kubernetes adds tomorrow is usable today. Nothing in them is newer than Kubernetes 1.22.
"""

import types
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.kubeflow_v1 import KINDS, JobKind
from trainmaster.api.meta import Object
from trainmaster.api.policy import JobStatus
from trainmaster.api.wire import UNKNOWN, Wire, Word

_KEEP = {"x-kubernetes-preserve-unknown-fields": True}
_STRINGS: Object = {"type": "object", "additionalProperties": {"type": "string"}}
_CONTAINER: Object = {
    "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}, **_KEEP,
}
_NAMED: dict[str, Object] = {
    "PodTemplate": {
        "type": "object",
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {
                    "annotations": _STRINGS,
                    "finalizers": {"type": "array", "items": {"type": "string"}},
                    "labels": _STRINGS,
                    "name": {"type": "string"},
                    "namespace": {"type": "string"},
                },
            },
            "spec": {
                "type": "object",
                "required": ["containers"],
                "properties": {
                    "containers": {"type": "array", "items": _CONTAINER},
                    "initContainers": {"type": "array", "items": _CONTAINER},
                },
                **_KEEP,
            },
        },
    },
    "Resources": {
        "type": "object",
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        },
    },
    "Metric": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}, **_KEEP},
}


def definitions() -> list[Object]:
    """The CustomResourceDefinition of every kind we run."""
    return [definition(kind) for kind in KINDS]


def definition(kind: JobKind) -> Object:
    resource = kind.resource
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": kind.singular,
                "shortNames": [kind.short],
            },
            "scope": "Namespaced",
            "versions": [_version(kind)],
        },
    }


def schema_of(kind: Any) -> Object:
    """The OpenAPI v3 schema of a type of the API."""
    made: Object = {}
    while get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        for note in notes:
            made |= _noted(note)
    return made if "type" in made else {**_plain(kind), **made}


def _version(kind: JobKind) -> Object:
    spec = schema_of(kind.spec)
    spec["required"] = sorted([kind.replica_field, *kind.required])
    return {
        "name": kind.resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, **_scale(kind)},
        "additionalPrinterColumns": [
            {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": spec,
                    "status": schema_of(JobStatus),
                },
            },
        },
    }


def _scale(kind: JobKind) -> Object:
    """What `kubectl scale` and autoscalers change and read, for kinds with such a role."""
    if not kind.scaled:
        return {}
    return {"scale": {
        "specReplicasPath": f".spec.{kind.replica_field}.{kind.scaled}.replicas",
        "statusReplicasPath": f".status.replicaStatuses.{kind.scaled}.active",
        "labelSelectorPath": f".status.replicaStatuses.{kind.scaled}.selector",
    }}


def _noted(note: object) -> Object:
    if not isinstance(note, msgspec.Meta):
        return {}
    extra = dict(note.extra or {})
    made: Object = dict(_NAMED[extra["schema"]]) if "schema" in extra else {}
    if "format" in extra:
        made["format"] = extra["format"]
    if extra.get("stored"):
        made["default"] = False
    if note.description:
        made["description"] = note.description
    return made


def _plain(kind: Any) -> Object:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return schema_of(next(option for option in get_args(kind) if option is not type(None)))
    if origin is tuple:
        return {"type": "array", "items": schema_of(get_args(kind)[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1])}
    if isinstance(kind, type) and issubclass(kind, Wire):
        return _record(kind)
    return dict(_SCALARS[str if isinstance(kind, type) and issubclass(kind, Word) else kind])


def _record(kind: type[Wire]) -> Object:
    made: Object = {"type": "object", "properties": {}}
    for known in fields(kind):
        if known.encode_name != UNKNOWN:
            made["properties"][known.encode_name] = schema_of(known.type)
    if required := [known.encode_name for known in fields(kind) if known.required]:
        made["required"] = required
    return made


_SCALARS: dict[Any, Object] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Any: _KEEP,
}
