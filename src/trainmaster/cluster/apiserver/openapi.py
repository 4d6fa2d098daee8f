"""OpenAPI documents: enough for kubectl to validate on the server, to apply and to explain custom resources.

Built-in kinds are described as open objects; only custom resources carry a schema, which is the one of their
definition. Strategic merge is not offered in the documents on purpose: kubectl then uses the merge keys of its own
types, which are right, instead of ours, which would be none.
"""

import hashlib

import orjson

from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver.catalog import Catalog, GroupVersion
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.patching import JSON_PATCH, MERGE_PATCH

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_GVK = "x-kubernetes-group-version-kind"
_TITLE = "Trainmaster"

_API_VERSION: Object = {"type": "string", "description": "The version of this representation, as group/version."}
_KIND: Object = {"type": "string", "description": "The kind of this object."}
_OBJECT_META: Object = {
    "type": "object", "description": "Metadata that all objects have.",
    "properties": {
        "name": {"type": "string", "description": "Unique within a namespace and a kind."},
        "generateName": {"type": "string", "description": "The beginning of a name the server completes."},
        "namespace": {"type": "string", "description": "The namespace the object lives in."},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Keys to select by."},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"},
                        "description": "Keys for tools, not selected by."},
        "finalizers": {"type": "array", "items": {"type": "string"},
                       "description": "Names that must be taken off before the object goes."},
        "ownerReferences": {"type": "array", "items": {"type": "object"}, "description": "Objects this one ends with."},
        "uid": {"type": "string", "description": "Tells this object from others of the same name, also later ones."},
        "resourceVersion": {"type": "string", "description": "Changes with every write."},
        "generation": {"type": "integer", "format": "int64", "description": "Counts changes of the desired state."},
        "creationTimestamp": {"type": "string", "format": "date-time", "description": "When the object was created."},
        "deletionTimestamp": {"type": "string", "format": "date-time", "description": "When the object may go."},
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Time it has to end."},
    },
}


def index(catalog: Catalog) -> Object:
    """GET /openapi/v3."""
    places = {_place(served): _hash(catalog, served) for served in catalog.versions()}
    return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
                      for place, digest in places.items()}}


def document(catalog: Catalog, place: str, version: str) -> Object | None:
    """GET /openapi/v3/apis/GROUP/VERSION."""
    served = next((each for each in catalog.versions() if _place(each) == place), None)
    if served is None:
        return None
    paths: Object = {}
    schemas: Object = {_META: _OBJECT_META, _DELETE_OPTIONS: {"type": "object"}}
    for kind in served.kinds:
        schemas[schema_name(kind.resource)] = _schema(kind)
        paths.update(_paths(kind))
    return {"openapi": "3.0.0", "info": {"title": _TITLE, "version": version}, "paths": paths,
            "components": {"schemas": schemas}}


def version_2(catalog: Catalog, version: str) -> Object:
    """GET /openapi/v2: definitions only; the clients that still ask for it look no further."""
    definitions: Object = {_META: _OBJECT_META}
    for served in catalog.versions():
        for kind in served.kinds:
            definitions[schema_name(kind.resource)] = _rerooted(_schema(kind))
    return {"swagger": "2.0", "info": {"title": _TITLE, "version": version}, "paths": {}, "definitions": definitions}


def etag(document_bytes: bytes) -> str:
    return hashlib.sha256(document_bytes).hexdigest().upper()


def schema_name(resource: Resource) -> str:
    if resource.group.endswith(".k8s.io") or not resource.group:
        return f"io.k8s.api.{resource.group.partition('.')[0] or 'core'}.{resource.version}.{resource.kind}"
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _place(served: GroupVersion) -> str:
    return f"apis/{served.group}/{served.version}" if served.group else f"api/{served.version}"


def _hash(catalog: Catalog, served: GroupVersion) -> str:
    return hashlib.sha512(f"{catalog.digest()} {served.name}".encode()).hexdigest().upper()


def _schema(kind: Kind) -> Object:
    given: Object = kind.schema.document if kind.schema is not None else {"x-kubernetes-preserve-unknown-fields": True}
    properties = {**(given.get("properties") or {}), "apiVersion": _API_VERSION, "kind": _KIND,
                  "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}"}], "default": {},
                               "description": "Metadata that all objects have."}}
    return {**given, "type": "object", "properties": properties, _GVK: [_gvk(kind.resource)]}


def _paths(kind: Kind) -> Object:
    resource = kind.resource
    base = resource.path("{namespace}" if resource.namespaced else "")
    one = [_parameter("name", "path")] + ([_parameter("namespace", "path")] if resource.namespaced else [])
    reference = {"$ref": f"#/components/schemas/{schema_name(resource)}"}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}}
    body = {"content": {"application/json": {"schema": reference}}}
    writing = [_parameter(name, "query") for name in ("dryRun", "fieldManager", "fieldValidation")]

    def operation(action: str, **more: Json) -> Object:
        return {"x-kubernetes-action": action, _GVK: _gvk(resource), "responses": answer, **more}

    patched = {"content": {media: {"schema": {"type": "object"}} for media in (JSON_PATCH, MERGE_PATCH)}}
    return {
        base: {
            "get": operation("list"), "post": operation("post", parameters=writing, requestBody=body),
            "parameters": one[1:],
        },
        f"{base}/{{name}}": {
            "get": operation("get"), "put": operation("put", parameters=writing, requestBody=body),
            "patch": operation("patch", parameters=writing, requestBody=patched), "delete": operation("delete"),
            "parameters": one,
        },
    }


def _parameter(name: str, where: str) -> Object:
    return {"name": name, "in": where, "schema": {"type": "string", "uniqueItems": True},
            **({"required": True} if where == "path" else {})}


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _rerooted(schema: Object) -> Object:
    """The same schema with references as version 2 writes them."""
    found: Object = orjson.loads(orjson.dumps(schema).replace(b'"#/components/schemas/', b'"#/definitions/'))
    return found
