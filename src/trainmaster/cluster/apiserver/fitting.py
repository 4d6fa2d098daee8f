"""Whether an object fits its built-in type in every field: the quick yes that nearly every body gets.

`inspection` says what is wrong and where, which takes a path for every field it passes; this says only that nothing is
wrong, at a fifth of the cost. Each type becomes a table of its fields when it is first met: a plain type for text and
truth values, which is compared without a call, and a function for the rest.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeAlias

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import builtin, formats
from trainmaster.cluster.apiserver.builtin import Field, Many

Check: TypeAlias = type | Callable[[Json], bool]

SCHEMA_WORDS = frozenset({"schema-or-list", "schema-or-bool", "schema-or-names"})


@cache
def of_type(name: str) -> "Fit":
    """The check for a type by its name."""
    return Fit(name)


class Fit:
    """True for an object that has no unknown field and no value of a wrong type.

    `null` fits any field; inside a list or a map it is not wrong, but rare enough to be looked at closely.
    """

    __slots__ = ("_fields", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._fields: dict[str, Check] | None = None     # filled at the first use: types contain themselves

    def __call__(self, value: Json) -> bool:
        if not isinstance(value, dict):
            return False
        fields = self._fields
        if fields is None:
            fields = self._fields = {field.name: _check(field)
                                     for field in builtin.type_named(self._name).fields.values()}
        for name, item in value.items():
            check = fields.get(name)
            if type(item) is check or (item is None and check is not None):
                continue
            if check is None or check is str or check is bool or not check(item):
                return False
        return True


def _check(field: Field) -> Check:
    one = _one(field)
    if field.many is Many.LIST:
        return _list_of(one)
    return _map_of(one) if field.many is Many.MAP else one


def _one(field: Field) -> Check:
    if field.type_name:
        return of_type(field.type_name)
    if field.word in SCHEMA_WORDS:
        return _plain_schema
    return PLAIN.get(field.word) or WORDS[field.word]


def _list_of(one: Check) -> Check:
    return lambda value: isinstance(value, list) and _all(value, one)


def _map_of(one: Check) -> Check:
    return lambda value: isinstance(value, dict) and _all(value.values(), one)


def _all(values: Iterable[Json], one: Check) -> bool:
    plain = one is str or one is bool
    for item in values:  # noqa: SIM110  `all` takes twice the time for the short lists of real objects
        if type(item) is not one and (plain or item is None or not one(item)):
            return False
    return True


def _plain_schema(value: Json) -> bool:
    """A schema in a schema; its other forms are rare enough for the long way."""
    return of_type(builtin.SCHEMA)(value)


def _whole(value: Json, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1


def _strings(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


PLAIN: dict[str, type] = {"string": str, "bool": bool}
# Whether a value is what a word of the table says.
WORDS: dict[str, Callable[[Json], bool]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int32": lambda value: _whole(value, 32),
    "int64": lambda value: _whole(value, 64),
    "double": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bytes": lambda value: isinstance(value, str) and formats.is_base64(value),
    # An unquoted number is taken too, as Go reads the text of the document, not its type.
    "quantity": lambda value: not isinstance(value, bool | list | dict) and formats.is_quantity(str(value)),
    "int-or-string": lambda value: isinstance(value, str) or _whole(value, 32),
    "time": lambda value: isinstance(value, str) and formats.is_time(value),
    "micro-time": lambda value: isinstance(value, str) and formats.is_micro_time(value),
    "strings": _strings,
    "raw": lambda _: True,
    "fields": lambda _: True,
    "json": lambda _: True,
}
