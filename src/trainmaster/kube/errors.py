"""What can go wrong when talking to an API server, told apart by what the caller should do."""

from trainmaster.api.meta import Object


class KubeError(Exception):
    """Any failure of a request."""


class Unreachable(KubeError):
    """No answer came: refused, reset, timed out. The request may or may not have been carried out."""


class ApiError(KubeError):
    """The server answered with a Status that is not success."""

    def __init__(
        self, code: int, reason: str, message: str, status: Object | None = None, *, header: float | None = None
    ) -> None:
        super().__init__(message or f"the server answered {code} {reason}".rstrip())
        self.code = code
        self.reason = reason
        self.status = status or {}
        self.retry_after_header = header

    @property
    def retry_after(self) -> float | None:
        """How many seconds the server asked us to wait, if it did."""
        if self.retry_after_header is not None:
            return self.retry_after_header
        seconds = (self.status.get("details") or {}).get("retryAfterSeconds")
        return float(seconds) if seconds else None


class NotFound(ApiError):
    """404: the object, or the kind, is not there."""


class AlreadyExists(ApiError):
    """409 AlreadyExists: an object of that name is there."""


class Conflict(ApiError):
    """409 Conflict: the object changed since it was read, or a precondition does not hold."""


class Gone(ApiError):
    """410 Gone or Expired: the revision asked for is forgotten; list again."""


class Invalid(ApiError):
    """422 or 400: the server will never take this object as it is."""


class Forbidden(ApiError):
    """401 or 403: we may not."""


class TooManyRequests(ApiError):
    """429: later."""


def from_status(code: int, status: Object, *, header: float | None = None) -> ApiError:
    """The exception for a Status object, or for an answer that carried none; `header` is its Retry-After."""
    reason = str(status.get("reason", ""))
    message = str(status.get("message", ""))
    return _class_of(code, reason)(code, reason, message, status, header=header)


def is_transient(error: BaseException) -> bool:
    """Whether the same request, planned anew, may well succeed later: nobody did anything wrong."""
    if isinstance(error, ApiError):
        return isinstance(error, Conflict | Gone | TooManyRequests) or error.code >= 500
    return isinstance(error, Unreachable)


def _class_of(code: int, reason: str) -> type[ApiError]:
    if code == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    return _BY_CODE.get(code, ApiError)


_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid, 401: Forbidden, 403: Forbidden, 404: NotFound, 410: Gone, 422: Invalid, 429: TooManyRequests,
}
