"""The part of JSONPath that printer columns use: fields, indexes, slices, wildcards and simple filters.

`.status.conditions[-1:].type`, `.spec.ports[*].name`, `.status.conditions[?(@.type=="Ready")].status`,
`.metadata.labels['app.kubernetes.io/name']`. A path that is not there finds nothing; it is not an error.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

import orjson

from trainmaster.api.meta import Json

Step: TypeAlias = Callable[[Json], Iterable[Json]]
Path: TypeAlias = Callable[[Json], list[Json]]

_TOKEN = re.compile(
    r"\.(?P<field>(?:[^.\[\]\\*\s]|\\.)+)"
    r"|\.?\[\s*(?P<quote>['\"])(?P<quoted>(?:(?!(?P=quote)).)*)(?P=quote)\s*\]"
    r"|\.?\[\s*(?P<index>-?\d{1,9})\s*\]"
    r"|\.?\[\s*(?P<start>-?\d{0,9})\s*:\s*(?P<end>-?\d{0,9})\s*\]"
    r"|\.?\[\s*(?P<any>\*)\s*\]|\.(?P<all>\*)"
    r"|\.?\[\?\(\s*@(?P<at>[^=!<>\s)]*)\s*(?:(?P<operator>==|!=)\s*(?P<literal>[^)]+?)\s*)?\)\]")


@lru_cache(maxsize=512)
def compiled(text: str) -> Path:
    """A function from a value to everything the path finds in it. Raises ValueError for a path we cannot read."""
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        stripped = stripped[1:-1].strip()
    stripped = stripped.removeprefix("$")
    if stripped and not stripped.startswith((".", "[")):
        stripped = f".{stripped}"
    steps: list[Step] = []
    position = 0
    while position < len(stripped) and stripped != ".":
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ValueError(f"cannot read the path {text[:100]!r} from {stripped[position:position + 40]!r} on")
        steps.append(_step(match))
        position = match.end()
    return lambda value: _walk([value], steps)


def _walk(found: list[Json], steps: list[Step]) -> list[Json]:
    for step in steps:
        found = [item for value in found for item in step(value)]
    return found


def _step(match: re.Match[str]) -> Step:
    if match["field"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", match["field"]))
    if match["quoted"] is not None:
        return _field(match["quoted"])
    if match["index"] is not None:
        return _index(int(match["index"]))
    if match["start"] is not None:
        return _slice(int(match["start"]) if match["start"] else None, int(match["end"]) if match["end"] else None)
    if match["at"] is not None:
        return _filter(match["at"], match["operator"], match["literal"])
    return _everything


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _index(at: int) -> Step:
    return lambda value: [value[at]] if isinstance(value, list) and -len(value) <= at < len(value) else []


def _slice(start: int | None, end: int | None) -> Step:
    return lambda value: value[start:end] if isinstance(value, list) else []


def _everything(value: Json) -> Iterable[Json]:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else []


def _filter(path: str, operator: str | None, literal: str | None) -> Step:
    inner = compiled(path or ".")
    wanted = _literal(literal or "")

    def holds(item: Json) -> bool:
        found = inner(item)
        if operator is None:
            return bool(found)
        return (bool(found) and found[0] == wanted) is (operator == "==")

    return lambda value: [item for item in value if holds(item)] if isinstance(value, list) else []


def _literal(text: str) -> Json:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
