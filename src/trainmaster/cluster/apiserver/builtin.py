"""The shapes of the built-in kinds: which fields they have, of what type, on which number, merged by which key.

The facts are in `kubernetes_shapes.json`, made by `tools/kubernetes_shapes.py` from one release of Kubernetes; here
they become records. Nothing is read before the first question, and a type becomes records only when somebody asks for
it: one pod needs a quarter of the types, and a start of the server none. Python code generated from the same sources
was rejected: it imports in ten times the time and says nothing more.

Types are named as in OpenAPI, without the `io.k8s.` that all of them share: `api.core.v1.Pod`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from trainmaster.api.meta import Json, Resource

FILE = Path(__file__).with_name("kubernetes_shapes.json")
FORMAT = 1
NAME_PREFIX = "io.k8s."

# What a field holds if it is not an object with fields of its own. `strings` is a list of text that is one value on
# the wire; `raw`, `fields` and `json` are any JSON; the last three are the either-or parts of a definition's schema.
WORDS = frozenset({
    "string", "bool", "int32", "int64", "double", "bytes", "quantity", "int-or-string", "time", "micro-time",
    "strings", "raw", "fields", "json", "schema-or-list", "schema-or-bool", "schema-or-names",
})
METADATA = "apimachinery.pkg.apis.meta.v1.ObjectMeta"
SCHEMA = "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


class Many(Enum):
    """How often a field holds what it holds."""

    ONE = ""
    LIST = "[]"
    MAP = "{}"      # keys are text


class Zero(Enum):
    """What Kubernetes writes in JSON when the wire has nothing, or a zero."""

    AS_SENT = ""        # nothing if absent; a zero that was sent is shown
    OMIT = "omit"       # nothing, sent or not
    ALWAYS = "always"   # the zero value
    NULL = "null"       # null if absent


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    many: Many
    word: str                           # one of WORDS; empty if `type_name` says which object
    type_name: str
    numbers: tuple[int, ...]            # the field's, after those of messages JSON does not show; empty: JSON only
    zero: Zero
    required: bool = False
    default: Json = None                # only where it is not the zero value that `Zero.ALWAYS` implies
    list_type: str = ""                 # atomic, set or map
    list_keys: tuple[str, ...] = ()     # for map: the fields that tell items apart
    map_type: str = ""                  # atomic or granular
    patch: tuple[str, ...] = ()         # strategies of a strategic merge patch: merge, replace, retainKeys
    merge_key: str = ""                 # for merge: the field that tells items apart

    @property
    def type(self) -> "Type | None":
        return type_named(self.type_name) if self.type_name else None


@dataclass(frozen=True, slots=True)
class Type:
    name: str
    fields: Mapping[str, Field]         # by JSON name
    map_type: str = ""                  # atomic: owned as a whole in server-side apply

    @property
    def definition(self) -> str:
        """The name in OpenAPI documents."""
        return NAME_PREFIX + self.name


@dataclass(frozen=True, slots=True)
class Part:
    """A subresource."""

    name: str
    api_version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """A resource as a real server offers it."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    parts: Mapping[str, Part]


def version() -> str:
    """The release of Kubernetes that the table describes."""
    return str(_table()["kubernetes"])


def shape_of(api_version: str, kind: str) -> Type | None:
    """The type of a built-in kind; of the options kinds (DeleteOptions...) under any apiVersion, as in Kubernetes."""
    # Names come from clients, too: what is far too long is not remembered.
    return (_shape_of if len(api_version) + len(kind) < 200 else _shape_of.__wrapped__)(api_version, kind)


@lru_cache(maxsize=512)
def _shape_of(api_version: str, kind: str) -> Type | None:
    kinds = _table()["kinds"]
    name = kinds.get(api_version, {}).get(kind) or kinds["*"].get(kind)
    return None if name is None else type_named(name)


def kinds() -> Mapping[str, tuple[str, ...]]:
    """The kinds of each apiVersion."""
    return {api_version: tuple(found) for api_version, found in _table()["kinds"].items() if api_version != "*"}


@cache
def type_named(name: str) -> Type:
    """A type by its name. Raises KeyError if there is none."""
    row = _table()["types"][name]
    fields = {field[0]: _field(*field) for field in row["fields"]}
    return Type(name, MappingProxyType(fields), row.get("map", ""))


@cache
def served() -> Mapping[str, tuple[Served, ...]]:
    """What a real server offers under each apiVersion, by plural."""
    return MappingProxyType({
        api_version: tuple(_served(api_version, row) for row in rows)
        for api_version, rows in _table()["resources"].items()
    })


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(FILE.read_bytes())
    if found["format"] != FORMAT:
        raise RuntimeError(f"{FILE.name} has format {found['format']}, this program reads {FORMAT}")
    return found


def _field(name: str, form: str, number: int | list[int], zero: str, more: Mapping[str, Any] | None = None) -> Field:
    many = Many(form[:2]) if form[:2] in {"[]", "{}"} else Many.ONE
    base = form.removeprefix(many.value)
    said = more or {}
    numbers = tuple(number) if isinstance(number, list) else (number,) if number else ()
    return Field(
        name, many, base if base in WORDS else "", "" if base in WORDS else base, numbers, Zero(zero),
        required=said.get("required", False), default=said.get("default"), list_type=said.get("list", ""),
        list_keys=tuple(said.get("keys", ())), map_type=said.get("map", ""),
        patch=tuple(said["patch"].split(",")) if "patch" in said else (), merge_key=said.get("merge", ""),
    )


def _served(api_version: str, row: Mapping[str, Any]) -> Served:
    group, _, release = api_version.rpartition("/")
    parts = {
        name: Part(name, part.get("version", api_version), part["kind"], tuple(part["verbs"]))
        for name, part in row.get("parts", {}).items()
    }
    return Served(
        Resource(group, release, row["plural"], row["kind"], row["namespaced"]), row["singular"],
        tuple(row.get("short", ())), tuple(row.get("categories", ())), tuple(row["verbs"]), MappingProxyType(parts),
    )
