"""What the functions of CEL cost on Kubernetes, with how large their results can be. Pure.

The figures are compatibility, not measurement: a rule must be taken or refused where a real server does so.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

MOST = 2**64 - 1
TEXT, PATTERN = 0.1, 0.25       # of a length
FORMAT_PATTERN, FORMAT_NAME = 128, 64
NEW_LIST = 10
_TEXTS = frozenset({5, 6})       # of the primitive types: text and bytes
_BY_TEXT = frozenset({"less_string", "greater_string", "less_equals_string", "greater_equals_string", "less_bytes",
                      "greater_bytes", "less_equals_bytes", "greater_equals_bytes", "equals", "not_equals"})
_PARSING = frozenset({"url", "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"})


@dataclass(frozen=True, slots=True)
class Size:
    least: int
    most: int

    def __add__(self, other: "Size") -> "Size":
        return Size(capped(self.least + other.least), capped(self.most + other.most))

    def __mul__(self, other: "Size") -> "Size":
        return Size(capped(self.least * other.least), capped(self.most * other.most))

    def __or__(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN, ONE = Size(0, MOST), Size(1, 1)


def exactly(size: int) -> Size:
    return Size(size, size)


def capped(number: int) -> int:
    return min(number, MOST)


def part(size: int, factor: float) -> int:
    return capped(math.ceil(size * factor))


class Tree(Protocol):
    """What a call stands in."""

    def size(self, node: Any) -> Size | None: ...

    def type(self, node: Any) -> Any: ...

    def item(self, node: Any) -> tuple[Any, Size] | None:
        """The type and the size of a list's items."""


@dataclass(frozen=True, slots=True)
class Called:
    """A call with all that its price depends on."""

    name: str
    overload: str
    target: Any
    args: list[Any]
    tree: Tree

    def size(self, at: int) -> Size:
        """Of an argument; -1 is what the function belongs to."""
        return self.tree.size(self.target if at < 0 else self.args[at]) or UNKNOWN

    def integer(self, at: int, otherwise: int) -> int:
        given = self.args[at]
        return max(0, given.constant.integer) if given.constant.HasField("integer") else otherwise


def priced(call: Called, costs: list[int]) -> tuple[int, Size | None]:
    """What a call costs with its arguments, and how large its result is if that is known."""
    if call.name == "_?_:_":
        return costs[0] + max(costs[1:]), call.size(1) | call.size(2)
    for prices in (_of_kubernetes, _of_lists, _of_language):
        if (found := prices(call)) is not None:
            return capped(found[0] + sum(costs)), found[1]
    return capped(1 + sum(costs)), None


_Price: TypeAlias = tuple[int, Size | None] | None


def _of_language(call: Called) -> _Price:
    match call.overload:
        case "logical_or" | "logical_and":
            return 0, None
        case "starts_with_string" | "ends_with_string":
            return part(call.size(0).most, TEXT), None
        case "in_list":
            return call.size(1).most, None
        case "matches_string" if call.target is not None:
            return part(call.size(-1).most + 1, TEXT) * part(call.size(0).most, PATTERN), None
        case "contains_string":
            return part(call.size(-1).most, TEXT) * part(call.size(0).most, TEXT), None
        case "add_list":
            return 1, call.size(0) + call.size(1)
        case "add_string" | "add_bytes":
            size = call.size(0) + call.size(1)
            return part(size.most, TEXT), size
        case "string_to_bytes" | "string(bytes) string":
            size = call.size(0)
            grown = Size(size.least, capped(size.most * 4)) if call.overload == "string_to_bytes" else size
            return part(size.most, TEXT), grown
        case "strings.quote(string) string":
            size = call.size(0)
            return part(size.most, TEXT), Size(size.least + 2, capped(size.most * 2 + 2))
        case "string.format(list<dyn>) string":
            return part(call.size(-1).most, TEXT), None
        case overload if overload in _BY_TEXT:
            return part(min(call.size(0).most, call.size(1).most), TEXT), None
        case _:
            return None


