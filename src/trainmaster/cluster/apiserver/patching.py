"""Patches: JSON patch (by `jsonpatch`), merge patch, and strategic merge for built-in kinds.

Strategic merge knows which lists are merged by which key from a table of field names. Kubernetes keeps that in the
types of each kind; a table by field name says the same for every kind we have, and the few names that differ between
kinds are resolved by looking at the items. Server-side apply is not here yet: 415.
"""

from collections.abc import Sequence

import jsonpatch
import jsonpointer
import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import bodies, failures

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# As the real server: more operations than this in one patch are refused.
MOST_OPERATIONS = 10_000
# Each copy may double the document; after this many it is an attack and not an edit.
MOST_COPIES = 100

REJECTED = "the server rejected our request due to an error in our request"
_CANNOT = (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, LookupError, TypeError, ValueError)

# Lists of objects that are merged item by item, and the field that identifies an item.
MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "hostIPs": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),        # of a container, of a service
    "resourceClaims": ("name",),
    "secrets": ("name",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
# Lists of plain values that are merged as sets.
MERGED_SETS = frozenset({"finalizers"})


def applied(original: Object, body: bytes, media: str, *, custom: bool) -> Object:
    """The patched object; `original` is used up. Raises Failure: 400, 413, 415 or 422."""
    if len(body) > bodies.MOST_BYTES:
        raise failures.too_large(bodies.MOST_BYTES)
    if media == JSON_PATCH:
        result = json_patch(original, bodies.parse_json(body))
    elif media == MERGE_PATCH:
        result = merge_patch(original, bodies.as_object(bodies.parse_json(body)))
    elif media == STRATEGIC_PATCH and not custom:
        result = strategic_patch(original, bodies.as_object(bodies.parse_json(body)))
    else:
        raise failures.unsupported_media_type((JSON_PATCH, MERGE_PATCH) if custom
                                              else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH))
    if bodies.depth(result) > bodies.DEEPEST:
        raise failures.unprocessable(f"the patched object is nested more than {bodies.DEEPEST} levels deep")
    return result


def json_patch(original: Object, patch: Json) -> Object:
    """RFC 6902."""
    operations = _operations(patch)
    result: Json = original
    copies = 0
    try:
        for operation in operations:
            result = jsonpatch.apply_patch(result, [operation], in_place=True)
            if operation["op"] == "copy":
                copies += 1
                if copies > MOST_COPIES or len(orjson.dumps(result)) > bodies.MOST_BYTES:
                    raise failures.too_large(bodies.MOST_BYTES)
    except jsonpatch.InvalidJsonPatch as error:
        raise failures.bad_request(f"the JSON patch is not valid: {error}") from error
    except _CANNOT as error:
        raise failures.unprocessable(REJECTED) from error
    if not isinstance(result, dict):
        raise failures.unprocessable(REJECTED)
    return result


def merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_patch(target: Json, patch: Object) -> Object:
    """Like a merge patch, but lists with a merge key are merged item by item, and `$` directives are obeyed."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    result: Object = target if isinstance(target, dict) else {}
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            _delete_from(result, key.partition("/")[2], value)
        elif not key.startswith("$"):
            _merge_field(result, key, value)
    for key, value in patch.items():
        if key.startswith("$setElementOrder/") and isinstance(value, list):
            _order(result, key.partition("/")[2], value)
    return result


def _operations(patch: Json) -> Sequence[Object]:
    if not isinstance(patch, list):
        raise failures.bad_request("a JSON patch is a list of operations")
    if len(patch) > MOST_OPERATIONS:
        raise failures.Failure(
            413, "RequestEntityTooLarge", "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MOST_OPERATIONS}, got {len(patch)}")
    for operation in patch:
        if not isinstance(operation, dict):
            raise failures.bad_request("an operation of a JSON patch is an object")
        if not all(isinstance(operation.get(key, ""), str) for key in ("op", "path", "from")):
            raise failures.bad_request("`op`, `path` and `from` of an operation of a JSON patch are text")
        if operation.get("op") not in {"add", "remove", "replace", "move", "copy", "test"}:
            raise failures.bad_request(f"unknown operation of a JSON patch: {str(operation.get('op'))[:40]!r}")
    return patch


def _merge_field(result: Object, key: str, value: Json) -> None:
    current = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        merged = strategic_patch(current, value)
        if value.get("$patch") == "delete":
            result.pop(key, None)
        else:
            result[key] = merged
    elif isinstance(value, list) and key in MERGED_SETS:
        known = current if isinstance(current, list) else []
        result[key] = [*known, *(item for item in value if item not in known)]
    elif isinstance(value, list) and (by := _merge_key(key, value, current)):
        result[key] = _merge_lists(current if isinstance(current, list) else [], value, by)
    else:
        result[key] = value


def _merge_key(field: str, patch: list[Json], current: Json) -> str:
    """The key this list is merged by, or empty: the list is replaced."""
    items = [item for item in [*patch, *(current if isinstance(current, list) else [])] if isinstance(item, dict)]
    for key in MERGE_KEYS.get(field, ()):
        if any(key in item for item in items):
            return key
    return ""


def _merge_lists(current: list[Json], patch: list[Json], by: str) -> list[Json]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    result = list(current)
    for item in patch:
        if not isinstance(item, dict) or by not in item:
            raise failures.bad_request(f"map: {str(item)[:100]} does not contain declared merge key: {by}")
        at = next((index for index, found in enumerate(result)
                   if isinstance(found, dict) and found.get(by) == item[by]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(strategic_patch({}, item))
        else:
            result[at] = strategic_patch(result[at], item)
    return result


def _delete_from(result: Object, field: str, gone: Json) -> None:
    current = result.get(field)
    if isinstance(current, list) and isinstance(gone, list):
        result[field] = [item for item in current if item not in gone]


def _order(result: Object, field: str, order: list[Json]) -> None:
    """Put the items that the client names in its order; the others keep their place behind the item they followed."""
    current = result.get(field)
    if not isinstance(current, list):
        return
    by = _merge_key(field, order, current)

    def identity(item: Json) -> Json:
        return item.get(by) if by and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    places: list[tuple[int, int]] = []
    last = -1
    for index, item in enumerate(current):
        if identity(item) in wanted:
            last = wanted.index(identity(item))
        places.append((last, index))
    result[field] = [current[index] for _, index in sorted(places)]
