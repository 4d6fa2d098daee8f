"""Code on its way to a cluster: a folder, or a script with the modules beside it, as ConfigMaps.

An archive in ConfigMaps needs nothing but the Kubernetes API: no registry, no image build, no shared disk, and it is
the same on a laptop and on a real cluster. What it cannot do is carry data; the limit says so early and by name. A
script alone takes along only the modules that it imports: whoever runs `~/train.py` does not mean all of their home.

The archive is a line with the lengths of name and content before each file, compressed as a whole: every replica
unpacks it before it begins, and to import a reader of zip or tar takes longer than Python's own start.
"""

import ast
import base64
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

from trainmaster.api.meta import Object
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.submit import FOR_JOB

MOST_FILES = 5_000
MOST_BYTES = 64 << 20            # as they are
MOST_PACKED = 8 << 20            # as they are sent: a dozen objects
PART = 768 << 10                 # of one ConfigMap, which may hold a megabyte
NEVER_SENT = frozenset({".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache",
                        ".ruff_cache", "node_modules"})
CODE = "trainmaster.dev/code"    # label of a ConfigMap with a part of an archive: its digest

Files = Mapping[str, bytes]


class ScriptError(ManifestError):
    """A script or folder cannot be run: which, why, what to do."""


class BadOption(ScriptError):
    """Something that was said about how it is to run: an argument in Python, a flag for those who type."""

    def __init__(self, option: str, why: str, value: object = None) -> None:
        super().__init__(f"{option}{'' if value is None else f'={str(value)!r}'}: {why}")
        self.option, self.why, self.value = option, why, value


@dataclass(frozen=True, slots=True)
class Parcel:
    """An archive, addressed by what it contains."""

    digest: str
    archive: bytes
    files: tuple[str, ...]

    def parts(self) -> list[bytes]:
        return [self.archive[start:start + PART] for start in range(0, len(self.archive), PART)]


def packed(files: Files, source: str) -> Parcel:
    """The same files always give the same parcel. Raises ScriptError if it is too large."""
    content = zlib.compress(b"".join(_framed(name, files[name]) for name in sorted(files)))
    if len(content) > MOST_PACKED:
        raise ScriptError(f"{source}: its code is {len(content) / (1 << 20):.1f} MB when packed, more than the "
                          f"{MOST_PACKED >> 20} MB that can be sent. {_largest(files)}")
    return Parcel(hashlib.sha256(content).hexdigest(), content, tuple(sorted(files)))


def _framed(name: str, content: bytes) -> bytes:
    written = name.encode(errors="surrogateescape")
    return b"%d %d\n%b%b" % (len(written), len(content), written, content)


def config_maps(parcel: Parcel, job: str) -> list[Object]:
    """The parts as objects. Named after job and content: another content is another object, and no job waits for one
    that goes away with another job."""
    parts = parcel.parts()
    return [
        {
            "apiVersion": "v1", "kind": "ConfigMap", "immutable": True,
            "metadata": {"name": f"{job}-code-{parcel.digest[:12]}-{number}",
                         "labels": {FOR_JOB: job, CODE: parcel.digest[:12]}},
            "binaryData": {f"part-{number:03}": base64.b64encode(part).decode()},
        }
        for number, part in enumerate(parts)
    ]


def of_folder(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but what .gitignore leaves out. Raises ScriptError."""
    top = folder.resolve()
    return _read(top, _walked(top, _rules_above(top)), str(folder))


def of_script(script: Path) -> dict[str, bytes]:
    """A script and the modules beside it that it imports, and those that they import. Raises ScriptError."""
    folder = script.parent.resolve()
    rules = _rules_above(folder)
    found: dict[str, bytes] = {script.name: _content(script)}
    waiting = [script.name]
    while waiting:
        name = waiting.pop()
        if not name.endswith(".py"):
            continue
        for module in imports(found[name].decode(errors="replace"), str(folder / name)):
            new = _read(folder, _module(folder, module, rules), str(script))
            waiting += [path for path in new if path not in found]
            found |= new
    return found


def imports(text: str, source: str) -> list[str]:
    """The top names of what a script imports, in order. Raises ScriptError where it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as problem:
        line = f", line {problem.lineno}" if isinstance(problem, SyntaxError) and problem.lineno else ""
        raise ScriptError(f"{source}{line}: is not Python that can run: {problem.args[0]}.") from problem
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name.partition(".")[0], node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.setdefault(node.module.partition(".")[0], node.lineno)
    return sorted(found, key=lambda name: found[name])


def _module(folder: Path, name: str, rules: "_Rules") -> Iterator[Path]:
    if (file := folder / f"{name}.py").is_file():
        yield file
    elif (package := folder / name).is_dir() and any(package.glob("*.py")):
        yield from _walked(package, rules)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The .gitignore files that have a say, outermost first, each with the folder that it is about."""

    known: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    def below(self, *folders: Path) -> "_Rules":
        rules = list(self.known)
        for folder in folders:
            file = folder / ".gitignore"
            if file.is_file() and all(folder != place for place, _ in rules):
                rules.append((folder, GitIgnoreSpec.from_lines(file.read_text(errors="replace").splitlines())))
        return _Rules(tuple(rules))

    def ignore(self, path: Path, *, folder: bool) -> bool:
        """The innermost file that says anything is right."""
        for place, spec in reversed(self.known):
            inside = PurePosixPath(path.relative_to(place)).as_posix() + ("/" if folder else "")
            said = spec.check_file(inside).include
            if said is not None:
                return said
        return False


def _rules_above(folder: Path) -> _Rules:
    """From the root of the repository that the folder is in, if it is in one, down to the folder."""
    above = [folder, *folder.parents]
    root = next((number for number, place in enumerate(above) if (place / ".git").exists()), 0)
    return _Rules().below(*reversed(above[:root + 1]))


def _walked(folder: Path, above: _Rules) -> Iterator[Path]:
    rules_of = {folder: above}
    for here, folders, names in os.walk(folder):
        place = Path(here)
        rules = rules_of.pop(place).below(place)
        folders[:] = sorted(
            name for name in folders
            if name not in NEVER_SENT and not (place / name).is_symlink()
            and not (place / name / "pyvenv.cfg").exists() and not rules.ignore(place / name, folder=True)
        )
        rules_of |= dict.fromkeys((place / name for name in folders), rules)
        for name in sorted(names):
            path = place / name
            if not name.endswith(".pyc") and path.is_file() and not rules.ignore(path, folder=False):
                yield path


def _read(folder: Path, paths: Iterable[Path], source: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    for path in paths:
        content = found[path.relative_to(folder).as_posix()] = _content(path)
        total += len(content)
        if total > MOST_BYTES or len(found) > MOST_FILES:
            what = f"more than {MOST_BYTES >> 20} MB" if total > MOST_BYTES else f"more than {MOST_FILES} files"
            raise ScriptError(f"{source}: is {what}, too much to send as code. {_largest(found)}")
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise ScriptError(f"{path}: {problem.strerror}.") from problem


def _largest(files: Files) -> str:
    three = sorted(files, key=lambda name: len(files[name]), reverse=True)[:3]
    told = ", ".join(f"{name} ({len(files[name]) / (1 << 20):.1f} MB)" for name in three)
    return f"The largest: {told}. Leave data out with a .gitignore, and mount or download it in the job."