def _of_lists(call: Called) -> _Price:
    match call.name:
        case "sets.contains" | "sets.intersects" | "sets.equivalent":
            return part((call.size(0) * call.size(1)).most, 1 + (call.name == "sets.equivalent")) + 1, None
        case "slice":
            count = call.integer(1, call.size(-1).most) - call.integer(0, 0)
            return _listed(1, exactly(count % (MOST + 1)))
        case "lists.range":
            return _listed(1, exactly(call.integer(0, MOST)))
        case "reverse":
            return _listed(1, call.size(-1))
        case "flatten":
            return _listed(call.integer(0, MOST) if call.args else 1, call.size(-1))
        case "distinct":
            return _listed(2, call.size(-1) * call.size(-1))
        case "sort" | "@sortByAssociatedKeys":
            size = call.size(0 if call.args else -1)
            return _listed(2.1 if "_string_" in call.overload or "_bytes_" in call.overload else 2, size * size)
        case _:
            return None


def _listed(factor: float, size: Size) -> _Price:
    return part(size.most, factor) + 1 + NEW_LIST, size


def _of_kubernetes(call: Called) -> _Price:
    match call.name:
        case "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if call.target is not None:
            return _looking_through(call), None
        case "lowerAscii" | "upperAscii" | "substring" | "trim" if call.target is not None:
            return part(call.size(-1).most, TEXT), call.size(-1)
        case "replace" if call.target is not None:
            return part(call.size(-1).most, 2 * TEXT), _replaced(call.size(-1), call.size(0), call.size(1))
        case "split" if call.target is not None:
            most = call.integer(1, call.size(-1).most) if len(call.args) > 1 else call.size(-1).most
            return part(call.size(-1).most, 2 * TEXT), Size(0, most)
        case "join" if call.target is not None:
            size = _joined(call)
            return part(size.most, TEXT), size
        case "find" | "findAll" if call.target is not None:
            size = call.size(-1)
            return part(size.most + 1, TEXT) * part(call.size(0).most, PATTERN), Size(0, size.most)
        case "ip" if call.target is None:
            return part(call.size(0).most, TEXT), None
        case "ip.isCanonical":
            return part(call.size(0).most, 2 * TEXT), None
        case "containsIP" | "containsCIDR":
            parsed = part(call.size(0).most, TEXT) if "(string)" in call.overload else 0
            return 4 + 3 * (call.name == "containsCIDR") + parsed, None
        case "validate":
            return part(part(call.size(0).most, TEXT), FORMAT_PATTERN * PATTERN), None
        case "_==_" if len(call.args) == 2:
            return _compared(call)
        case name if name in _PARSING:
            return part(call.size(0).most, TEXT), call.size(0) if name == "url" else None
        case _:
            return None


def _looking_through(call: Called) -> int:
    found = call.tree.item(call.target)
    if found is None:       # a text
        return part(call.size(-1).most, TEXT)
    kind, size = found
    each = 1 + (part(size.most, TEXT) if kind.primitive in _TEXTS else 0)
    return capped(call.size(-1).most * each)


def _joined(call: Called) -> Size:
    count, found = call.size(-1), call.tree.item(call.target)
    size = count * found[1] if found else exactly(0)
    return size + call.size(0) * Size(max(0, count.least - 1), max(0, count.most - 1)) if call.args else size


def _replaced(size: Size, old: Size, new: Size) -> Size:
    if old.least == 0:          # around every sign
        most = (size.most + 1) * new.most + size.most
    elif new.most <= old.least:
        most = size.most
    else:
        most = math.ceil(size.most / old.least) * new.most
    if old.most == 0:
        least = (size.least + 1) * new.least + size.least
    elif old.most <= new.least:
        least = size.least
    else:
        least = math.ceil(size.least / old.most) * new.least
    return Size(capped(least), capped(most))


def _compared(call: Called) -> _Price:
    """Values of Kubernetes' own types with each other."""
    types = [call.tree.type(each) for each in call.args]
    if types[0] is None or types[0] != types[1]:
        return None
    match types[0].opaque.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return 1, None
        case "kubernetes.NamedFormat":
            return part(FORMAT_NAME, TEXT), None
        case "kubernetes.URL":
            size = call.tree.size(call.args[1]) or ONE
            return part(max(1, size.most), TEXT), None
        case _:
            return None
