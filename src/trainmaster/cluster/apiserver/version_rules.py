"""What a version of a definition may have besides its schema: a warning, a scale, columns, fields to select. Pure."""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, schema_parts, schema_paths
from trainmaster.cluster.apiserver.causes import Cause

LONGEST_WARNING = 256
MOST_SELECTABLE = 8
_COLUMN_TYPES = "boolean,date,integer,number,string"
_COLUMN_FORMATS = "byte,date,date-time,double,float,int32,int64,password"
_SELECTABLE = ("string", "boolean", "integer")
_SCALE_ROOTS = {"specReplicasPath": (".spec.",), "statusReplicasPath": (".status.",),
                "labelSelectorPath": (".spec.", ".status.")}


def deprecation_faults(version: Object, path: str) -> Iterator[Cause]:
    warning, place = version.get("deprecationWarning"), f"{path}.deprecationWarning"
    if warning is None:
        return
    if not version.get("deprecated"):
        yield causes.invalid(place, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > LONGEST_WARNING:
        yield causes.invalid(place, warning, f"must be <= {LONGEST_WARNING} characters long")
    if not warning:
        yield causes.invalid(place, warning, "must not be an empty string")
    hidden = next((at for at, sign in enumerate(warning) if not sign.isprintable()), None)
    if hidden is not None:
        yield causes.invalid(place, warning, "must only contain printable UTF-8 characters; non-printable character "
                                             f"found at index {len(warning[:hidden].encode())}")


def scale_faults(subresources: Object, path: str) -> Iterator[Cause]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for field, roots in _SCALE_ROOTS.items():
        value, place = scale.get(field) or "", f"{path}.scale.{field}"
        if not value:
            if field != "labelSelectorPath":
                yield causes.required(place)
        elif not value.startswith("."):
            yield from _path_faults(value, place)
        elif not value.startswith(roots):
            under = " or ".join(root.rstrip(".") for root in roots)
            yield causes.invalid(place, value, f"should be a json path under {'either ' * (len(roots) > 1)}{under}")


def column_faults(column: Object, path: str) -> Iterator[Cause]:
    kind, form, where = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    if not column.get("name"):
        yield causes.required(f"{path}.name")
    if not kind:
        yield causes.required(f"{path}.type", f"must be one of {_COLUMN_TYPES}")
    elif kind not in _COLUMN_TYPES.split(","):
        yield causes.invalid(f"{path}.type", kind, f"must be one of {_COLUMN_TYPES}")
    if form and form not in _COLUMN_FORMATS.split(","):
        yield causes.invalid(f"{path}.format", form, f"must be one of {_COLUMN_FORMATS}")
    if not where:
        yield causes.required(f"{path}.JSONPath")
    else:
        yield from _path_faults(where, f"{path}.JSONPath")


def selectable_faults(fields: list[Json], document: Object | None, path: str, *, whole: bool) -> Iterator[Cause]:
    """Of a version, or of all versions as a whole."""
    place = f"{path}.selectableFields"
    if document is None:
        needed = "validations.schema is included" if whole else "`version.schema.openAPIV3Schema` is not included"
        yield causes.invalid(place, "", f"may only be set when {needed}")
        return
    if unusable := schema_parts.unusable(document):
        yield causes.invalid(f"{path}.schema.openAPIV3Schema", "", unusable)
        return
    taken: set[tuple[str, ...]] = set()
    for at, field in enumerate(fields):
        where = f"{place}[{at}].jsonPath"
        given = str((field or {}).get("jsonPath") or "")
        if not given:
            yield causes.required(where)
            continue
        try:
            steps, found = schema_paths.followed(given, document, brackets=False)
        except schema_paths.Astray as why:
            yield causes.invalid(where, given, f"is an invalid path: {why}")
            continue
        if steps[:1] == ("metadata",):
            yield causes.invalid(where, given, "must not point to fields in metadata")
        if found is None or schema_parts.type_of(found) not in _SELECTABLE:
            yield causes.invalid(where, given, "must point to a field of type string, boolean or integer. Enum string "
                                               "fields and strings with formats are allowed.")
        if steps in taken:
            yield causes.duplicate(where, given)
        taken.add(steps)
    if len(taken) > MOST_SELECTABLE:
        yield causes.too_many(place, len(taken), MOST_SELECTABLE)


def _path_faults(value: str, path: str) -> Iterator[Cause]:
    if not value.startswith("."):
        yield causes.invalid(path, value, "must be a simple json path starting with .")
