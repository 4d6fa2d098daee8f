"""Constants in an expression that can never work, found when it is written and told in the words of Kubernetes.

A real server looks at its compiled expressions twice more before it takes them: for literals that their function cannot
read and lists of mixed types, which it tells with their places, all at once; and, when it makes the program, for what
it computes beforehand, of which it tells the first without a place. What counts as a literal is its choice, and odd:
the pattern of `x.matches(p)` is one, that of `matches(x, p)` is not, and amounts or versions are none at all.

Whether a text can be read is asked of the library that would read it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# A function of one text, by name; gives why it cannot read it, or "".
Reads: TypeAlias = Callable[[str, str], str]

_PLACED = frozenset({"duration", "timestamp", "matches"})
_CONVERSIONS = frozenset({"int", "uint", "double", "bool"})
_PATTERNS = frozenset({"matches", "find", "findAll"})
_PRIMITIVES = ("dyn", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN = ("dyn", "any", "timestamp", "duration")
# What is wrong with a pattern: how the library begins, and what Go says.
_PATTERN_WORDS = {
    "missing ]": "missing closing ]", "missing )": "missing closing )", "invalid perl operator":
    "invalid or unsupported Perl syntax", "invalid repetition size": "invalid repeat count", "no argument for":
    "missing argument to repetition operator", "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression", "invalid named capture group": "invalid named capture",
}
_CLAUSES = {
    "d": ({"int", "uint"}, "decimal clause can only be used on integers"),
    "f": ({"double", "string"}, "fixed-point clause can only be used on doubles"),
    "e": ({"double", "string"}, "scientific clause can only be used on doubles"),
    "b": ({"int", "uint", "bool"}, "only integers and bools can be formatted as binary"),
    "x": ({"int", "uint", "string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "o": ({"int", "uint"}, "octal clause can only be used on integers"),
}
_CLAUSES["X"] = _CLAUSES["x"]


def faults(checked: Any, text: str, reads: Reads) -> tuple[str, str]:
    """What a real server says of an expression, of its compiled form (`expression_tree`).

    The first is what keeps it from being compiled, the second what keeps it from being made a program.
    """
    looked = _Looked(checked, reads)
    looked.at(checked.expression, exempt=False)
    places = {each.key: each.value for each in checked.source.positions}
    told = sorted((places.get(id_, 0), why) for id_, why in looked.placed)
    return "\n".join(_pointed(text, at, why) for at, why in told), looked.computed[0] if looked.computed else ""


def _pointed(text: str, at: int, why: str) -> str:
    line = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1)
    return f"ERROR: <input>:{line + 1}:{column + 1}: {why}\n | {text.splitlines()[line]}\n | {'.' * column}^"


@dataclass(slots=True)
class _Looked:
    """What was found on the way through a tree."""

    checked: Any
    reads: Reads
    placed: list[tuple[int, str]] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    types: dict[int, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.types = {each.key: each.value for each in self.checked.types}

    def at(self, node: Any, *, exempt: bool) -> None:
        """`exempt`: below a call of `format`, whose list may be of anything."""
        if node.HasField("call"):
            call = node.call
            self._call(node)
            exempt = exempt or call.function == "format"
        if not exempt and node.HasField("list"):
            self._alike([self._of(item, optional=place in node.list.optional)
                         for place, item in enumerate(node.list.items)])
        if not exempt and node.HasField("struct") and not node.struct.message:
            self._alike_entries(node.struct.entries)
        for each in _below(node):
            self.at(each, exempt=exempt)

    def _call(self, node: Any) -> None:
        name, args = node.call.function, node.call.args
        member = node.call.HasField("target")
        if name in _PLACED and args and _text(args[0]) is not None and self.reads(name, args[0].constant.text):
            self.placed.append((args[0].id, f"invalid {name} argument"))
        if name in _CONVERSIONS and len(args) == 1 and _text(args[0]) is not None and \
                self.reads(name, args[0].constant.text):
            self.computed.append(f"type conversion error from 'string' to '{name}'")
        at = 0 if member else 1
        if name in _PATTERNS and len(args) > at and _text(args[at]) is not None and \
                (why := self.reads("matches", args[at].constant.text)):
            self.computed.append(f"error parsing regexp: {go_pattern(why)}")
        if name == "format" and member and _text(node.call.target) is not None and args[0].HasField("list"):
            self.placed += _format_faults(node, self._type_of)

    def _alike(self, found: list[tuple[int, str]]) -> None:
        """Only the first that differs is told."""
        for id_, type_ in found[1:]:
            if type_ != found[0][1]:
                self.placed.append((id_, f"expected type '{found[0][1]}' but found '{type_}'"))
                return

    def _alike_entries(self, entries: Any) -> None:
        found = [(self._of(each.key), self._of(each.value, optional=each.optional)) for each in entries]
        for key, value in found[1:]:
            self._alike([found[0][0], key])
            self._alike([found[0][1], value])

    def _of(self, node: Any, *, optional: bool = False) -> tuple[int, str]:
        kind = self.types.get(node.id)
        return node.id, _named(kind.opaque.of[0] if optional and kind and kind.opaque.of else kind)

    def _type_of(self, node: Any) -> str:
        return _named(self.types.get(node.id)).partition("(")[0]


def _text(node: Any) -> str | None:
    return str(node.constant.text) if node.HasField("constant") and node.constant.HasField("text") else None


def _below(node: Any) -> Iterator[Any]:
    if node.HasField("select"):
        yield node.select.operand
    elif node.HasField("call"):
        if node.call.HasField("target"):
            yield node.call.target
        yield from node.call.args
    elif node.HasField("list"):
        yield from node.list.items
    elif node.HasField("struct"):
        for each in node.struct.entries:
            if each.HasField("key"):
                yield each.key
            yield each.value
    elif node.HasField("loop"):
        loop = node.loop
        yield from (loop.range, loop.start, loop.condition, loop.step, loop.result)


def _named(kind: Any) -> str:
    """A type as a person reads it."""
    if kind is None or kind.HasField("dyn"):
        return "dyn"
    if kind.HasField("primitive"):
        return _PRIMITIVES[kind.primitive]
    if kind.HasField("well_known"):
        return _WELL_KNOWN[kind.well_known]
    if kind.HasField("list"):
        return f"list({_named(kind.list.of)})"
    if kind.HasField("map"):
        return f"map({_named(kind.map.key)}, {_named(kind.map.value)})"
    if kind.HasField("message"):
        return str(kind.message)
    if kind.HasField("opaque"):
        inner = ", ".join(map(_named, kind.opaque.of))
        return f"{kind.opaque.name}({inner})" if inner else str(kind.opaque.name)
    return "null" if kind.HasField("null") else "dyn"


def go_pattern(why: str) -> str:
    """What is wrong with a pattern, as Go says it."""
    for begins, words in _PATTERN_WORDS.items():
        if why.startswith(begins):
            return f"{words}: `{why.partition(': ')[2]}`"
    said, _, part = why.partition(": ")
    return f"{said}: `{part}`"


def _format_faults(node: Any, type_of: Callable[[Any], str]) -> Iterator[tuple[int, str]]:
    """Of `'%d ...'.format([...])`: the first clause that its item does not fit, or items that are too many."""
    text, items = str(node.call.target.constant.text), list(node.call.args[0].list.items)
    at = used = 0
    while (at := text.find("%", at)) >= 0:
        if text[at + 1:at + 2] == "%":
            at += 2
            continue
        if at + 1 >= len(text):
            yield node.id, "unexpected end of string"
            return
        if used >= len(items):
            yield node.id, f"index {used} out of range"
            return
        at += 1
        if text[at] == ".":
            at += 1 + len(text[at + 1:]) - len(text[at + 1:].lstrip("0123456789"))
        if at >= len(text):
            yield node.id, ("could not parse formatting clause: error while parsing precision: "
                            "could not find end of precision specifier")
            return
        clause, type_ = text[at], type_of(items[used])
        if clause != "s" and clause not in _CLAUSES:
            yield node.id, f'could not parse formatting clause: unrecognized formatting clause "{clause}"'
            return
        takes, why = _CLAUSES.get(clause, (set(), ""))
        if takes and type_ not in takes | {"dyn"}:
            yield items[used].id, f"error during formatting: {why}, was given {type_}"
            return
        at, used = at + 1, used + 1
    if len(items) > used:
        yield node.id, f"too many arguments supplied to string.format (expected {used}, got {len(items)})"
