"""What a body says it is: apiVersion and kind against the place it was sent to.

Built-in kinds may leave both out, for the place tells them. A custom resource may not: a real server decodes one by
what it says, and clients that forget it must learn so here and not on the cluster they move to.
"""

import orjson

from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver import builtin, causes, failures

_SCHEME = "pkg/runtime/scheme.go:111"      # where Kubernetes keeps its kinds
SHOWN = 30       # signs of a body that are repeated at the end of the message, as a real server does


class Unrecognized(failures.Failure):
    """400: the body does not say what it is. `why` is the part of the message that patches repeat."""

    def __init__(self, resource: Resource, thing: Object) -> None:
        text = orjson.dumps(thing).decode()
        self.why = f"Object 'Kind' is missing in '{text}'"
        start = text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
        super().__init__(400, "BadRequest", f"the object provided is unrecognized (must be of type {resource.kind}): "
                                            f"{self.why} ({start})")


class Misplaced(failures.Failure):
    """400: the body is an object of another built-in kind, or of none."""

    def __init__(self, resource: Resource, thing: Object) -> None:
        kind, version = str(thing.get("kind") or resource.kind), str(thing.get("apiVersion") or resource.api_version)
        if builtin.shape_of(version, kind) is None:
            self.why = f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
        else:
            package = resource.group.partition(".")[0] or "core"
            self.why = (f"converting ({version.rpartition('/')[2]}.{kind}) to ({package}.{resource.kind}): "
                        "unknown conversion")
        super().__init__(400, "BadRequest", f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
                                            f"{self.why}")


def check(resource: Resource, thing: Object, *, custom: bool, patched: bool) -> None:
    """Raises Failure 400 or 422 for another type than the one that is served here."""
    for field, expected, what in (("kind", resource.kind, "kind"), ("apiVersion", resource.api_version, "API version")):
        found = thing.get(field)
        if found == expected or (not found and not custom):
            continue
        if field == "kind" and not (found and isinstance(found, str)):
            raise Unrecognized(resource, thing)
        if custom and (patched or field == "kind") and isinstance(found, str):
            raise _other(resource, thing, field, found, expected)
        if custom:
            raise failures.bad_request(f"the {what} in the data ({found or ''}) does not match the expected {what} "
                                       f"({expected})")
        raise Misplaced(resource, thing)


def _other(resource: Resource, thing: Object, field: str, found: str, expected: str) -> failures.Failure:
    """The object is named by what it says it is."""
    version = str(thing.get("apiVersion") or resource.api_version)
    group = version.rpartition("/")[0]
    meta = thing.get("metadata")
    name = str(meta.get("name") or "") if isinstance(meta, dict) else ""
    kind = str(thing.get("kind") or resource.kind)
    return failures.invalid_kind(kind, group, name, [causes.invalid(field, found, f"must be {expected}")])
