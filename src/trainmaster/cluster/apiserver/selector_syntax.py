"""The text of a label selector, read word by word: what it asks for, or what is wrong with it. Pure.

The words of a refusal are those of Kubernetes, which go by how far its own reading came; so this reads in the same
order. A pattern for a whole term was here before: it can say that something is wrong, but not what.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainmaster.cluster.apiserver import names
from trainmaster.cluster.apiserver.failures import quoted

IN, NOT_IN, EXISTS, ABSENT, GREATER, LESS = "in", "notin", "exists", "absent", "gt", "lt"
_WORD = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)?")
_SIGNS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", ""})
_OPERATORS = {"in": IN, "notin": NOT_IN, "=": IN, "==": IN, "!=": NOT_IN, ">": GREATER, "<": LESS}
_NUMBER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NO_NUMBER = "for 'Gt', 'Lt' operators, the value must be an integer"


class Unreadable(Exception):
    """What is wrong, for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector."""

    key: str
    operator: str                       # in, notin, exists, absent, gt, lt
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return value is not None and _compares(value, self.operator, next(iter(self.values)))


@dataclass(slots=True)
class _Reader:
    words: Iterator[str]
    ahead: str = field(init=False)           # "" at the end

    def __post_init__(self) -> None:
        self.ahead = next(self.words)

    def take(self) -> str:
        word, self.ahead = self.ahead, next(self.words, "")
        return word


def read(text: str) -> Iterator[Requirement]:
    """Raises Unreadable."""
    reader = _Reader(_words(text))
    if reader.ahead in _SIGNS - {"", "!"}:
        raise Unreadable(f"found '{reader.ahead}', expected: !, identifier, or 'end of string'")
    while reader.ahead:
        try:
            yield _requirement(reader)
        except Unreadable as why:
            raise Unreadable(f"unable to parse requirement: {why}") from why
        if (word := reader.take()) not in {",", ""}:
            raise Unreadable(f"found '{word}', expected: ',' or 'end of string'")
        if word and reader.ahead in _SIGNS - {"!"}:
            raise Unreadable(f"found '{reader.ahead}', expected: identifier after ','")


def _words(text: str) -> Iterator[str]:
    at = 0
    while at < len(text) and (found := _WORD.match(text, at)) is not None and found[1]:
        yield found[1]
        at = found.end()
    yield ""


def _requirement(reader: _Reader) -> Requirement:
    absent = reader.ahead == "!"
    if absent:
        reader.take()
    if (key := reader.take()) in _SIGNS:
        raise Unreadable(f"found '{key}', expected: identifier")
    if faults := names.qualified(key):
        raise Unreadable(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(faults)}")
    if absent:
        return Requirement(key, ABSENT)
    if reader.ahead in {"", ","}:
        return Requirement(key, EXISTS)
    word = reader.take()
    if word not in _OPERATORS:
        raise Unreadable(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
    values = _several(reader) if word in {IN, NOT_IN} else _one(reader)
    return _checked(Requirement(key, _OPERATORS[word], frozenset(values)))


def _one(reader: _Reader) -> set[str]:
    if reader.ahead in {"", ","}:
        return {""}
    if (word := reader.take()) in _SIGNS:
        raise Unreadable(f"found '{word}', expected: identifier")
    return {word}


def _several(reader: _Reader) -> set[str]:
    if (word := reader.take()) != "(":
        raise Unreadable(f"found '{word}' expected: '('")
    if reader.ahead in _SIGNS - {",", ")"}:
        raise Unreadable(f"found '{reader.ahead}', expected: ',', ')' or identifier")
    found: set[str] = set()
    before = ","
    while (word := reader.take()) != ")":
        if word == ",":
            if before == ",":
                found.add("")
        elif word in _SIGNS:
            raise Unreadable(f"found '{word}', expected: ',', or identifier")
        elif before != ",":
            raise Unreadable(f"found '{word}', expected: ',' or ')'")
        else:
            found.add(word)
        before = word
    return found | {""} if before == "," else found


def _checked(wanted: Requirement) -> Requirement:
    values = sorted(wanted.values)
    faults = []
    if wanted.operator in {GREATER, LESS}:
        faults += [f"values[{at}]: Invalid value: {quoted(value)}: {_NO_NUMBER}"
                   for at, value in enumerate(values) if _NUMBER.fullmatch(value) is None]
    faults += [f"values[{at}][{wanted.key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}"
               for at, value in enumerate(values) if (wrong := names.label_value(value))]
    if faults:
        raise Unreadable(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return wanted


def _compares(value: str, operator: str, bound: str) -> bool:
    try:
        return int(value) > int(bound) if operator == "gt" else int(value) < int(bound)
    except ValueError:
        return False
