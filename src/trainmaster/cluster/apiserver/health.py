"""Whether the server is well, and what that was found by: `/healthz`, `/livez`, `/readyz`. Pure.

A server that answers has its store and its log: the parts are there because scripts and load balancers ask for them by
name, and to be told with `?verbose`.
"""

from trainmaster.cluster.apiserver.routing import Query
from trainmaster.kube.transport import Response

NAMES = frozenset({"healthz", "livez", "readyz"})
_CHECKS = ("ping", "log", "etcd")       # the last is the store, under the name that everybody asks for
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


def answer(name: str, check: str, query: Query) -> Response | None:
    """What one of them says, or one check of it; None if there is no such check."""
    checks = (*_CHECKS, "informer-sync", "shutdown") if name == "readyz" else _CHECKS
    if check:
        return Response(200, _TEXT, b"ok") if check in checks else None
    if not query.all("verbose"):
        return Response(200, _TEXT, b"ok")
    left_out = query.all("exclude")
    lines = [f"[+]{each} {'excluded: ' if each in left_out else ''}ok\n" for each in checks]
    return Response(200, _TEXT, "".join((*lines, f"{name} check passed\n")).encode())
