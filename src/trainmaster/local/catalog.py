"""The image catalog of this machine as a person reads it, and changes it.

What comes with Trainmaster is never written; a person's own entries are in a file of the home, in the same format.
"""

import hashlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import yaml

from trainmaster.cluster.kubelet import imageroots
from trainmaster.cluster.kubelet.catalog import BadCatalog, Document, Entry, Known, known, read, shipped
from trainmaster.cluster.kubelet.imageroots import BadArchive, Config
from trainmaster.cluster.kubelet.images import ImageError, check_name
from trainmaster.local import files
from trainmaster.local.home import Home
from trainmaster.sdk.requirements import BadRequirements, text_of

_HEAD = "# Images of this machine; written by 'trainmaster images add', and may be edited.\n"


class Refused(Exception):
    """The entry cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One image as `trainmaster images` lists it."""

    name: str
    environment: str
    runs: str
    note: str
    yours: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What `trainmaster images add` was told. None is what was not said."""

    name: str
    python: str = ""
    requirements: tuple[str, ...] = ()
    rootfs: Path | None = None
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None
    files: Mapping[str, Path] = field(default_factory=dict)      # path in the pod -> what is shown there


def listed(home: Home) -> list[Shown]:
    """Every image that is explained, by name. Raises Refused for a file of the user that cannot be read."""
    own = users(home)
    yours = known([own]).entries
    catalog = known([shipped(), own])
    return [
        Shown(name, _environment(catalog, entry), " ".join((*entry.entrypoint, *entry.command)), entry.note,
              name in yours)
        for name, entry in sorted(catalog.entries.items())
    ]


def users(home: Home) -> Document:
    if not home.images.exists():
        return Document()
    try:
        return read(home.images.read_text())
    except (BadCatalog, OSError, UnicodeDecodeError) as error:
        raise Refused(f"{home.images} cannot be read: {error}. Correct or remove it.") from error


def add(home: Home, wish: Wish) -> Entry:
    """Add an entry to the user's file, in the place of one with that name. Raises Refused."""
    try:
        check_name(wish.name)
    except ImageError as error:
        raise Refused(str(error)) from error
    before = users(home)
    entry = _entry(home, wish)
    others = tuple(one for one in before.images if wish.name not in one.names)
    _write(home, Document((*others, entry), before.pythons))
    return entry


def forget(home: Home, name: str) -> None:
    """Remove the user's entry with this name. Raises Refused if there is none."""
    before = users(home)
    kept = tuple(one for one in before.images if name not in one.names)
    if len(kept) == len(before.images):
        raise Refused(f"{home.images} has no image named '{name}'")
    _write(home, Document(kept, before.pythons))


def _entry(home: Home, wish: Wish) -> Entry:
    if wish.rootfs is not None and (wish.python or wish.requirements):
        raise Refused("--rootfs brings a Python of its own: leave out --python and --python-requirements")
    if wish.python and wish.python not in shipped().pythons:
        raise Refused(f"--python '{wish.python}' is not one of {', '.join(sorted(shipped().pythons))}")
    if wish.directory is not None and not wish.directory.startswith("/"):
        raise Refused(f"--workdir '{wish.directory}' must begin with /")
    for target, source in wish.files.items():
        if not source.exists():
            raise Refused(f"--file: there is no {source}")
        if not target.startswith("/"):
            raise Refused(f"--file: {target} is a path in the pod, and must begin with /")
    config, root, numbers = Config(), "", (0, 0)
    if wish.rootfs is not None:
        try:
            root, config = _root(home, wish.rootfs)
            numbers = imageroots.user_of(Path(root), config.user)
        except (BadArchive, OSError) as error:
            raise Refused(str(error)) from error
    # As docker run: another entrypoint makes the image's own arguments meaningless.
    command = config.command if wish.entrypoint is None else ()
    return Entry(
        names=(wish.name,), python=wish.python, packages=wish.requirements, rootfs=root,
        entrypoint=config.entrypoint if wish.entrypoint is None else wish.entrypoint,
        command=command if wish.command is None else wish.command,
        directory=wish.directory or config.directory, environment={**config.environment, **wish.environment},
        user=numbers[0], group=numbers[1], files={path: str(source.absolute()) for path, source in wish.files.items()},
    )


def requirements(words: Sequence[str], directory: Path) -> tuple[str, ...]:
    """Packages, each given as pip would take it or in a requirements file. Raises Refused."""
    found: list[str] = []
    for word in words:
        path = directory / word
        if path.is_file() and path.suffix in (".txt", ".in", ".lock"):
            try:
                lines = [line.partition(" #")[0].strip() for line in text_of(path).splitlines()]
            except BadRequirements as error:
                raise Refused(str(error)) from error
            chosen = [line for line in lines if line and not line.startswith("#")]
            if bad := next((line for line in chosen if line.startswith("-")), None):
                raise Refused(f"{path}: '{bad}' is an option of pip, and only packages can be listed here")
            found += chosen
        elif word.endswith((".txt", ".in", ".lock")):
            raise Refused(f"--python-requirements: there is no file {path}")
        else:
            found.append(word)
    return tuple(found)


def _root(home: Home, source: Path) -> tuple[str, Config]:
    if source.is_dir():
        _check_root(source, source)
        return str(source.absolute()), Config()
    if not source.exists():
        raise Refused(f"--rootfs: there is no {source}")
    target = home.roots / _digest(source)
    if target.exists():                      # the same archive may be added anew, after it was changed by hand
        shutil.rmtree(target)
    home.roots.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = target.with_name(target.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        config = imageroots.unpack(source, new)
        _check_root(new, source)
        new.rename(target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return str(target), config


def _check_root(root: Path, source: Path) -> None:
    if not any((root / name).exists() for name in ("bin", "usr", "etc")):
        raise Refused(f"{source} has neither bin, usr nor etc: it is not a root file system")


def _digest(source: Path) -> str:
    with source.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _write(home: Home, document: Document) -> None:
    home.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = _HEAD + yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True)
    files.write(home.images, text.encode())


def _environment(catalog: Known, entry: Entry) -> str:
    if entry.rootfs:
        return entry.rootfs
    python = catalog.pythons.get(entry.python)
    version = (python.version or entry.python) if python else ""
    named = ", ".join(part for part in (version, *entry.packages) if part)
    return named or f"Python {sys.version_info.major}.{sys.version_info.minor} of this machine"
