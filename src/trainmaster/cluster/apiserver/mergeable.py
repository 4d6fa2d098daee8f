"""How the parts of an object are owned and merged: which are one value, which are many with names of their own. Pure.

A map is many fields unless its type says it is one (`atomic`); a list is one value unless its type says that its items
have keys (`map`) or are told apart by their value (`set`). The shape of a type says this level by level. Built-in types
have theirs in the generated table, custom ones in their definition (`shapes`).

Each shape answers two questions: which paths does a value have (`whole`), and which paths differ between two values
(`compare`). Both walk the object once, touch only what differs, and build the sets of `fieldsets` on the way.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import fieldsets
from trainmaster.cluster.apiserver.fieldsets import MEMBER, SELF, FieldSet

# What a comparison found below some path: what is new or different, and what is gone. None: nothing.
Difference: TypeAlias = tuple[FieldSet | None, FieldSet | None]

# Small objects with the same fields (a variable, a port, the labels of a job) have the same set; so many of them are
# remembered per type.
MOST_FLAT = 64

NOTHING: Difference = (None, None)
Named: TypeAlias = "dict[str, Shape] | Callable[[], dict[str, Shape]]"


class Unmergeable(ValueError):
    """A value that its shape cannot take apart, such as an item without a key."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.message = message
        self.path = path

    def below(self, step: str) -> "Unmergeable":
        """The same, seen from further up."""
        return Unmergeable(self.message, step + self.path)


class Shape:
    """One value: text, numbers, and everything that is atomic."""

    __slots__ = ()

    def whole(self, value: Json) -> FieldSet:
        """All paths of a value, the one to itself among them."""
        del value
        return MEMBER

    def compare(self, old: Json, new: Json) -> Difference:
        """What differs between two values that are not equal."""
        del old, new
        return MEMBER, None


LEAF = Shape()


class Fields(Shape):
    """An object whose fields are owned one by one: those that its type names, and others, if it may have any.

    What is in `ignored` is never compared. `named` may be a function, asked when the fields are first needed: types
    contain themselves.
    """

    __slots__ = ("_flat", "_ignored", "_named", "_steps", "element")

    def __init__(self, named: Named, element: Shape | None = None, *, ignored: frozenset[str] = frozenset()) -> None:
        self._named = named
        self.element = element
        self._ignored = ignored
        self._steps: dict[str, tuple[str, Shape | None]] | None = None
        self._flat: dict[tuple[str, ...], FieldSet] = {}      # the sets of objects that hold plain values only

    @property
    def named(self) -> dict[str, Shape]:
        if not isinstance(self._named, dict):
            self._named = self._named()
        return self._named

    def _known(self) -> dict[str, tuple[str, Shape | None]]:
        """The fields as the walks want them: a key that is made anew every time would be hashed anew every time."""
        if self._steps is None:
            self._steps = {name: (f"f:{name}", None if shape is LEAF else shape) for name, shape in self.named.items()}
        return self._steps

    def inner(self, name: str) -> Shape:
        """The shape of a field. A field that nobody knows is one value."""
        return self.named.get(name) or self.element or LEAF

    def whole(self, value: Json) -> FieldSet:
        if not value or not isinstance(value, dict):
            return MEMBER
        names = tuple(value)
        flat = self._flat.get(names)
        if flat is not None:
            return flat
        known, element = self._known(), None if self.element is LEAF else self.element
        found: FieldSet = {SELF: MEMBER}
        is_flat = len(self._flat) < MOST_FLAT
        for name, item in value.items():
            key, shape = known.get(name) or ("f:" + name, element)
            if shape is None:
                found[key] = MEMBER
            else:
                found[key] = shape.whole(item)
                is_flat = False
        if is_flat:
            self._flat[names] = found
        return found

    def compare(self, old: Json, new: Json) -> Difference:
        before, after = _table(old), _table(new)
        if not before and not after:
            return LEAF.compare(old, new)
        changed: FieldSet = {}
        removed: FieldSet = {}
        known, ignored = self._known(), self._ignored
        element = None if self.element is LEAF else self.element
        for name, value in after.items():
            if name in ignored:
                continue
            key, shape = known.get(name) or ("f:" + name, element)
            if name not in before:
                changed[key] = MEMBER if shape is None else shape.whole(value)
                continue
            was = before[name]
            if was == value:
                continue
            different, gone = (MEMBER, None) if shape is None else shape.compare(was, value)
            if different is not None:
                changed[key] = different
            if gone is not None:
                removed[key] = gone
        for name, value in before.items():
            if name not in after and name not in ignored:
                removed["f:" + name] = self.inner(name).whole(value)
        return changed or None, removed or None


