"""What form the answer takes, from the `Accept` header.

Go clients list protobuf first and JSON after it, kubectl asks for tables, informers of metadata for partial objects. We
answer JSON (or YAML) in the first listed form we know; what that leaves out is 406, as on a real server.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from trainmaster.cluster.apiserver import failures

JSON = "application/json"
YAML = "application/yaml"


class Shape(Enum):
    """How an object is presented."""

    OBJECT = "object"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Form:
    """The media type of the answer, the presentation, and the version of meta.k8s.io it was asked in."""

    media: str = JSON
    shape: Shape = Shape.OBJECT
    version: str = "v1"


@dataclass(frozen=True, slots=True)
class Clause:
    """One entry of an Accept header."""

    media: str
    parameters: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return next((value for key, value in self.parameters if key == name), "")


PLAIN = Form()


@lru_cache(maxsize=256)
def clauses(accept: str) -> tuple[Clause, ...]:
    """The entries of an Accept header, most wanted first; entries of equal weight in the order given."""
    found: list[tuple[float, Clause]] = []
    for entry in accept.split(","):
        media, *rest = (part.strip() for part in entry.split(";"))
        parameters = tuple((name.strip().lower(), value.strip().strip('"'))
                           for name, sign, value in (part.partition("=") for part in rest) if sign)
        if media:
            clause = Clause(media.lower(), tuple(pair for pair in parameters if pair[0] != "q"))
            found.append((_weight(dict(parameters).get("q", "1")), clause))
    return tuple(clause for weight, clause in sorted(found, key=lambda pair: -pair[0]) if weight > 0)


@lru_cache(maxsize=256)
def wanted(accept: str, *, tables: bool = True) -> Form:
    """The form for an object or a list. Raises Failure 406 when nothing we can make was asked for."""
    if not accept.strip():
        return PLAIN
    for clause in clauses(accept):
        form = _form(clause, tables=tables)
        if form is not None:
            return form
    raise failures.not_acceptable((JSON, YAML))


def _form(clause: Clause, *, tables: bool) -> Form | None:
    media = {"*/*": JSON, "application/yaml": YAML, "application/json": JSON}.get(clause.media)
    shape = clause.get("as")
    if media is None or clause.get("stream") not in {"", "watch"}:
        return None
    if not shape:
        return Form(media) if not clause.get("g") else None
    if clause.get("g") != "meta.k8s.io" or clause.get("v") not in {"v1", "v1beta1"} or not tables:
        return None
    known = {member.value: member for member in Shape if member is not Shape.OBJECT}.get(shape)
    return Form(media, known, clause.get("v")) if known else None


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
