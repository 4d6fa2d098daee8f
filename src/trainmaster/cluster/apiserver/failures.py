"""Every way a request can fail, as the Status object that Kubernetes would answer with.

One exception carries the whole answer. The alternative, error codes returned up the chain, would have to be passed on
by every function between a rule and the socket; a `Failure` is raised where the reason is known and rendered once.
"""

from collections.abc import Iterable, Mapping, Sequence

from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.causes import invalid as invalid_value

CHANGED = "the object has been modified; please apply your changes to the latest version and try again"


class Failure(Exception):
    """The request is answered with this Status."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None, *,
                 headers: Mapping[str, str] | None = None, more: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details                # an empty one is sent, none is not: the real server does both
        self.headers = headers or {}
        self.more = more                      # a continue token that still works, for an expired one
        self.warnings: Sequence[str] = ()     # what webhooks said before one of them refused

    def status(self) -> Object:
        """The Status object, field order as the real server prints it."""
        found: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {"continue": self.more} if self.more else {},
                         "status": "Failure", "message": self.message}
        if self.reason:
            found["reason"] = self.reason
        if self.details is not None:
            found["details"] = self.details
        found["code"] = self.code
        return found


def success(resource: Resource, name: str, uid: str) -> Object:
    """The Status that answers a deletion."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {**_details(resource, name), "uid": uid}}


def bad_request(message: str) -> Failure:
    return Failure(400, "BadRequest", message)


def misnamed(given: str, name: str) -> Failure:
    return bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def unauthorized() -> Failure:
    return Failure(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> Failure:
    details = _details(resource, name)
    if causes:
        details["causes"] = [cause.document() for cause in causes]
    named = f"{_place(resource)} {quoted(name)}" if name else _place(resource)
    return Failure(403, "Forbidden", f"{named} is forbidden: {why}", details)


def not_found(resource: Resource, name: str) -> Failure:
    return Failure(404, "NotFound", f"{_place(resource)} {quoted(name)} not found", _details(resource, name))


def unknown_resource() -> Failure:
    """No such kind, or no such subresource of it."""
    return Failure(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Failure:
    return Failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(types: Sequence[str]) -> Failure:
    return Failure(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {', '.join(types)}", {})


def already_exists(resource: Resource, name: str) -> Failure:
    return Failure(409, "AlreadyExists", f"{_place(resource)} {quoted(name)} already exists", _details(resource, name))


def conflict(resource: Resource, name: str, why: str = CHANGED) -> Failure:
    message = f"Operation cannot be fulfilled on {_place(resource)} {quoted(name)}: {why}"
    return Failure(409, "Conflict", message, _details(resource, name))


def expired(message: str, more: str = "") -> Failure:
    return Failure(410, "Expired", message, more=more)


def too_large(limit: int) -> Failure:
    return Failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(types: Sequence[str]) -> Failure:
    accepted = ", ".join(types)
    return Failure(415, "UnsupportedMediaType",
                   f"the body of the request was in an unknown format - accepted media types include: {accepted}")


def unsupported_patch() -> Failure:
    """The real server turns such a patch of a built-in kind away before it looks at the kind."""
    return Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unmet(resource: Resource, name: str, what: str, wanted: str, found: str) -> Failure:
    """A deletion of another object than the one that was meant, which this names by its kind and not its plural."""
    fate = "deleted and then recreated" if what == "UID" else "modified"
    named = Resource(resource.group, resource.version, resource.kind, resource.kind)
    return conflict(named, name, f"the {what} in the precondition ({wanted}) does not match the {what} in record "
                                 f"({found}). The object might have been {fate}")


def invalid_patch(patched: str, why: str) -> Failure:
    """The patch is well formed, but what it makes of the object is not an object of the kind."""
    return invalid_kind("", "", "", [invalid_value("patch", patched, why)])


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> Failure:
    return invalid_kind(resource.kind, resource.group, name, causes)


def invalid_kind(kind: str, group: str, name: str, causes: Iterable[Cause]) -> Failure:
    """422 with one cause per fault; the message repeats them, in brackets when there are several."""
    found = list(causes)
    texts = list(dict.fromkeys(str(cause) for cause in found))
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Object = {"name": name, "group": group, "kind": kind, "causes": [cause.document() for cause in found]}
    qualified = f"{kind}.{group}" if group else kind
    message = f"{qualified} {quoted(name)} is invalid: {said}"
    return Failure(422, "Invalid", message, {key: value for key, value in details.items() if value})


def unprocessable(message: str) -> Failure:
    """A patch that is well formed but cannot be applied to this object."""
    return Failure(422, "Invalid", message, {})


def too_many_requests(retry_after: int = 1) -> Failure:
    return Failure(429, "TooManyRequests", "Too many requests, please try again later.",
                   {"retryAfterSeconds": retry_after}, headers={"Retry-After": str(retry_after)})


def internal(message: str) -> Failure:
    details = {"causes": [{"message": message}]}
    return Failure(500, "InternalError", f"Internal error occurred: {message}", details)


def unexpected(message: str) -> Failure:
    """What a real server did not foresee, and tells without a reason."""
    return Failure(500, "", message)


def unavailable(message: str, retry_after: int = 1) -> Failure:
    return Failure(503, "ServiceUnavailable", message, {"retryAfterSeconds": retry_after},
                   headers={"Retry-After": str(retry_after)})


def ahead_of_time(wanted: int, current: int) -> Failure:
    """A resourceVersion that this server has not reached."""
    cause = Cause("", "ResourceVersionTooLarge", "Too large resource version")
    return Failure(504, "Timeout", f"Timeout: Too large resource version: {wanted}, current: {current}",
                   {"causes": [cause.document()], "retryAfterSeconds": 1}, headers={"Retry-After": "1"})


def _place(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str) -> Object:
    found = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in found.items() if value}


def quoted(name: str) -> str:
    """Between quotes, as Go prints a string."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
