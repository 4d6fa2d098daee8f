"""Label and field selectors: parsed once per request, then asked about every object.

Clients send them empty, with a term repeated, those of fields with a trailing comma; all of that selects as if it were
not there. How those of labels are written is in `selector_syntax`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures, selector_syntax
from trainmaster.cluster.apiserver.selector_syntax import Requirement

NAME, NAMESPACE = "metadata.name", "metadata.namespace"


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a field selector."""

    field: str
    value: str
    equal: bool

    def holds(self, thing: Object) -> bool:
        return (text_at(thing, self.field) == self.value) is self.equal


@dataclass(frozen=True, slots=True)
class Selector:
    """Both selectors of a request."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    def holds(self, thing: Object) -> bool:
        found = (thing.get("metadata") or {}).get("labels") or {}
        return all(term.holds(found) for term in self.labels) and all(term.holds(thing) for term in self.fields)

    def selects(self, value: bytes) -> bool:
        """The same for an object in stored form. Most of what is not selected shows so without being parsed."""
        if not self:
            return True
        for wanted in _words(self):
            if not any(word in value for word in wanted):
                return False
        return self.holds(orjson.loads(value))

    def renamed(self, names: Mapping[str, str]) -> "Selector":
        """The same for objects whose fields are called otherwise."""
        return Selector(self.labels, tuple(Term(names.get(term.field, term.field), term.value, term.equal)
                                           for term in self.fields))

    def without_name(self) -> tuple[str, "Selector"]:
        """The one name that is asked for, if any, and the rest: a name can be looked up instead of searched."""
        wanted = {term.value for term in self.fields if term.field == NAME and term.equal}
        if len(wanted) != 1:
            return "", self
        rest = tuple(term for term in self.fields if not (term.field == NAME and term.equal))
        return wanted.pop(), Selector(self.labels, rest)


EVERYTHING = Selector()


@lru_cache(maxsize=512)
def _words(selector: Selector) -> tuple[tuple[bytes, ...], ...]:
    """What stands in the JSON of everything that is selected: of each of these one."""
    found: list[tuple[bytes, ...]] = [
        (_json(term.key),) for term in selector.labels if term.operator not in {"notin", "absent"}]
    found += [tuple(map(_json, term.values)) for term in selector.labels if term.operator == "in"]
    found += [(_json(term.value),) for term in selector.fields
              if term.equal and term.value and term.field not in _SHORTCUTS]
    return tuple(found)


def _json(text: str) -> bytes:
    """Text as it stands in JSON, without the quotes: numbers and truth values are selected by their text too."""
    return orjson.dumps(text)[1:-1]


def selector(labels: str, fields: str, selectable: Sequence[str] = (), kind: str = "") -> Selector:
    """Raises Failure 400 for what cannot be parsed and for fields that cannot be selected by."""
    if not labels and not fields:
        return EVERYTHING
    terms = parse_fields(fields)
    for term in terms:
        if term.field not in {NAME, NAMESPACE} and term.field not in selectable:
            raise failures.bad_request(_unsupported(term.field, selectable, kind))
    return Selector(parse_labels(labels), terms)


def _unsupported(field: str, selectable: Sequence[str], kind: str) -> str:
    """Each of these is what some kinds of Kubernetes say."""
    if not selectable:
        return f'{failures.quoted(field)} is not a known field selector: only "metadata.name", "metadata.namespace"'
    if kind == "Job":
        return f"field label {failures.quoted(field)} not supported for Job"
    return f"field label not supported: {field}"


@lru_cache(maxsize=512)
def parse_labels(text: str) -> tuple[Requirement, ...]:
    try:
        return tuple(dict.fromkeys(selector_syntax.read(text)))
    except selector_syntax.Unreadable as why:
        raise failures.bad_request(str(why)) from why


@lru_cache(maxsize=512)
def parse_fields(text: str) -> tuple[Term, ...]:
    found: list[Term] = []
    for part in _split(text):
        match = re.fullmatch(r"\s*([^=!]+?)\s*(==|!=|=)\s*(.*?)\s*", part, re.DOTALL)
        if match is None:
            raise failures.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        field, operator, value = match.groups()
        found.append(Term(field, re.sub(r"\\([\\,=])", r"\1", value), operator != "!="))
    return tuple(dict.fromkeys(found))


def text_at(thing: Object, path: str) -> str:
    """The value at a dotted path as a selector sees it; what is not there is the empty string."""
    shortcut = _SHORTCUTS.get(path)
    if shortcut is not None:
        return shortcut(thing)
    found: Json = thing
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, bool):
        return "true" if found else "false"
    return "" if found is None else str(found)


def _flag(path: str) -> Callable[[Object], str]:
    """A boolean that reads `false` where it was never set."""
    outer, inner = path.split(".")
    return lambda thing: "true" if (thing.get(outer) or {}).get(inner) else "false"


def _event_source(thing: Object) -> str:
    return str((thing.get("source") or {}).get("component") or thing.get("reportingComponent") or "")


_SHORTCUTS: dict[str, Callable[[Object], str]] = {
    "source": _event_source,
    "status.successful": lambda thing: str((thing.get("status") or {}).get("succeeded") or 0),
    "status.replicas": lambda thing: str((thing.get("status") or {}).get("replicas") or 0),
    "spec.unschedulable": _flag("spec.unschedulable"),
    "spec.hostNetwork": _flag("spec.hostNetwork"),
}



def _split(text: str) -> list[str]:
    """Split at commas that no backslash protects; empty parts fall away."""
    return [part for part in re.split(r"(?<!\\),", text) if part.strip()]
