"""What an expression may cost, known before it is run, in the units of Kubernetes. Pure.

A unit is one step; texts cost a tenth of their length, loops their body as often as their range can be long. How long
a field can get is the schema's business (`rule_costs`), what a function costs that of `expression_prices`; here sizes
are followed through the tree. It takes over a real server's oddities: what nobody knows the place of is as large as the
value that the rule is about.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trainmaster.cluster.apiserver.expression_prices import (
    MOST,
    NEW_LIST,
    ONE,
    UNKNOWN,
    Called,
    Size,
    capped,
    exactly,
    priced,
)

Path: TypeAlias = tuple[str, ...]

NEW_MAP, NEW_MESSAGE = 30, 40
_NOTHING_YET = Size(MOST, 0)
_SCALARS = frozenset({1, 2, 3, 4})       # of the primitive types: not text and bytes, which have a length
_MOMENTS = frozenset({2, 3})             # of the well-known types
_NAMESPACES = frozenset({"sets", "lists", "strings", "format", "ip", "optional"})


def estimated(checked: Any, bounds: Callable[[Path], int | None]) -> int:
    """The most that an expression can cost, of its compiled form (`expression_tree`).

    `bounds` says how large what is at a place below a variable can be, None for no such place.
    """
    return _Tree(checked, bounds).cost(checked.expression)


@dataclass(frozen=True, slots=True)
class _Entries:
    """What is in a list or map."""

    kind: str
    key: Size
    value: Size


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path
    size: Size | None
    entries: _Entries | None = None


@dataclass(slots=True)
class _Tree:
    """Follows sizes while it adds up."""

    checked: Any
    bounds: Callable[[Path], int | None]
    paths: dict[int, Path] = field(default_factory=dict)
    sizes: dict[int, Size] = field(default_factory=dict)
    entries: dict[int, _Entries] = field(default_factory=dict)
    locals: dict[str, list[_Local]] = field(default_factory=dict)
    types: Mapping[int, Any] = field(init=False)
    overloads: Mapping[int, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.types = {each.key: each.value for each in self.checked.types}
        self.overloads = {each.key: list(each.value.overloads) for each in self.checked.references}

    def cost(self, node: Any) -> int:
        if node.HasField("ident"):
            local = self._local(node.ident.name)
            self.paths[node.id] = (node.ident.name,) if local is None else local.path
            return 1
        if node.HasField("select"):
            return self._select(node)
        if node.HasField("call"):
            return self._call(node)
        if node.HasField("list"):
            return self._list(node)
        if node.HasField("struct"):
            return self._struct(node)
        return capped(self._loop(node)) if node.HasField("loop") else 0

    def size(self, node: Any) -> Size | None:
        if node.id in self.sizes:
            return self.sizes[node.id]
        if (known := _written(node)) is not None:
            return known
        path = self.path(node)
        if path and (most := self.bounds(path[1:])) is not None:
            self.sizes[node.id] = Size(0, most)
            return self.sizes[node.id]
        if _is_scalar(self.types.get(node.id)):
            return ONE
        local = self._local(node.ident.name) if node.HasField("ident") else None
        return None if local is None else local.size

    def type(self, node: Any) -> Any:
        return self.types.get(node.id)

    def path(self, node: Any) -> Path:
        if node.HasField("ident") and (local := self._local(node.ident.name)) is not None:
            return local.path
        return self.paths.get(node.id, ())

    def inside(self, node: Any) -> _Entries | None:
        if node.id in self.entries:
            return self.entries[node.id]
        local = self._local(node.ident.name) if node.HasField("ident") else None
        return None if local is None else local.entries

    def item(self, node: Any) -> tuple[Any, Size] | None:
        kind = self.types.get(node.id)
        if kind is None or not kind.HasField("list"):
            return None
        path = self.path(node)
        most = self.bounds((*path, "@items")[1:]) if path else None
        return kind.list.of, UNKNOWN if most is None else Size(0, most)

    def _local(self, name: str) -> _Local | None:
        return self.locals[name][-1] if self.locals.get(name) else None

    def _select(self, node: Any) -> int:
        of = node.select.operand
        found = self.cost(of)
        if node.select.test:
            return found
        self.paths[node.id] = (*self.path(of), node.select.field)
        return found + (_kind(self.types.get(of.id)) in {"map", "message"})

    def _list(self, node: Any) -> int:
        found, size = NEW_LIST, _NOTHING_YET if node.list.items else exactly(0)
        for each in node.list.items:
            found += self.cost(each)
            size |= self.size(each) or UNKNOWN
        self.entries[node.id] = _Entries("list", ONE, size)
        return capped(found)

    def _struct(self, node: Any) -> int:
        found = NEW_MESSAGE if node.struct.message else NEW_MAP
        key = value = _NOTHING_YET if node.struct.entries else exactly(0)
        for each in node.struct.entries:
            found += (self.cost(each.key) if each.HasField("key") else 0) + self.cost(each.value)
            key |= (self.size(each.key) if each.HasField("key") else None) or UNKNOWN
            value |= self.size(each.value) or UNKNOWN
        self.entries[node.id] = _Entries("map", key, value)
        return capped(found)

    def _loop(self, node: Any) -> int:
        loop = node.loop
        found = self.cost(loop.range) + self.cost(loop.start)
        given = _Local(self.path(loop.start), self.size(loop.start), self.inside(loop.start))
        self.locals.setdefault(loop.result_variable, []).append(given)
        if _is_binding(loop):
            found += self.cost(loop.result)
            self.locals[loop.result_variable].pop()
            self._copy(node, loop.result)
            return found
        names = self._variables(loop)
        for name, local in names.items():
            self.locals.setdefault(name, []).append(local)
        step = self.cost(loop.condition) + self.cost(loop.step)
        for name in names:
            self.locals[name].pop()
        found += self.cost(loop.result)
        self.locals[loop.result_variable].pop()
        count = self.size(loop.range) or UNKNOWN
        if loop.start.HasField("constant"):
            self._resize(node, self.size(loop.start))
        elif loop.start.HasField("list") or loop.start.HasField("struct"):
            self.sizes[node.id] = count
            if (made := self.inside(loop.step)) is not None:
                self.entries[node.id] = made
        return found + count.most * step

    def _variables(self, loop: Any) -> dict[str, _Local]:
        """What a loop goes over: keys of maps, items of lists, both where it has two variables."""
        path, inside = self.path(loop.range), self.inside(loop.range)
        listed = (inside.kind if inside else _kind(self.types.get(loop.range.id))) == "list"
        key, value = (inside.key, inside.value) if inside else (None, None)
        keys = _Local((*path, "@indices" if listed else "@keys"), key)
        values = _Local((*path, "@items" if listed else "@values"), value)
        if loop.second_variable:
            return {loop.variable: keys, loop.second_variable: values}
        return {loop.variable: values if listed else keys}

    def _call(self, node: Any) -> int:
        call, name, target = node.call, node.call.function, None
        if name == "dyn":
            found = 1 + self.cost(call.args[0])
            self._copy(node, call.args[0])
            return found
        costs = [self.cost(each) for each in call.args]
        found = 0
        if call.HasField("target") and call.target.ident.name in _NAMESPACES and call.target.id not in self.types:
            name = f"{call.target.ident.name}.{name}"
        elif call.HasField("target"):
            target, found = call.target, self.cost(call.target)
        price, size = 0, None
        for overload in self.overloads.get(node.id, ()):
            called = Called(name, overload, target, list(call.args), self)
            cost, made = priced(called, costs)
            price, size = max(price, cost), (size | made if size and made else size or made)
            if overload in {"index_list", "index_map"}:
                inside = self.inside(call.args[0])
                size = inside.value if inside else None
                self.paths[node.id] = (*self.path(call.args[0]), "@items" if overload == "index_list" else "@values")
            size = size or self.size(node)
        self._resize(node, size)
        if name in {"_?_:_", "_+_"} and len(call.args) > 1:
            first, second = (self.inside(each) for each in call.args[-2:])
            if first and second:
                self.entries[node.id] = _Entries(first.kind, first.key | second.key, first.value | second.value)
        return capped(found + price)

    def _resize(self, node: Any, size: Size | None) -> None:
        if size is not None:
            self.sizes[node.id] = size

    def _copy(self, node: Any, other: Any) -> None:
        self._resize(node, self.size(other))
        if (made := self.inside(other)) is not None:
            self.entries[node.id] = made


def _is_binding(loop: Any) -> bool:
    return loop.range.HasField("list") and not loop.range.list.items and loop.condition.constant.HasField("truth") \
        and not loop.condition.constant.truth


def _written(node: Any) -> Size | None:
    """Of what stands in the expression itself."""
    if node.HasField("constant"):
        given = node.constant
        return exactly(len(given.text)) if given.HasField("text") else \
            exactly(len(given.data)) if given.HasField("data") else ONE
    if node.HasField("list"):
        return exactly(len(node.list.items))
    return exactly(len(node.struct.entries)) if node.HasField("struct") and not node.struct.message else None


def _kind(kind: Any) -> str:
    return next((name for name in ("list", "map", "message") if kind is not None and kind.HasField(name)), "")


def _is_scalar(kind: Any) -> bool:
    if kind is None:
        return False
    if kind.opaque.name == "optional_type":
        return _is_scalar(kind.opaque.of[0])
    return kind.primitive in _SCALARS or kind.well_known in _MOMENTS
