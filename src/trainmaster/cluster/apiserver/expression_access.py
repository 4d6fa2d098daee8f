"""What conditions of webhooks may ask in CEL about access: `authorizer`, which means whoever sends the request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from trainmaster.cluster.apiserver.auth import Identity, account
from trainmaster.cluster.apiserver.expression_library import Does, Function, Value
from trainmaster.cluster.apiserver.rbac import Attributes

_ASKED: ContextVar[tuple[Identity, Callable[[Identity, Attributes], bool]] | None] = ContextVar("asked", default=None)
_FIELDS = ("group", "resource", "subresource", "namespace", "name", "path")


@contextmanager
def asking(who: Identity, may: Callable[[Identity, Attributes], bool]) -> Iterator[None]:
    """What `authorizer` means meanwhile: this identity, and this judge."""
    token = _ASKED.set((who, may))
    try:
        yield
    finally:
        _ASKED.reset(token)


def _check(value: Value, verb: str) -> Value:
    asked = _ASKED.get()
    if asked is None:
        raise ValueError("nobody is asked here")
    who, may = asked
    if "account" in value:
        namespace, name = str(value["account"]).split("/", 1)
        who = account(namespace, name)
    wanted = Attributes(verb, **{field: str(value.get(field, "")) for field in _FIELDS})
    return {"decision": may(who, wanted)}


def _with(field: str) -> Does:
    return lambda value, text: {**value, field: text}


def functions() -> Iterator[Function]:
    for field in _FIELDS:
        yield Function(field, ("MAP", "STRING"), "MAP", _with(field))
    yield Function("serviceAccount", ("MAP", "STRING", "STRING"), "MAP",
                   lambda value, namespace, name: {**value, "account": f"{namespace}/{name}"})
    yield Function("check", ("MAP", "STRING"), "MAP", _check)
    yield Function("allowed", ("MAP",), "BOOL", lambda value: value["decision"])
    yield Function("errored", ("MAP",), "BOOL", lambda _value: False)
    yield Function("error", ("MAP",), "STRING", lambda _value: "")
    yield Function("reason", ("MAP",), "STRING", lambda _value: "")
