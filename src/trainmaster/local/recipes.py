"""Environments for `run --requirements`: an image name that stands for a list of packages.

The name is made of what the list says, so the same list is the same environment, installed once, whoever asks and
however the file was called. The list is kept in the home of the cluster, where the node finds it by the name.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import yaml

from trainmaster.cluster.kubelet.catalog import Catalog, Document, Entry, known, read, shipped
from trainmaster.cluster.kubelet.images import Image, ImageError, Images
from trainmaster.local.home import Home

PREFIX = "trainmaster.dev/environment-"
_NESTED = re.compile(r"^\s*(?:-r|--requirement)[ =]\s*(\S+)")
_EDITABLE = re.compile(r"^\s*(?:-e|--editable)\b")
DEEPEST = 5


class BadRequirements(Exception):
    """The list cannot be used: which file, which line, why."""


def text_of(path: Path, depth: int = 0) -> str:
    """The list, with the lists that it names put in their places. Raises BadRequirements."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise BadRequirements(f"{path}: {getattr(problem, 'strerror', None) or 'is not text'}.") from problem
    found = []
    for number, line in enumerate(lines, start=1):
        if _EDITABLE.match(line):
            raise BadRequirements(f"{path}, line {number}: '{line.strip()}' is a folder of yours, which pods do not "
                                  "see. Put the code into the folder that you run instead.")
        if (nested := _NESTED.match(line)) is None:
            found.append(line)
        elif depth >= DEEPEST:
            raise BadRequirements(f"{path}, line {number}: lists name each other in a circle.")
        else:
            found.append(text_of(path.parent / nested[1], depth + 1))
    return "\n".join(found)


def written(home: Home, requirements: str, image: str) -> str:
    """The image name for these requirements on top of those of another image of the catalog."""
    catalog = known([shipped()])
    base = catalog.entry(image) or Entry((image,))
    below = catalog.packages(base)
    content = "\n".join([*below.packages, *below.bare, requirements])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    place = _place(home)
    place.mkdir(exist_ok=True, mode=0o700)
    listed = place / f"{digest}.txt"
    listed.write_text(requirements + "\n")
    name = f"{PREFIX}{digest}"
    packages = [*base.packages, *(_plain(requirements) or ("-r", str(listed)))]
    entry = {"names": [name], "python": base.python, "packages": packages, "environment": dict(base.environment)}
    (place / f"{digest}.yaml").write_text(yaml.safe_dump({"images": [entry]}))
    return name


def _plain(requirements: str) -> list[str]:
    """The packages, if there is nothing else in the list: people are told what is installed, not from which file."""
    lines = [line.partition(" #")[0].strip() for line in requirements.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    return [] if any(line.startswith("-") or "--" in line or line.endswith("\\") for line in found) else found


class WithRecipes:
    """The images of a catalog, and those that were written here."""

    def __init__(self, home: Home, others: Images) -> None:
        self._home, self._others = home, others
        self._known: dict[str, Catalog] = {}

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        """Make the image usable. Raises ImageError."""
        if not name.startswith(PREFIX):
            return await self._others.prepare(name, say)
        if name not in self._known:
            try:
                text = (_place(self._home) / f"{name.removeprefix(PREFIX)}.yaml").read_text()
            except OSError as problem:
                raise ImageError("ErrImagePull", f"'{name}' stands for a list of packages that this machine does not "
                                 "have. Run the script with --requirements here.") from problem
            self._known[name] = Catalog(self._home.envs, Document(read(text).images, shipped().pythons))
        return await self._known[name].prepare(name, say)


def _place(home: Home) -> Path:
    return home.path / "recipes"