class Items(Shape):
    """A list whose items are owned one by one: by their keys, or (without keys) by their value."""

    __slots__ = ("_defaults", "_item", "_key", "_keys")

    def __init__(self, item: Shape, keys: tuple[str, ...] = (), defaults: Mapping[str, Json] | None = None) -> None:
        self._item = item
        self._keys = tuple(sorted(keys))
        self._key = keys[0] if len(keys) == 1 else ""
        self._defaults = defaults or {}

    @property
    def item(self) -> Shape:
        return self._item

    def step(self, item: Json) -> str:
        """The key of an item in a set. Raises Unmergeable."""
        if self._key and isinstance(item, dict) and (value := item.get(self._key)).__class__ is str:
            return _named_step(self._key, value)
        if not self._keys:
            if isinstance(item, dict):
                raise Unmergeable("associative list without keys has an element that's a map type")
            if isinstance(item, list):
                raise Unmergeable("not supported: associative list with lists as elements")
            if item is None:
                raise Unmergeable("associative list without keys has an element that's an explicit null")
            return fieldsets.value_key(item)
        if item is None:
            raise Unmergeable("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise Unmergeable("associative list with keys may not have non-map elements")
        found: dict[str, Json] = {}
        for key in self._keys:
            if key in item:
                found[key] = item[key]
            elif key in self._defaults:
                found[key] = self._defaults[key]
        if not found:
            listed = " ".join(f'"{key}"' for key in self._keys)
            raise Unmergeable(f"associative list with keys has an element that omits all key fields [{listed}] (and "
                              "doesn't have default values for any key fields)")
        return fieldsets.item_key(found)

    def steps(self, items: list[Json]) -> list[str]:
        """The keys of all items. Raises Unmergeable."""
        found = []
        for at, item in enumerate(items):
            try:
                found.append(self.step(item))
            except Unmergeable as error:
                raise Unmergeable(f"element {at}: {error.message}") from error
        return found

    def whole(self, value: Json) -> FieldSet:
        if not value or not isinstance(value, list):
            return MEMBER
        return {SELF: MEMBER, **self._wholes(value)}

    def _wholes(self, items: list[Json]) -> FieldSet:
        found: FieldSet = {}
        key, whole = self._key, self._item.whole
        for item in items:
            value = item.get(key) if item.__class__ is dict else None
            # Nearly every item is told apart by one text; the others, and what is wrong, take the long way.
            step = _named_step(key, value) if key and value.__class__ is str else self.step(item)
            # What is there twice cannot be taken apart any further.
            found[step] = MEMBER if step in found else whole(item)
        return found

    def compare(self, old: Json, new: Json) -> Difference:
        before = old if isinstance(old, list) else []
        after = new if isinstance(new, list) else []
        if not before and not after:
            return LEAF.compare(old, new)
        was, now = self._grouped(before), self._grouped(after)
        changed: FieldSet = {}
        removed: FieldSet = {}
        for step in {**was, **now}:
            different, gone = self._compare(was.get(step, ()), now.get(step, ()))
            if different is not None:
                changed[step] = different
            if gone is not None:
                removed[step] = gone
        return changed or None, removed or None

    def _grouped(self, items: list[Json]) -> dict[str, tuple[Json, ...]]:
        found: dict[str, tuple[Json, ...]] = {}
        for step, item in zip(self.steps(items), items, strict=True):
            found[step] = (*found.get(step, ()), item)
        return found

    def _compare(self, was: tuple[Json, ...], now: tuple[Json, ...]) -> Difference:
        """Items with the same key: one on each side, as a rule."""
        if was == now:
            return NOTHING
        if len(was) > 1:
            if len(now) > 1:
                return MEMBER, None
            return (self._item.whole(now[0]) if now else None), MEMBER
        if len(now) > 1:
            return MEMBER, (self._item.whole(was[0]) if was else None)
        if not was:
            return self._item.whole(now[0]), None
        if not now:
            return None, self._item.whole(was[0])
        return self._item.compare(was[0], now[0])


class Anything(Shape):
    """Whatever is there: objects field by field, everything else as one value. For parts without a schema."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields = Fields({}, self)

    @property
    def fields(self) -> Fields:
        return self._fields

    def whole(self, value: Json) -> FieldSet:
        return self._fields.whole(value)

    def compare(self, old: Json, new: Json) -> Difference:
        if isinstance(old, dict | None) and isinstance(new, dict | None):
            return self._fields.compare(old, new)
        # Of two kinds: the path itself is another value now, and what was below it is gone or new.
        changed, removed = self._fields.compare(old, new)
        return ({SELF: MEMBER, **changed} if changed else MEMBER), removed


ANYTHING = Anything()


@lru_cache(maxsize=4096)
def _named_step(key: str, value: str) -> str:
    """Nearly every item has one key that is text, and the same few are met in every object of a kind."""
    return fieldsets.item_key({key: value})


def _table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
