"""Manifests from files, folders and standard input, with the place of every document kept for error messages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import yaml

from trainmaster.api.meta import Object
from trainmaster.kube.errors import ApiError, NotFound
from trainmaster.sdk.errors import ManifestError

LARGEST = 4 << 20   # bytes of one file; an API server takes three megabytes for one object
SUFFIXES = (".yaml", ".yml", ".json")
SCRIPTS = (".py", ".sh")                          # what is code and no manifest
MAIN = ("__main__.py", "main.py", "train.py")     # what a folder of code is started by
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


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and where it was written."""

    thing: Object
    source: str
    node: yaml.Node | None = field(default=None, compare=False, repr=False)

    def place(self, path: str) -> str:
        """Where a field is written, for people."""
        line = self.line(path)
        return f"{self.source}, line {line}" if line else self.source

    def line(self, path: str) -> int:
        """The line of a field such as `spec.ports[0].name` or `data[key]`; of what is there of it if it is missing.

        0 if it is not known.
        """
        node, found = self.node, self.node.start_mark.line + 1 if self.node is not None else 0
        for part in _parts(path):
            pair = _child(node, part)
            if pair is None:
                break
            found, node = pair[0].start_mark.line + 1, pair[1]
        return found


def _parts(path: str) -> list[str]:
    """Names and indexes; what is in brackets may have dots."""
    return [inner or name for inner, name in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", path)]


def _child(node: yaml.Node | None, part: str) -> tuple[yaml.Node, yaml.Node] | None:
    """What has the line, and what goes on."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
        return node.value[int(part)], node.value[int(part)]
    return None


def files(target: str) -> list[str]:
    """What a target is made of: itself, or the manifests of a folder. Raises ManifestError for a folder without."""
    path = Path(target)
    if target == "-" or not path.is_dir():
        return [target]
    found = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES and one.is_file())
    if not found:
        raise ManifestError(f"{target}: the folder has no file that ends in {', '.join(SUFFIXES)}, and to be run as a "
                            "script it needs a main.py or a train.py.")
    return [str(file) for file in found]


def read(targets: Sequence[str], stdin: TextIO) -> list[Manifest]:
    """All objects of the targets, in order. Raises ManifestError."""
    found = [manifest for target in targets for manifest in _of_target(target, stdin)]
    if not found:
        raise ManifestError(_nothing(", ".join(targets)))
    return found


def parsed(text: str, source: str) -> list[Manifest]:
    """All objects of a text. Raises ManifestError."""
    found = list(_documents(text, source))
    if not found:
        raise ManifestError(_nothing(source))
    return found


def _nothing(source: str) -> str:
    return f"There is no object in {source}. A manifest begins with 'apiVersion:' and 'kind:'."


def refusal(manifest: Manifest, problem: ApiError) -> ManifestError:
    """What a cluster says against a manifest, with where it was written."""
    hint = ". Create the namespace first, or choose another with -n." if isinstance(problem, NotFound) else ""
    return ManifestError(f"{manifest.source}: {problem}{hint}")


def unknown_kind(manifest: Manifest, known: Sequence[tuple[str, str]]) -> str:
    """That a cluster has no such kind, and which one was meant. `known` are pairs of apiVersion and kind."""
    version, kind = manifest.thing["apiVersion"], manifest.thing["kind"]
    same = [f"'apiVersion: {v}', 'kind: {k}'" for v, k in known if k.lower() == kind.lower()]
    advice = f" Did you mean {same[0]}?" if same else " `trainmaster crds` lists the kinds of jobs."
    return f"{manifest.source}: this cluster has no kind '{kind}' in '{version}'.{advice}"


def _of_target(target: str, stdin: TextIO) -> Iterator[Manifest]:
    if "://" in target:
        raise ManifestError(f"{target}: manifests are not fetched from the network. Download the file, look at it, "
                            "and give its path.")
    if target == "-":
        yield from _documents(stdin.read(LARGEST + 1), "standard input")
        return
    for file in files(target):
        try:
            yield from _documents(Path(file).read_text(), file)
        except UnicodeDecodeError as problem:
            raise ManifestError(f"{file}: is not text in UTF-8 (byte {problem.start}).") from problem
        except OSError as problem:
            raise ManifestError(f"{file}: {problem.strerror}.") from problem


def _documents(text: str, source: str) -> Iterator[Manifest]:
    if len(text) > LARGEST:
        raise ManifestError(f"{source}: is larger than {LARGEST >> 20} MB.")
    try:
        for number, (node, document) in enumerate(_loaded(text), start=1):
            if document is None:
                continue
            where = source if number == 1 else f"{source}, document {number}"
            yield from objects(document, where, node)
    except yaml.YAMLError as problem:
        raise ManifestError(_told(problem, source, text)) from problem


def _loaded(text: str) -> Iterator[tuple[yaml.Node, object]]:
    """Each document as it is written and as what it means."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield node, loader.construct_document(node)
    finally:
        loader.dispose()


def objects(document: object, where: str, node: yaml.Node | None = None) -> Iterator[Manifest]:
    """What a document holds: one object, or those of a List. Raises ManifestError."""
    if not isinstance(document, dict):
        raise ManifestError(f"{where}{_line(node)}: is not an object; expected 'apiVersion:', 'kind:' and 'metadata:' "
                            "at the top.")
    missing = [name for name in ("apiVersion", "kind") if not isinstance(document.get(name), str)]
    if missing:
        raise ManifestError(f"{where}{_line(node)}: has no '{missing[0]}'. A TFJob starts with 'apiVersion: "
                            "kubeflow.org/v1' and 'kind: TFJob'.")
    if document["kind"] == "List":
        items = _child(node, "items")
        for number, item in enumerate(document.get("items") or ()):
            inner = _child(items[1], str(number)) if items is not None else None
            yield from objects(item, where, inner[1] if inner is not None else None)
        return
    about = document.get("metadata")
    if not isinstance(about, dict) or not (about.get("name") or about.get("generateName")):
        named = _child(node, "metadata")
        raise ManifestError(f"{where}{_line(named[1] if named else node)}: has no 'metadata.name'. Give the "
                            f"{document['kind']} a name.")
    yield Manifest(document, where, node)


def _line(node: yaml.Node | None) -> str:
    return f", line {node.start_mark.line + 1}" if node is not None else ""


# What the parser says, and what is nearly always behind it.
_HINTS = {
    "mapping values are not allowed": "Is a space missing after a colon above, or is this line indented too far?",
    "did not find expected key": "Its indentation does not fit that of the lines above.",
    "is written twice": "Keep one of them.",
    "unexpected end of stream": "A quote or a bracket is not closed.",
    "expected node content": "A value is missing, a bracket is open, or a value begins with a sign and needs quotes.",
}


def _told(problem: yaml.YAMLError, source: str, text: str) -> str:
    mark = getattr(problem, "problem_mark", None)
    what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
    place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in line[:len(line) - len(line.lstrip())]:
        hint = "YAML is indented with spaces, not tabs."
    else:
        hint = next((hint for said, hint in _HINTS.items() if said in what), "")
    return f"{place}: {what}.{f' {hint}' if hint else ''}"
