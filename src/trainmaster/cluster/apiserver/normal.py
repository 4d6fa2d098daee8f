"""The form in which Kubernetes writes an object down, whatever form it was sent in.

A real server decodes into Go types and encodes again. On that way zeros vanish or appear (`paused: false` is gone,
`status: {}` and `replicas: 0` come), empty lists fall away, and quantities get their canonical text (`0.5` is `500m`,
`1024Mi` is `1Gi`). Clients compare what they sent with what they read, so the form is part of the API. The table of
types says for each field what Go does with its zero (`builtin.Zero`); each type becomes a list of small steps when it
is first met. Doing this per kind by hand was rejected: it is the same in every kind, and easy to forget in one.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin
from trainmaster.cluster.apiserver.builtin import Field, Many, Type, Zero

Step: TypeAlias = Callable[..., Json]      # a value, and of a `Normal` also what it was before

_ZEROS: dict[str, Json] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "quantity": "0", "int-or-string": 0, "bytes": "",
}
_NESTED = (dict, list)


@cache
def of_type(name: str) -> "Normal":
    return Normal(name)


class Normal:
    """Brings an object of one type into its normal form, in place. Values of a wrong type stay as they are."""

    __slots__ = ("_always", "_name", "_steps")

    def __init__(self, name: str) -> None:
        self._name = name
        # Only fields with something to do; filled late: types contain themselves.
        self._steps: dict[str, tuple[Step | None, Json, bool]] | None = None
        self._always: list[tuple[str, Json, Step | None]] = []

    def __call__(self, thing: Json, old: Json = None) -> Json:
        """`old` is an object in normal form: what is the same there needs no second look."""
        if not isinstance(thing, dict):
            return thing
        steps = self._compiled() if self._steps is None else self._steps
        before = old if isinstance(old, dict) else None
        gone = []
        for name, value in thing.items():
            known = steps.get(name)
            if known is None:
                continue
            step, zero, dropped = known
            if value is None:
                if dropped:
                    gone.append(name)
                continue
            if step is None:
                if value:      # the zero of what has no step is false
                    continue
            elif before is None:
                value = thing[name] = step(value)
            else:
                was = before.get(name)
                if value == was:
                    continue
                value = thing[name] = step(value, was) if step.__class__ is Normal else step(value)
            if dropped and value == zero and type(value) is type(zero):
                gone.append(name)
        for name in gone:
            del thing[name]
        for name, zero, step in self._always:
            if thing.get(name) is None and (name not in thing or zero is not None):
                thing[name] = step({}) if step is not None else zero
        return thing

    def _compiled(self) -> dict[str, tuple[Step | None, Json, bool]]:
        steps = {}
        for field in builtin.type_named(self._name).fields.values():
            step, dropped = _step(field), _is_dropped(field)
            if step is not None or dropped:
                steps[field.name] = (step, zero_of(field), dropped)
            if field.zero is Zero.NULL:
                self._always.append((field.name, None, None))
            elif field.zero is Zero.ALWAYS:
                is_object = bool(field.type_name) and field.many is Many.ONE
                zero = field.default if field.default is not None else zero_of(field)
                self._always.append((field.name, zero, of_type(field.type_name) if is_object else None))
        self._steps = steps
        return steps


def _is_dropped(field: Field) -> bool:
    """Whether a zero that was sent is left out: always for `omitempty` values, and for empty lists and maps."""
    return field.zero is Zero.OMIT or (field.zero is Zero.AS_SENT and field.many is not Many.ONE)


def zero_of(field: Field) -> Json:
    """What Go has in a field before anything is set."""
    match field.many:
        case Many.LIST:
            return []
        case Many.MAP:
            return {}
        case _:
            return {} if field.type_name else _ZEROS.get(field.word)


def _step(field: Field) -> Step | None:
    one: Step | None = of_type(field.type_name) if field.type_name else canonical if field.word == "quantity" else None
    if one is None:
        return None
    if field.many is Many.LIST:
        return lambda value: [one(item) for item in value] if isinstance(value, list) else value
    if field.many is Many.MAP:
        return lambda value: {key: one(item) for key, item in value.items()} if isinstance(value, dict) else value
    return one


def without_holes(value: Json, type_: Type) -> Json:
    """The object with a zero of the right type for each `null` in a list or map, as Go reads it."""
    if not isinstance(value, dict) or not _has_hole(value):
        return value
    return {name: _filled(item, field) if (field := type_.fields.get(name)) else item for name, item in value.items()}


def _has_hole(value: Json) -> bool:
    if isinstance(value, dict):
        return any(item is None or (item.__class__ in _NESTED and _has_hole(item)) for item in value.values())
    return any(item is None or (item.__class__ in _NESTED and _has_hole(item)) for item in value)


def _filled(value: Json, field: Field) -> Json:
    if field.many is Many.LIST and isinstance(value, list):
        return [_zero_item(field) if item is None else _filled_one(item, field) for item in value]
    if field.many is Many.MAP and isinstance(value, dict):
        return {key: _zero_item(field) if item is None else _filled_one(item, field) for key, item in value.items()}
    return _filled_one(value, field)


def _filled_one(value: Json, field: Field) -> Json:
    return without_holes(value, builtin.type_named(field.type_name)) if field.type_name else value


def _zero_item(field: Field) -> Json:
    return {} if field.type_name else _ZEROS.get(field.word)


def canonical(value: Json) -> Json:
    """The text Kubernetes writes for a quantity; what is none stays."""
    written = isinstance(value, str | int | float) and not isinstance(value, bool)
    return quantity.canonical(str(value)) if written else value


def settle(api_version: str, kind: str) -> Callable[[Object, Object | None], None]:
    """The step for a whole object of a built-in kind, for `Kind.settle`."""
    found: list[Normal] = []

    def apply(thing: Object, old: Object | None) -> None:
        if not found:
            type_ = builtin.shape_of(api_version, kind)
            assert type_ is not None, f"{kind} in {api_version} has no type"
            found.append(of_type(type_.name))
        found[0](thing, old)

    return apply
