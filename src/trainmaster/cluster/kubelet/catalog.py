"""The catalog: what an image name means on this machine.

There is no container engine here: an image is a name that an entry explains, as packages of a Python, an entrypoint and
files, or as a root file system. Entries come with Trainmaster (catalog.yaml) and from the user's own file, which wins.
A name that nobody explains runs its command in the host's own environment, with a warning.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from trainmaster.cluster.kubelet.images import PROGRAMS, SYSTEM_PATH, Image, ImageError, check_name, repository, tag
from trainmaster.cluster.kubelet.pythons import Interpreter, Packages, Pythons, own_interpreter


class Python(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Packages under a name, so that several images share one environment; catalog.yaml says what the fields mean."""

    packages: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    finish: str = ""
    modules: tuple[str, ...] = ()
    version: str = ""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One image of the catalog; catalog.yaml says what the fields mean."""

    names: tuple[str, ...]
    python: str = ""
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    rootfs: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    directory: str = "/"
    environment: dict[str, str] = {}
    user: int = 0
    group: int = 0
    files: dict[str, str] = {}
    note: str = ""


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A catalog file."""

    images: tuple[Entry, ...] = ()
    pythons: dict[str, Python] = {}


class BadCatalog(Exception):
    """A catalog file says something that means nothing; the message names the field."""


def read(text: str) -> Document:
    """A catalog document. Raises BadCatalog."""
    try:
        parsed: Any = yaml.safe_load(text)
        return msgspec.convert(parsed or {}, Document)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise BadCatalog(str(error)) from error


def shipped() -> Document:
    """The entries that come with Trainmaster."""
    return read((Path(__file__).parent / "catalog.yaml").read_text())


@dataclass(frozen=True, slots=True)
class Known:
    """All entries by name, the user's over ours."""

    entries: Mapping[str, Entry]
    pythons: Mapping[str, Python]

    def entry(self, image: str) -> Entry | None:
        """The user may explain one tag of an image (`mine/net:2`) or all of them (`mine/net`)."""
        bare = repository(image)
        return self.entries.get(f"{bare}:{tag(image) or 'latest'}") or self.entries.get(bare)

    def packages(self, entry: Entry) -> Packages:
        """Those of the Python it names and its own. Raises ImageError for a Python that is not there."""
        if entry.python and entry.python not in self.pythons:
            there = ", ".join(sorted(self.pythons))
            raise ImageError("ErrImagePull", f"the catalog has no Python named '{entry.python}', only {there}")
        base = self.pythons.get(entry.python, Python())
        modules = base.modules if not entry.packages else entry.modules
        return Packages((*base.packages, *entry.packages), base.bare, base.finish, modules)

    def substitute(self, image: str, entry: Entry) -> str:
        """What stands in for what. An image that says the same version in its tag is not worth a word about it."""
        version = self.pythons[entry.python].version if entry.python in self.pythons else ""
        other = f"it runs with {version} here" if version and not tag(image).startswith(version.split()[-1]) else ""
        return ", and ".join(part for part in (other, entry.note) if part)


def known(documents: Iterable[Document]) -> Known:
    """One catalog of several; a later document wins."""
    entries: dict[str, Entry] = {}
    pythons: dict[str, Python] = {}
    for document in documents:
        pythons |= document.pythons
        entries |= {_key(name): entry for entry in document.images for name in entry.names}
    return Known(entries, pythons)


def _key(name: str) -> str:
    return f"{repository(name)}:{tag(name)}" if tag(name) else repository(name)


class Catalog:
    """Images by the catalog."""

    def __init__(self, envs: Path, ours: Document, user_file: Path | None = None) -> None:
        self._envs, self._pythons = envs, Pythons(envs)
        self._ours = ours
        self._user_file = user_file

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        check_name(name)
        catalog = known([self._ours, self._users()])
        entry = catalog.entry(name)
        if entry is None:
            return _host_image(name, own_interpreter(self._envs))
        if entry.rootfs:
            return _own_root(name, entry)
        python = await self._pythons.having(catalog.packages(entry), say)
        return Image(
            name=name, entrypoint=entry.entrypoint, command=entry.command, directory=entry.directory,
            environment={"PATH": python.search_path, **entry.environment},
            files=_files(name, entry),
            visible=python.prefixes, user=entry.user, group=entry.group, note=catalog.substitute(name, entry),
        )

    def _users(self) -> Document:
        """Read each time, for it is short and may change while the cluster is up."""
        if self._user_file is None or not self._user_file.exists():
            return Document()
        try:
            return read(self._user_file.read_text())
        except (BadCatalog, OSError, UnicodeDecodeError) as error:
            raise ImageError(
                "ErrImagePull", f"the image catalog {self._user_file} cannot be read: {error}. Correct or remove it."
            ) from error


def _own_root(name: str, entry: Entry) -> Image:
    root = Path(entry.rootfs)
    if not root.is_dir():
        raise ImageError(
            "ErrImagePull",
            f"the root file system of image '{name}' is not there: {root} is no directory. "
            f"Add it anew with 'trainmaster images add {name} --rootfs …'.",
        )
    return Image(
        name=name, entrypoint=entry.entrypoint, command=entry.command, directory=entry.directory,
        environment={"PATH": SYSTEM_PATH, **entry.environment}, root=root, user=entry.user, group=entry.group,
        files=_files(name, entry), note=entry.note,
    )


def _files(name: str, entry: Entry) -> dict[str, Path]:
    found = {path: PROGRAMS / source for path, source in entry.files.items()}
    for source in found.values():
        if not source.exists():
            raise ImageError("ErrImagePull", f"image '{name}' shows {source}, which is not there any more")
    return found


def _host_image(name: str, python: Interpreter) -> Image:
    return Image(
        name=name, environment={"PATH": python.search_path}, visible=python.prefixes,
        warning=f"no catalog entry explains image '{name}': its command runs with the programs of this machine",
    )
