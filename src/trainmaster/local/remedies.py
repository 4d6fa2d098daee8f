"""What to write instead of a mistake in a manifest.

Rules and servers say what is wrong, often in the words of Kubernetes, which stay as they are. A person needs the next
step, so each sort of finding has a sentence here. Rejected: other words for the findings themselves, which nobody could
look up.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from trainmaster.api.kubeflow_v1 import JobKind
from trainmaster.api.meta import Json, Object

_CHOICES = re.compile(r'Unsupported value: "([^"]*)": supported values: (.*)')
_TYPE = re.compile(r"in body must be of type (\w+): ")
_CONTAINER = re.compile(r"must have at least one container with name \"?([\w-]+)")
_POD_SPEC = re.compile(r"(.*?spec)\.(?:c|initC)ontainers\[")
_FORMS = {
    "integer": "Write a whole number, without quotes.", "boolean": "Write true or false, without quotes.",
    "string": "Write text; put it in quotes if it looks like a number.",
    "array": "Write a list: lines that begin with '- '.", "object": "Write fields below it, indented.",
}


def remedy(field: str, what: str, thing: Object, kind: JobKind | None = None) -> str:
    """What to do about a finding, or nothing if it says that itself. `kind` if the object is a job."""
    if kind is not None and (told := _of_jobs(field, what, thing, kind)):
        return told
    if wanted := _TYPE.search(what):
        return _FORMS.get(wanted[1], "")
    if choices := _CHOICES.search(what):
        near_by = near(choices[1], re.findall(r'"([^"]*)"', choices[2]))
        return f"Did you mean '{near_by}'?" if near_by else "Write one of these."
    return next((told(field, thing) for pattern, told in _WAYS if pattern.search(what)), "")


def near(word: str, known: Iterable[str]) -> str:
    """The known word that was meant, or nothing: the same but for case first, then the one most alike."""
    choices = list(known)
    same = next((each for each in choices if each.lower() == word.lower()), "")
    return same or next(iter(difflib.get_close_matches(word, choices, 1, 0.7)), "")


def at(thing: Object, path: str) -> Json:
    """What an object has at a path, None if it has nothing there."""
    inner: Json = thing
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(inner, Mapping):
            inner = inner.get(part)
        elif isinstance(inner, list) and part.isdigit() and int(part) < len(inner):
            inner = inner[int(part)]
        else:
            return None
    return inner


def names(things: Json) -> list[str]:
    """Of a list of objects."""
    return [str(each.get("name")) for each in things if isinstance(each, Mapping)] if isinstance(things, list) else []


def _of_jobs(field: str, what: str, thing: Object, kind: JobKind) -> str:
    if wanted := _CONTAINER.search(what):
        return f"Name the container that trains '{wanted[1]}'{_listed('found', names(at(thing, field)))}."
    if field.endswith(".containers") and "must be specified" in what:
        return f"Write a container that has the name '{kind.container}' and an image."
    if field.endswith(".image"):
        return "Write image: and the name of an image that has the training program."
    if field == f"spec.{kind.replica_field}" and what.startswith("Required"):
        return f"A {kind.kind} has {kind.replica_field}: with one or more of {', '.join(kind.roles)}."
    if field == "metadata.name" and "should match" in what:
        return "Use lower case letters, digits and '-', beginning with a letter."
    if "more than 1" in what:
        return "Keep one of them."
    return ""


def _quoted(field: str, thing: Object) -> str:
    value = at(thing, field)
    shown = str(value).lower() if isinstance(value, bool) else value
    return f'Put it in quotes: "{shown}".' if isinstance(value, int | float) else "Write text."


def _as_list(field: str, thing: Object) -> str:
    value = at(thing, field)
    words = ", ".join(value.split()) if isinstance(value, str) else str(value)
    return f"Write each word by itself: [{words}]."


def _volume(field: str, thing: Object) -> str:
    pod = _POD_SPEC.match(field)
    there = names(at(thing, f"{pod[1]}.volumes")) if pod else []
    return f"Correct the name{_listed('there are', there)}, or add such a volume under volumes:."


def _listed(what: str, found: Sequence[str]) -> str:
    return f" ({what}: {', '.join(found)})" if found else ""


def _given(field: str, thing: Object) -> str:  # noqa: ARG001  one of several
    name = field.rpartition(".")[2].partition("[")[0]
    return f"Write {name}: and {_VALUES.get(name, 'its value')}."


def _always(text: str) -> Callable[[str, Object], str]:
    return lambda field, thing: text  # noqa: ARG005  one of several


_VALUES = {"mountPath": "where the volume shall be, such as /data", "name": "what it is called"}
_WAYS: Sequence[tuple[re.Pattern[str], Callable[[str, Object], str]]] = [
    (re.compile(pattern), told) for pattern, told in (
        (r"^must be text, not", _quoted),
        (r"^must be a list", _as_list),
        (r"^must be a quantity", _always("Write a number with its unit and no space: 500m, 2, 1.5, 512Mi, 2Gi.")),
        (r"^must be true or false", _always("Write it without quotes.")),
        (r"^must be a whole number", _always("Write a number, without quotes and unit.")),
        (r"^Not found: ", _volume),
        (r"^Required value$", _given),
        (r"must be greater than or equal to 0$", _always("Write 0 or more, or leave the line out.")),
        (r"must be less than or equal to \S+ limit", _always("Lower the request, or raise the limit.")),
        (r"at most \d+ replicas", _always("Lower the replicas of its roles.")),
        (r"a valid label must", _always("Use at most 63 letters, digits, '-', '_' and '.'.")),
    )
]
