"""One field of a sound object bent at a time: left out, emptied, doubled, or given another value of its type.

What is wrong then is one thing, so that two servers can be asked what it is, and must say the same.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.api.meta import Json, Object

_TEXTS = ("", "-5m", "X y", "a" * 254, "../..", "/", "a", "10.0.0.1", "é")
_NUMBERS = (-1, 0, 1, 70000, 2**31 - 1)
_KEPT = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class Bend:
    """What is done to the field at `path`; without a value it is left out."""

    path: tuple[str | int, ...]
    values: tuple[Json, ...]

    def __str__(self) -> str:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")
        return f"{where} := {self.values[0]!r:.60}" if self.values else f"without {where}"

    def of(self, thing: Object) -> Object:
        bent = copy.deepcopy(thing)
        holder: Json = bent
        for step in self.path[:-1]:
            holder = holder[step]
        if self.values:
            holder[self.path[-1]] = copy.deepcopy(self.values[0])
        else:
            del holder[self.path[-1]]
        return bent


def bends(thing: Object) -> Iterator[Bend]:
    """All of them, but of who the object is and how it is."""
    for field in thing:
        if field not in _KEPT:
            yield from _at((field,), thing[field], may_lack=True)


def _at(path: tuple[str | int, ...], value: Json, *, may_lack: bool) -> Iterator[Bend]:
    if may_lack:
        yield Bend(path, ())
    for other in _others(value):
        yield Bend(path, (other,))
    if isinstance(value, dict):
        for key in value:
            yield from _at((*path, key), value[key], may_lack=True)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _at((*path, index), item, may_lack=False)


def _others(value: Json) -> list[Json]:
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [number for number in _NUMBERS if number != value]
        case str():
            return [text for text in _TEXTS if text != value]
        case list():
            return [[], [*value, *value]] if value else []
        case dict():
            return [{}]
        case _:
            return []
