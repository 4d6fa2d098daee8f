"""How a container is probed, and what is done when it starts and before it stops."""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks
from trainmaster.cluster.apiserver.causes import Cause

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER = "[-A-Za-z0-9]+"
_HEADERS = re.compile(_HEADER)
_NOT_A_HEADER = ("a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex "
                 f"used for validation is '{_HEADER}')")
_ONLY_KEPT = "may not be set for init containers without restartPolicy=Always"


def rules(container: Object, spec: Object, path: str) -> Iterator[Cause]:
    """Of a container of the pod with this spec that runs as long as the pod does."""
    grace = spec.get("terminationGracePeriodSeconds")
    if container.get("lifecycle"):
        yield from _lifecycle_rules(container["lifecycle"], grace, f"{path}.lifecycle")
    for probe in _PROBES:
        if container.get(probe) is not None:
            yield from _probe_rules(container[probe], grace, f"{path}.{probe}", of=probe)


def none_of_them(container: Object, path: str) -> Iterator[Cause]:
    """A container that ends before the others begin has none."""
    for field in ("lifecycle", *_PROBES):
        if container.get(field) is not None:
            yield causes.forbidden(f"{path}.{field}", _ONLY_KEPT)


def _lifecycle_rules(lifecycle: Object, grace: int | None, path: str) -> Iterator[Cause]:
    for moment in ("postStart", "preStop"):
        if lifecycle.get(moment) is not None:
            yield from _handler_rules(lifecycle[moment], grace, f"{path}.{moment}")


def _probe_rules(probe: Object, grace: int | None, path: str, *, of: str) -> Iterator[Cause]:
    yield from _handler_rules(probe, grace, path)
    yield from checks.not_negative(probe, path, *_COUNTS)
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield causes.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")
    if of == "readinessProbe" and seconds is not None:
        yield causes.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must not be set for readinessProbes")
    elif of != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield causes.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_rules(action: Object, grace: int | None, path: str) -> Iterator[Cause]:
    found = [handler for handler in _HANDLERS if action.get(handler) is not None]
    if not found:
        yield causes.required(path, "must specify a handler type")
    for handler in found[:1]:
        yield from _HANDLERS[handler](action[handler], grace, f"{path}.{handler}")
    for handler in found[1:]:
        yield causes.forbidden(f"{path}.{handler}", "may not specify more than 1 handler type")


def _exec(action: Object, _grace: int | None, path: str) -> Iterator[Cause]:
    if not action.get("command"):
        yield causes.required(f"{path}.command")


def _http(action: Object, _grace: int | None, path: str) -> Iterator[Cause]:
    if not action.get("path"):
        yield causes.required(f"{path}.path")
    yield from checks.port(action.get("port"), f"{path}.port")
    yield from checks.choice(action.get("scheme"), f"{path}.scheme", ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        if not _HEADERS.fullmatch(header.get("name") or ""):
            yield causes.invalid(f"{path}.httpHeaders", header.get("name") or "", _NOT_A_HEADER)


def _socket(action: Object, _grace: int | None, path: str) -> Iterator[Cause]:
    yield from checks.port(action.get("port"), f"{path}.port")


def _sleep(action: Object, grace: int | None, path: str) -> Iterator[Cause]:
    seconds = action.get("seconds") or 0
    if grace is not None and not 0 <= seconds <= grace:
        yield causes.invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds "
                             f"({grace})")


_Rule: TypeAlias = Callable[[Object, int | None, str], Iterator[Cause]]
_HANDLERS: dict[str, _Rule] = {"exec": _exec, "httpGet": _http, "tcpSocket": _socket, "grpc": _socket, "sleep": _sleep}
