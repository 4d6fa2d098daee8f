"""OpenAPI documents: what kubectl needs to validate on the server, to apply and to explain.

Built-in kinds are described by the table of their types (`openapi_types`), custom resources by the schema of their
definition. Strategic merge is not offered among the patches of a path on purpose: kubectl then uses the merge keys of
its own types for kinds it knows, and those of this document for others.
"""

import hashlib
from collections.abc import Callable, Iterable

from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver import builtin, openapi_custom, openapi_types
from trainmaster.cluster.apiserver.catalog import Catalog, GroupVersion
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.patching import JSON_PATCH, MERGE_PATCH

_META = builtin.METADATA
_DELETE_OPTIONS = "apimachinery.pkg.apis.meta.v1.DeleteOptions"
_GVK = "x-kubernetes-group-version-kind"
_TITLE = "Trainmaster"
_WRITING = ("dryRun", "fieldManager", "fieldValidation")

_ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


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
    for kind in served.kinds:
        paths.update(_paths(kind))
    schemas = _schemas(served.kinds, "#/components/schemas/", openapi_custom.published)
    return {"openapi": "3.0.0", "info": {"title": _TITLE, "version": version}, "paths": paths,
            "components": {"schemas": schemas}}


def version_2(catalog: Catalog, version: str) -> Object:
    """GET /openapi/v2: the definitions, and of the paths what clients look for: whether fields are validated here."""
    kinds = [kind for served in catalog.versions() for kind in served.kinds]
    paths: Object = {}
    for kind in kinds:
        paths.update(_paths_2(kind.resource))
    definitions = _schemas(kinds, "#/definitions/", openapi_custom.published_2)
    return {"swagger": "2.0", "info": {"title": _TITLE, "version": version}, "paths": paths, "definitions": definitions}


def etag(document_bytes: bytes) -> str:
    return hashlib.sha256(document_bytes).hexdigest().upper()


def schema_name(kind: Kind) -> str:
    if kind.type is not None:
        return kind.type.definition
    resource = kind.resource
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _place(served: GroupVersion) -> str:
    return f"apis/{served.group}/{served.version}" if served.group else f"api/{served.version}"


def _hash(catalog: Catalog, served: GroupVersion) -> str:
    return hashlib.sha512(f"{catalog.digest()} {served.name}".encode()).hexdigest().upper()


def _schemas(kinds: Iterable[Kind], place: str, published: Callable[[Object, str], Object]) -> Object:
    served = list(kinds)
    types = [kind.type for kind in served if kind.type is not None]
    found = openapi_types.schemas([builtin.type_named(_META), builtin.type_named(_DELETE_OPTIONS), *types], place)
    for kind in served:
        if kind.type is None:
            given = kind.schema.document if kind.schema is not None else _ANYTHING
            found[schema_name(kind)] = published(given, place)
        found[schema_name(kind)].setdefault(_GVK, []).append(_gvk(kind.resource))
    return found


def _paths(kind: Kind) -> Object:
    resource = kind.resource
    base = resource.path("{namespace}" if resource.namespaced else "")
    one = [_parameter("name", "path")] + ([_parameter("namespace", "path")] if resource.namespaced else [])
    reference = {"$ref": f"#/components/schemas/{schema_name(kind)}"}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}}
    body = {"content": {"application/json": {"schema": reference}}}
    writing = [_parameter(name, "query") for name in _WRITING]

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


def _paths_2(resource: Resource) -> Object:
    base = resource.path("{namespace}" if resource.namespaced else "")
    found = [("name", "path"), *([("namespace", "path")] if resource.namespaced else [])]
    one = [{"name": name, "in": where, "type": "string", "required": True} for name, where in found]
    writing = [{"name": name, "in": "query", "type": "string"} for name in _WRITING]
    patch = {"x-kubernetes-action": "patch", _GVK: _gvk(resource), "parameters": writing,
             "consumes": [JSON_PATCH, MERGE_PATCH], "responses": {"200": {"description": "OK"}}}
    return {f"{base}/{{name}}": {"patch": patch, "parameters": one}}


def _parameter(name: str, where: str) -> Object:
    return {"name": name, "in": where, "schema": {"type": "string", "uniqueItems": True},
            **({"required": True} if where == "path" else {})}


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}
