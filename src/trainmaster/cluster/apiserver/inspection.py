"""How a raw object of a built-in kind compares with its type: fields nobody knows, values of the wrong JSON type.

Kubernetes decodes a body into Go types; what does not fit is an error, what has no field is dropped, reported or
refused as the client asked (`fieldValidation`). Here objects stay dictionaries, so the comparison is a walk of its own,
and one walk finds both. Paths are written as Kubernetes writes them: `spec.containers[0].image`.

All functions are pure and recurse as deep as the object: bodies are limited in depth before they come here.
"""

from dataclasses import dataclass

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, causes, fitting
from trainmaster.cluster.apiserver.builtin import Field, Many, Type

# As many as Kubernetes reports; more help nobody, and an answer must stay small.
MOST_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that cannot be in its place."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'the object'} {self.message}"


@dataclass(frozen=True, slots=True)
class Findings:
    faults: tuple[Fault, ...]       # the body cannot be accepted
    unknown: tuple[str, ...]        # paths of fields that the type does not have


NOTHING = Findings((), ())


def inspect(thing: Json, type_: Type, path: str = "") -> Findings:
    """Everything that does not fit, in the order of the object, which is at `path`. `null` fits anywhere, as in Go."""
    if fitting.of_type(type_.name)(thing):
        return NOTHING
    walk = _Walk()
    walk.object(thing, type_, path)
    return Findings(tuple(walk.faults), tuple(walk.unknown))


def prune(thing: Object, type_: Type) -> Object:
    """The object without unknown fields. What is of the wrong type stays: that is not for pruning to decide."""
    return {name: _pruned(value, field) for name, value in thing.items() if (field := type_.fields.get(name))}


def _pruned(value: Json, field: Field) -> Json:
    if not field.type_name and field.word not in fitting.SCHEMA_WORDS:
        return value
    if field.many is Many.LIST:
        return [_pruned_one(item, field) for item in value] if isinstance(value, list) else value
    if field.many is Many.MAP:
        return {key: _pruned_one(item, field) for key, item in value.items()} if isinstance(value, dict) else value
    return _pruned_one(value, field)


def _pruned_one(value: Json, field: Field) -> Json:
    type_ = builtin.type_named(field.type_name or builtin.SCHEMA)
    if isinstance(value, dict):
        return prune(value, type_)
    if isinstance(value, list) and field.word == "schema-or-list":
        return [prune(item, type_) if isinstance(item, dict) else item for item in value]
    return value


class _Walk:
    __slots__ = ("faults", "unknown")

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.unknown: list[str] = []

    def object(self, value: Json, type_: Type, path: str) -> None:
        if not isinstance(value, dict):
            self._fault(path, "an object", value)
            return
        fields = type_.fields
        for name, item in value.items():
            field = fields.get(name)
            if field is None:
                if len(self.unknown) < MOST_FINDINGS:
                    self.unknown.append(f"{path}.{name}" if path else name)
            elif item is not None:
                self._field(item, field, f"{path}.{name}" if path else name)

    def _field(self, value: Json, field: Field, path: str) -> None:
        if field.many is Many.ONE:
            self._one(value, field, path)
        elif field.many is Many.LIST:
            if not isinstance(value, list):
                self._fault(path, "a list", value)
                return
            for at, item in enumerate(value):
                if item is not None:
                    self._one(item, field, f"{path}[{at}]")
        else:
            if not isinstance(value, dict):
                self._fault(path, "an object", value)
                return
            for key, item in value.items():
                if item is not None:
                    self._one(item, field, f"{path}.{key}")

    def _one(self, value: Json, field: Field, path: str) -> None:
        if field.type_name:
            self.object(value, builtin.type_named(field.type_name), path)
        elif field.word in fitting.SCHEMA_WORDS:
            self._schema(value, field.word, path)
        elif not fitting.WORDS[field.word](value):
            self._fault(path, _WANTED[field.word], value)

    def _schema(self, value: Json, word: str, path: str) -> None:
        """Go reads these parts of a schema with less care: what has no field there is dropped without a word."""
        inner, schema = _Walk(), builtin.type_named(builtin.SCHEMA)
        if isinstance(value, dict):
            inner.object(value, schema, path)
        elif isinstance(value, list) and word == "schema-or-list":
            for at, item in enumerate(value):
                inner.object(item, schema, f"{path}[{at}]")
        elif isinstance(value, list) and word == "schema-or-names":
            for at, item in enumerate(value):
                if not isinstance(item, str):
                    self._fault(f"{path}[{at}]", _WANTED["string"], item)
        elif word == "schema-or-bool" and not isinstance(value, bool):
            self._fault(path, "a schema, true or false", value)
        self.faults += inner.faults[:MOST_FINDINGS - len(self.faults)]

    def _fault(self, path: str, wanted: str, value: Json) -> None:
        if len(self.faults) < MOST_FINDINGS:
            self.faults.append(Fault(path, f"must be {wanted}, not {causes.type_name(value)}"))


_WANTED = {
    "string": "text",
    "bool": "true or false",
    "int32": "a whole number of at most 32 bits",
    "int64": "a whole number of at most 64 bits",
    "double": "a number",
    "bytes": "bytes in base64",
    "quantity": "a quantity such as 500m or 2Gi",
    "int-or-string": "a whole number or text",
    "time": "a moment such as 2006-01-02T15:04:05Z",
    "micro-time": "a moment such as 2006-01-02T15:04:05.000000Z",
    "strings": "a list of text",
}
