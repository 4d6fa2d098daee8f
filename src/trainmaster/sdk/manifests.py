"""Manifests from files, folders and standard input, with the place of every document kept for error messages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import yaml

from trainmaster.api.meta import Object

LARGEST = 4 << 20   # bytes of one file; an API server takes three megabytes for one object
SUFFIXES = (".yaml", ".yml", ".json")
_SAFE: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE):  # type: ignore[misc]  # one of two classes of PyYAML, known only at run time
    """The safe loader, which says of a key that is written twice what YAML itself passes over."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"'{key.value}' is written twice", key.start_mark)
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep=deep))


class ManifestError(Exception):
    """Something the user wrote cannot be used: which file, where, what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and where it was written."""

    thing: Object
    source: str


def read(targets: Sequence[str], stdin: TextIO) -> list[Manifest]:
    """All objects of the targets, in order. Raises ManifestError."""
    found = [manifest for target in targets for manifest in _of_target(target, stdin)]
    if not found:
        raise ManifestError(f"There is no object in {', '.join(targets)}.")
    return found


def _of_target(target: str, stdin: TextIO) -> Iterator[Manifest]:
    if "://" in target:
        raise ManifestError(f"{target}: manifests are not fetched from the network. Download the file, look at it, "
                            "and give its path.")
    if target == "-":
        yield from _documents(stdin.read(LARGEST + 1), "standard input")
        return
    path = Path(target)
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES and one.is_file())
        if not files:
            raise ManifestError(f"{target}: the folder has no file that ends in {', '.join(SUFFIXES)}.")
    else:
        files = [path]
    for file in files:
        try:
            yield from _documents(file.read_text(), str(file))
        except UnicodeDecodeError as problem:
            raise ManifestError(f"{file}: is not text in UTF-8 (byte {problem.start}).") from problem
        except OSError as problem:
            raise ManifestError(f"{file}: {problem.strerror}.") from problem


def _documents(text: str, source: str) -> Iterator[Manifest]:
    if len(text) > LARGEST:
        raise ManifestError(f"{source}: is larger than {LARGEST >> 20} MB.")
    try:
        for number, document in enumerate(yaml.load_all(text, Loader=_Loader), start=1):
            if document is None:
                continue
            where = source if number == 1 else f"{source}, document {number}"
            yield from _objects(document, where)
    except yaml.YAMLError as problem:
        raise ManifestError(_told(problem, source)) from problem


def _objects(document: object, where: str) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        raise ManifestError(f"{where}: is not an object; expected 'apiVersion:', 'kind:' and 'metadata:' at the top.")
    missing = [name for name in ("apiVersion", "kind") if not isinstance(document.get(name), str)]
    if missing:
        raise ManifestError(f"{where}: has no '{missing[0]}'. A TFJob starts with 'apiVersion: kubeflow.org/v1' and "
                            "'kind: TFJob'.")
    if document["kind"] == "List":
        for item in document.get("items") or ():
            yield from _objects(item, where)
        return
    about = document.get("metadata")
    if not isinstance(about, dict) or not (about.get("name") or about.get("generateName")):
        raise ManifestError(f"{where}: has no 'metadata.name'. Give the {document['kind']} a name.")
    yield Manifest(document, where)


def _told(problem: yaml.YAMLError, source: str) -> str:
    mark = getattr(problem, "problem_mark", None)
    what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
    place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
    hint = " YAML is indented with spaces, not tabs." if "tab" in what or "\\t" in what else ""
    return f"{place}: {what}.{hint}"
