"""Packages that code needs beside those of its image: the list as pip reads it, and a name for it.

The embedded cluster installs such a list once for all that need the same: it is left in the home of the cluster, under
a name made of what it says, and the node finds it by that name (`local.recipes`). The name is an image's, so that it
goes wherever that of an image may. What the image below it has is not asked for here: only the node knows its catalog.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = "trainmaster.dev/environment-"
DEEPEST = 5
_NESTED = re.compile(r"^\s*(?:-r|--requirement)[ =]\s*(\S+)")
_EDITABLE = re.compile(r"^\s*(?:-e|--editable)\b")


class BadRequirements(Exception):
    """The list cannot be used: which file, which line, why."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Packages on top of those of an image."""

    image: str
    requirements: str


def text_of(given: str | Path | Sequence[str]) -> str:
    """The list, of a file or given as its lines, with the lists that it names put in their places.

    Raises BadRequirements.
    """
    if isinstance(given, str | Path):
        return _read(Path(given), 0)
    return "\n".join(_resolved(given, "the list", Path(), 0))


def written(home: Path, recipe: Recipe) -> str:
    """The image name that stands for it, once it is in the home of the cluster."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)      # of a cluster that was never up
    place = _place(home)
    place.mkdir(exist_ok=True, mode=0o700)
    content = json.dumps([recipe.image, recipe.requirements])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    _put(place / f"{digest}.json", content)
    return f"{PREFIX}{digest}"


def read(home: Path, name: str) -> Recipe | None:
    """What an image name stands for, None if that was not written here."""
    try:
        return Recipe(*json.loads((_place(home) / f"{name.removeprefix(PREFIX)}.json").read_text()))
    except OSError:
        return None


def kept(home: Path, requirements: str) -> Path:
    """The list as a file, for pip."""
    path = _place(home) / f"{hashlib.sha256(requirements.encode()).hexdigest()[:16]}.txt"
    _put(path, requirements + "\n")
    return path


def _put(path: Path, content: str) -> None:
    """Whole or not at all: others may write or read the same at this moment."""
    handle, beside = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(content)
    Path(beside).replace(path)


def _place(home: Path) -> Path:
    return home / "recipes"


def _read(path: Path, depth: int) -> str:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise BadRequirements(f"{path}: {getattr(problem, 'strerror', None) or 'is not text'}.") from problem
    return "\n".join(_resolved(lines, str(path), path.parent, depth))


def _resolved(lines: Iterable[str], source: str, folder: Path, depth: int) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if _EDITABLE.match(line):
            raise BadRequirements(f"{source}, line {number}: '{line.strip()}' is a folder of yours, which pods do not "
                                  "see. Put the code into the folder that you run instead.")
        if (nested := _NESTED.match(line)) is None:
            yield line
        elif depth >= DEEPEST:
            raise BadRequirements(f"{source}, line {number}: lists name each other in a circle.")
        else:
            yield _read(folder / nested[1], depth + 1)
