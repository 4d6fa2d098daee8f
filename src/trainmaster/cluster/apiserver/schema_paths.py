"""Paths to a field in a schema: `.spec.replicas`, `.spec.labels['app']`. Pure."""

import re
from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.schema_parts import others, properties

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}
_NOWHERE, _CUT = "does not refer to a valid field", "unexpected end of JSON path"


class Astray(Exception):
    """A path that leads nowhere, with why."""


def followed(path: str, document: Object, *, brackets: bool = True) -> tuple[tuple[str, ...], Object | None]:
    """The steps of a path and the schema at its end, None if there is any value. Raises Astray."""
    tokens = _tokens(path)
    steps: list[str] = []
    at: Object | None = document
    for sign in tokens:
        if sign not in {".", "["}:
            raise Astray(f"expected [ or . but got: {sign}")
        if sign == "[" and not brackets:
            raise Astray("array notation is not allowed")
        name = _next(tokens)
        if sign == "[":
            name = _unquoted(name)
        at = _below(at, name)
        steps.append(name)
        if sign == "[" and (end := _next(tokens)) != "]":
            raise Astray(f"expected ] but got {end}")
    return tuple(steps), at


def _below(document: Object | None, name: str) -> Object | None:
    if document is None:
        raise Astray(_NOWHERE)
    if known := properties(document):
        if name not in known:
            raise Astray(_NOWHERE)
        return known[name]
    if document.get("additionalProperties") is None:
        raise Astray(_NOWHERE)
    return others(document)


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] != "'" or text[-1] != "'":
        raise Astray(f"expected single quoted string but got {text}")
    inner = text[1:-1]
    if wrong := next((sign for sign in _ESCAPE.findall(inner) if sign not in _ESCAPES), ""):
        raise Astray(f"invalid string literal: invalid escape char \\{wrong}")
    return _ESCAPE.sub(lambda found: _ESCAPES[found[1]], inner)


def _next(tokens: Iterator[str]) -> str:
    try:
        return next(tokens)
    except StopIteration:
        raise Astray(_CUT) from None


def _tokens(path: str) -> Iterator[str]:
    """Dots, brackets, and what is between them; text in quotes is one, with whatever is in it."""
    return iter(re.findall(r"[.\[\]]|'(?:[^']|(?<=\\)')*(?:'|$)|[^'.\[\]][^.\[\]]*", path))
