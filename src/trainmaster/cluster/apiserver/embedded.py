"""Whole objects inside a custom one (`x-kubernetes-embedded-resource`): their type and metadata, as at the top.

A schema says nothing about the metadata of an embedded object, because Kubernetes does: it has the fields of all
metadata, unknown ones are dropped and told, and what cannot be metadata makes the body unreadable.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import builtin, causes, inspection, names
from trainmaster.cluster.apiserver.causes import Cause

TYPE = ("apiVersion", "kind")


class Misfit(Exception):
    """The body cannot be read: an embedded object has a type or metadata that cannot be one."""


def settled(value: Object, path: str, unknown: list[str]) -> str:
    """Clean the type and the metadata, in place; says what is wrong, if anything, and takes that out."""
    wrong = ""
    for field in TYPE:
        if field in value and not isinstance(value[field], str):
            wrong = wrong or f"{path}.{field}: Invalid value: {causes.quoted(value.pop(field))}: must be a string"
    if "metadata" not in value:
        return wrong
    meta, type_ = value["metadata"], builtin.type_named(builtin.METADATA)
    if meta is None:
        meta = {}
    found = inspection.inspect(meta, type_, f"{path}.metadata")
    if found.faults:
        del value["metadata"]
        return wrong or f"{path}.metadata: Invalid value: {causes.quoted(meta)}: {found.faults[0]}"
    unknown += found.unknown
    value["metadata"] = {field: each for field, each in inspection.prune(meta, type_).items() if each is not None}
    return wrong


def faults(value: Object, path: str) -> Iterator[Cause]:
    """What is wrong with the type and the metadata of an object that could be read."""
    for field in TYPE:
        if field not in value:
            yield causes.required(f"{path}.{field}")
        elif not value[field]:
            yield causes.invalid(f"{path}.{field}", value[field], "must not be empty")
    version, kind = str(value.get("apiVersion") or ""), str(value.get("kind") or "")
    if version.count("/") > 1:
        yield causes.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    if kind and (found := names.older_label_1035(kind.lower())):
        yield causes.invalid(f"{path}.kind", kind,
                             f"may have mixed case, but should otherwise match: {','.join(found)}")
    meta = value.get("metadata")
    if isinstance(meta, dict):
        name = str(meta.get("name") or "")
        yield from names.refused(f"{path}.metadata.name", name, names.path_segment(name) if name else [])
        yield from names.labels(meta.get("labels") or {}, f"{path}.metadata.labels")
        yield from names.annotations(meta.get("annotations") or {}, f"{path}.metadata.annotations")
