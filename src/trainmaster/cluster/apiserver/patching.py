"""Patches: JSON patch (by `jsonpatch`), merge patch, strategic merge (`strategic`) for built-in kinds, configurations.

A patch is read once and may be applied several times, each time to a newer state, so what is applied is parsed anew:
the result takes parts of it over and is changed later. What applying a configuration means is in `applying`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jsonpatch
import jsonpointer
import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import bodies, failures, repeats, strategic
from trainmaster.cluster.apiserver.builtin import Type
from trainmaster.cluster.apiserver.repeats import Repeats

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# As the real server: more operations than this in one patch are refused.
MOST_OPERATIONS = 10_000
# Each copy may double the document; after this many it is an attack and not an edit.
MOST_COPIES = 100

REJECTED = "the server rejected our request due to an error in our request"
_CANNOT = (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, LookupError, TypeError, ValueError)



@dataclass(frozen=True, slots=True)
class Patch:
    """A patch that was read, and the kind it is for."""

    media: str
    raw: bytes
    repeats: Repeats | None
    type: Type | None

    def applied(self, original: Object) -> Object:
        """The patched object; `original` is used up. Raises Failure: 400, 413 or 422."""
        value = orjson.loads(self.raw)
        if self.media == JSON_PATCH:
            result = json_patch(original, value)
            if bodies.depth(result) > bodies.DEEPEST:      # the other two make nothing deeper than what they merge
                raise failures.unprocessable(f"the patched object is nested more than {bodies.DEEPEST} levels deep")
        elif self.media == MERGE_PATCH:
            if not isinstance(value, dict):
                raise failures.bad_request(f"error decoding patch: {_unread(value, _MAP)}")
            result = merge_patch(original, value)
        else:
            if not isinstance(value, dict):
                raise failures.bad_request(_unread(value, _MAP))
            # What it says about the type is not looked at, as in Kubernetes.
            named: Object = {field: original[field] for field in ("apiVersion", "kind") if field in original}
            result = {**strategic.merged(original, value, self.type), **named}
        # What a patch puts into a list or a new map may still hold nulls; to a typed server they are not there.
        if self.type is None or (b"null" not in self.raw and self.media != JSON_PATCH):
            return result
        return bodies.as_object(bodies.without_nulls(result))


@dataclass(frozen=True, slots=True)
class Configuration:
    """What somebody applies."""

    raw: bytes                        # as JSON
    repeats: Sequence[str] = ()       # the lines that say something a second time

    def config(self) -> Object:
        found: Object = orjson.loads(self.raw)
        return found

    def said(self, validation: str) -> list[str]:
        """What there is to say about it once it was applied. Raises Failure 400 when the client is strict."""
        if not self.repeats or validation == "Ignore":
            return []
        lines = "\n  ".join(self.repeats)
        told = f"error converting YAML to JSON: yaml: unmarshal errors:\n  {lines}"
        if validation == "Strict":
            raise failures.bad_request(f"error strict decoding YAML: {told}")
        return [told]


def read_configuration(body: bytes) -> Configuration:
    """A configuration as it comes: YAML, and often JSON, which is YAML too. Raises Failure 400 or 413."""
    if len(body) > bodies.MOST_BYTES:
        raise failures.too_large(bodies.MOST_BYTES)
    try:
        found = bodies.read_json(body) if body.lstrip().startswith(b"{") else bodies.read_yaml(body)
        if found.repeats is not None and not found.repeats.lines:
            found = bodies.read_yaml(body)
    except failures.Failure as failure:
        if failure.code != 400 or not body.lstrip().startswith(b"{"):
            raise failures.bad_request(f"error decoding YAML: {failure.message}") from failure
        found = bodies.read_yaml(body)
    if found.value is not None and not isinstance(found.value, dict):
        raise failures.bad_request(
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {_unread(found.value, _MAP)}")
    return Configuration(orjson.dumps(found.value or {}), found.repeats.lines if found.repeats else ())


_JSON_WORDS: dict[type, str] = {list: "array", bool: "bool", int: "number", float: "number", dict: "object"}
_MAP = "map[string]interface {}"


def _unread(value: Json, wanted: str) -> str:
    """In the words of Go."""
    return f"json: cannot unmarshal {_JSON_WORDS.get(type(value), 'string')} into Go value of type {wanted}"


def read(body: bytes, media: str, type_: Type | None) -> Patch:
    """A patch of an object of a built-in type, or (None) of a custom one. Raises Failure: 400, 413 or 415."""
    kinds = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH) if type_ is None else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
    if len(body) > bodies.MOST_BYTES:
        raise failures.too_large(bodies.MOST_BYTES)
    if media not in kinds or media == APPLY_PATCH:
        raise failures.unsupported_media_type(kinds) if type_ is None else failures.unsupported_patch()
    found = bodies.read_json(body)
    said = repeats.in_json_patch(found.value, found.repeats) if media == JSON_PATCH else found.repeats
    return Patch(media, body, said, type_)


def json_patch(original: Object, patch: Json) -> Object:
    """RFC 6902."""
    operations = _operations(patch)
    result: Json = original
    copies = 0
    try:
        for operation in operations:
            result = _operated(result, operation)
            if operation["op"] == "copy":
                copies += 1
                if copies > MOST_COPIES or len(orjson.dumps(result)) > bodies.MOST_BYTES:
                    raise failures.too_large(bodies.MOST_BYTES)
    except _CANNOT as error:
        raise failures.unprocessable(REJECTED) from error
    if not isinstance(result, dict):
        raise failures.unprocessable(REJECTED)
    return result


def _operated(document: Json, operation: Object) -> Json:
    """Kubernetes' library does not mind that a field is not there: a replacement adds it, a copy of it is null, and a
    test finds null. Only its removal fails."""
    verb = operation.get("op")
    if verb in {"add", "replace", "test"}:
        operation = {"value": None, **operation}
    if verb in {"replace", "test"} and _absent(document, operation.get("path", "")):
        if verb == "test" and operation["value"] is None:
            return document
        if verb == "replace":
            operation = {**operation, "op": "add"}
    elif verb == "copy" and _absent(document, operation.get("from", "")):
        operation = {"op": "add", "path": operation.get("path"), "value": None}
    return jsonpatch.apply_patch(document, [operation], in_place=True)


def _absent(document: Json, path: str) -> bool:
    """Whether a path ends at a field that an object does not have."""
    where, _, _ = path.rpartition("/")
    parent, last = jsonpointer.resolve_pointer(document, where, None), jsonpointer.JsonPointer(path).parts[-1:]
    return isinstance(parent, dict) and bool(last) and last[0] not in parent


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


def _operations(patch: Json) -> Sequence[Object]:
    if not isinstance(patch, list):
        raise failures.bad_request(f"error decoding patch: {_unread(patch, '[]handlers.jsonPatchOp')}")
    if len(patch) > MOST_OPERATIONS:
        raise failures.Failure(
            413, "RequestEntityTooLarge", "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MOST_OPERATIONS}, got {len(patch)}")
    for operation in patch:
        if not isinstance(operation, dict):
            raise failures.bad_request(f"error decoding patch: {_unread(operation, 'handlers.jsonPatchOp')}")
        if not all(isinstance(operation.get(key, ""), str) for key in ("op", "path", "from")):
            field = next(key for key in ("op", "path", "from") if not isinstance(operation.get(key, ""), str))
            word = _JSON_WORDS.get(type(operation[field]), "string")
            raise failures.bad_request(f"error decoding patch: json: cannot unmarshal {word} into Go struct field "
                                       f"jsonPatchOp.{field} of type string")
        if operation.get("op") not in {"add", "remove", "replace", "move", "copy", "test"}:
            raise failures.unprocessable(REJECTED)
    return patch
