"""Answers with a body: a document of ours, or why a request is refused, with the warnings that go along."""

from collections.abc import Sequence

import orjson

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import failures, negotiation
from trainmaster.kube.transport import Response


def refusal(failure: failures.Failure) -> Response:
    headers = {"Content-Type": negotiation.JSON, **failure.headers}
    return Response(failure.code, headers, _line(failure.status()), warned(failure.warnings))


def in_json(code: int, document: Object, warnings: Sequence[str] = ()) -> Response:
    return Response(code, {"Content-Type": negotiation.JSON}, _line(document), warned(warnings))


def _line(document: Object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def warned(warnings: Sequence[str]) -> tuple[str, ...]:
    """The headers that tell them, each once."""
    return tuple(_warning(text) for text in dict.fromkeys(warnings))


def _warning(text: str) -> str:
    safe = "".join(sign if sign.isprintable() and sign.isascii() else "?" for sign in text)[:1024]
    escaped = safe.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
