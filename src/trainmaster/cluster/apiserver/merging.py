"""What server-side apply does to values: put a configuration into an object, and take owned paths out of it. Pure.

A configuration is an object that says only what its author wants. Merged into the live object it replaces single
values, adds to objects and to lists whose items are told apart, and never takes anything away; that is a step of its
own, by the paths that somebody gave up.
"""

from collections.abc import Iterable

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver.fieldsets import MEMBER, SELF, FieldSet
from trainmaster.cluster.apiserver.mergeable import Anything, Fields, Items, Shape


def fields(shape: Shape, value: Json) -> FieldSet:
    """The paths that a configuration says something about. Objects that a type names are not among them: they come
    and go with what is in them. Raises Unmergeable."""
    return _inside(shape, value)[1]


def _inside(shape: Shape, value: Json) -> tuple[bool, FieldSet]:
    """Whether the path to a value counts, whatever is around it, and what is below it."""
    if isinstance(shape, Anything):
        shape = shape.fields if isinstance(value, dict | None) else Shape()
    if isinstance(shape, Fields):
        table = value if isinstance(value, dict) else {}
        nodes = ((name, _node(shape, name, item)) for name, item in table.items())
        return False, {f"f:{name}": node for name, node in nodes if node is not None}
    if isinstance(shape, Items):
        items = value if isinstance(value, list) else []
        found: FieldSet = {}
        for step, item in zip(shape.steps(items), items, strict=True):
            below = _inside(shape.item, item)[1]
            found[step] = MEMBER if step in found or not below else {SELF: MEMBER, **below}
        return False, found
    return True, MEMBER


def _node(shape: Fields, name: str, value: Json) -> FieldSet | None:
    member, below = _inside(shape.inner(name), value)
    member = member or value is None or value == {} or name not in shape.named
    if below:
        return {SELF: MEMBER, **below} if member else below
    return MEMBER if member else None


def named(shape: Shape | None, one: FieldSet) -> FieldSet:
    """The set with every field in it that its type names and that has something below it."""
    if isinstance(shape, Anything):
        shape = shape.fields
    found: FieldSet = {}
    for key, below in one.items():
        if not below:
            found[key] = below
            continue
        inner: Shape | None = None
        known = False
        if isinstance(shape, Fields) and key.startswith("f:"):
            known = key[2:] in shape.named
            inner = shape.inner(key[2:])
        elif isinstance(shape, Items) and key.startswith("k:"):
            inner = shape.item
        deeper = named(inner, below)
        found[key] = {SELF: MEMBER, **deeper} if known else deeper
    return found


def without(shape: Shape, value: Json, gone: FieldSet) -> Json:
    """A value without the paths of a set; an object or a list of which nothing is left is null."""
    if isinstance(shape, Anything):
        if not isinstance(value, dict):
            return None if isinstance(value, list) else value
        shape = shape.fields
    if isinstance(shape, Fields):
        if not isinstance(value, dict) or not value:
            return None
        kept = {name: _left(shape.inner(name), item, gone.get(f"f:{name}")) for name, item in value.items()
                if not _is_gone(gone.get(f"f:{name}"))}
        return kept or None
    if isinstance(shape, Items):
        if not isinstance(value, list) or not value:
            return None
        left = [_left(shape.item, item, gone.get(step))
                for step, item in zip(shape.steps(value), value, strict=True) if not _is_gone(gone.get(step))]
        return left or None
    return None if isinstance(value, dict | list) else value


def _is_gone(gone: FieldSet | None) -> bool:
    return gone is not None and (not gone or SELF in gone)


def _left(shape: Shape, value: Json, gone: FieldSet | None) -> Json:
    return without(shape, value, gone) if gone else value


def merged(shape: Shape, live: Json, wanted: Json) -> Json:
    """The live value with what a configuration wants. Raises Unmergeable."""
    if isinstance(shape, Anything):
        both = isinstance(live, dict | None) and isinstance(wanted, dict | None)
        return _merged_fields(shape.fields, live, wanted) if both else wanted
    if isinstance(shape, Fields):
        return _merged_fields(shape, live, wanted)
    if isinstance(shape, Items):
        return _merged_items(shape, live, wanted)
    return wanted


def _merged_fields(shape: Fields, live: Json, wanted: Json) -> Json:
    before = live if isinstance(live, dict) else {}
    after = wanted if isinstance(wanted, dict) else {}
    if not before and not after:
        return wanted
    result = dict(before)
    for name, value in after.items():
        result[name] = merged(shape.inner(name), before[name], value) if name in before else value
    return result


def _merged_items(shape: Items, live: Json, wanted: Json) -> Json:
    before = live if isinstance(live, list) else []
    after = wanted if isinstance(wanted, list) else []
    if not before and not after:
        return wanted
    ours = dict(zip(shape.steps(after), after, strict=True))
    steps = shape.steps(before)
    theirs: dict[str, Json] = {}
    for step, item in zip(steps, before, strict=True):
        theirs[step] = None if step in theirs else item        # what is there twice is replaced, not merged
    result: list[Json] = []
    for place in _woven(steps, list(ours)):
        if isinstance(place, int):
            result.append(before[place])
        else:
            result.append(merged(shape.item, theirs[place], ours[place]) if place in theirs else ours[place])
    return result


def _woven(theirs: list[str], ours: list[str]) -> Iterable[int | str]:
    """The order of the items: ours in our order, theirs where they were between them.

    A place of theirs is a number, one of ours its step. An item of both stands where we want it; what was before it
    stays before it.
    """
    mine, done = set(ours), set[str]()
    shared = [step for step in ours if step in set(theirs)]
    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs) and right < len(ours):
            if theirs[left] == ours[right]:
                done.add(ours[right])
                yield ours[right]
                left, right, shared = left + 1, right + 1, shared[1:]
                continue
            if theirs[left] in mine and shared and shared[0] != theirs[left]:
                left += 1      # its turn comes with ours
                continue
        if left < len(theirs):
            if theirs[left] not in mine:
                yield left
                left += 1
                continue
            if theirs[left] in done:
                left += 1
        if right < len(ours):
            step = ours[right]
            done.add(step)
            yield step
            right += 1
            if shared and shared[0] == step:
                shared = shared[1:]
