"""How an image name becomes an environment on this machine.

There is no container engine here: an image is a name that the catalog explains, as packages in an environment, an
entrypoint and files. An interpreter of this machine that already has the packages is preferred; else they are installed
once into a virtual environment that all pods share. A name that nobody explains runs its command in the host's own
environment, with a warning.
"""

import asyncio
import fcntl
import functools
import hashlib
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import yaml

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = Path(__file__).parent / "programs"
LARGE_MEGABYTES = 10      # a download below this is over before one has read about it
COMPLETE = ".complete"   # written last: an environment without it was interrupted and is made anew


class ImageError(Exception):
    """The image cannot be had. `reason` is the word for the waiting container: ErrImagePull, InvalidImageName."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Image:
    """What a container of this image finds."""

    name: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    files: Mapping[str, Path] = field(default_factory=dict)   # path in the pod -> file of the host, shown read-only
    visible: tuple[Path, ...] = ()    # host directories that must be seen at their own path although homes are hidden
    warning: str = ""                 # said as a Warning event when a container is made from it


class Images(Protocol):
    """Where the node gets images from."""

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        """Make the image usable, installing what it needs; `say` gets progress. Raises ImageError."""
        ...


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the catalog; catalog.yaml says what the fields mean."""

    names: tuple[str, ...]
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    directory: str = "/"
    environment: dict[str, str] = {}
    files: dict[str, str] = {}


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    images: tuple[Entry, ...]


def shipped() -> tuple[Entry, ...]:
    """The entries that come with Trainmaster."""
    return entries((Path(__file__).parent / "catalog.yaml").read_text())


def entries(text: str) -> tuple[Entry, ...]:
    """The entries of a catalog document. Raises msgspec.ValidationError, which names the field, for a bad one."""
    parsed: Any = yaml.safe_load(text)
    return msgspec.convert(parsed, _Document).images


def repository(image: str) -> str:
    """The name without registry defaults, tag and digest: `docker.io/library/python:3.11` and `python` are the same."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = head + slash + last.partition(":")[0]
    return name.removeprefix("docker.io/").removeprefix("library/")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of this machine: its program, and the directories it needs to see."""

    program: Path
    prefixes: tuple[Path, ...]

    @property
    def search_path(self) -> str:
        return f"{self.program.parent}:{SYSTEM_PATH}"


class Catalog:
    """Images by the catalog. Environments are made below `envs`, once for all who need the same packages."""

    def __init__(self, envs: Path, known: Sequence[Entry], interpreters: Sequence[Path] = ()) -> None:
        self._envs = envs
        self._known = {repository(name): entry for entry in known for name in entry.names}
        self._interpreters = tuple(interpreters) or host_interpreters()
        self._prepared: dict[tuple[tuple[str, ...], tuple[str, ...]], Interpreter] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        if not name or re.search(r"\s|[<>]", name):
            raise ImageError(
                "InvalidImageName",
                f"'{name}' is not an image name. Write the name of a training image, such as "
                "'kubeflow/tf-dist-mnist-test:1.0'.",
            )
        entry = self._known.get(repository(name))
        if entry is None:
            return _host_image(name)
        python = await self._interpreter_for(entry, say)
        return Image(
            name=name, entrypoint=entry.entrypoint, command=entry.command, directory=entry.directory,
            environment={"PATH": python.search_path, **entry.environment},
            files={path: PROGRAMS / program for path, program in entry.files.items()},
            visible=python.prefixes,
        )

    async def _interpreter_for(self, entry: Entry, say: Callable[[str], None]) -> Interpreter:
        wanted = (entry.packages, entry.modules)
        async with self._locks.setdefault(environment_name(entry.packages), asyncio.Lock()):
            if wanted not in self._prepared:
                self._prepared[wanted] = await self._find(entry) or await self._install(entry, say)
            return self._prepared[wanted]

    async def _find(self, entry: Entry) -> Interpreter | None:
        if not entry.modules:
            return own_interpreter() if not entry.packages else None
        for program in self._interpreters:
            if (found := await _having(program, entry.modules)) is not None:
                return found
        return None

    async def _install(self, entry: Entry, say: Callable[[str], None]) -> Interpreter:
        folder = self._envs / environment_name(entry.packages)
        async with _alone(folder.with_suffix(".lock")):
            if not (folder / COMPLETE).exists():
                say(f"installing {', '.join(entry.packages)} into a new environment, once for all jobs")
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                await _make_environment(folder, entry.packages, say)
                (folder / COMPLETE).touch()
        return Interpreter(folder / "bin" / "python", (folder, Path(sys.base_prefix).resolve()))


def environment_name(packages: Sequence[str]) -> str:
    """Environments are addressed by what they hold: the packages and the Python they are for."""
    content = "\n".join([sys.version, *sorted(packages)])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@functools.cache
def host_interpreters() -> tuple[Path, ...]:
    """The Pythons worth asking whether they have a framework: ours and the one a user would get by typing python3."""
    typed = shutil.which("python3")
    return tuple(dict.fromkeys(Path(program) for program in (sys.executable, typed) if program))


def own_interpreter() -> Interpreter:
    base = Path(sys.base_prefix).resolve()
    return Interpreter(base / "bin" / "python3", (base,))


def _host_image(name: str) -> Image:
    python = own_interpreter()
    return Image(
        name=name, environment={"PATH": python.search_path}, visible=python.prefixes,
        warning=f"no catalog entry explains image '{name}': its command runs with the programs of this machine",
    )


_PROBE = """
import sys
from importlib.util import find_spec
if sys.version_info >= (3, 8) and all(find_spec(name) for name in sys.argv[1:]):
    print(sys.executable, sys.prefix, sys.base_prefix, sep="\\n")
"""


async def _having(program: Path, modules: Sequence[str]) -> Interpreter | None:
    """The interpreter, if it has these modules. Asks without importing them: TensorFlow takes seconds."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, "-I", "-c", _PROBE, *modules,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    said, _ = await process.communicate()
    lines = said.decode().splitlines()
    if process.returncode != 0 or len(lines) != 3:
        return None
    prefixes = dict.fromkeys(Path(line) for line in (lines[1], os.path.realpath(lines[1]), os.path.realpath(lines[2])))
    return Interpreter(Path(lines[0]), tuple(prefixes))


async def _make_environment(folder: Path, packages: Sequence[str], say: Callable[[str], None]) -> None:
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    await _step([str(base if base.exists() else sys.executable), "-m", "venv", str(folder)], say)
    python = [str(folder / "bin" / "python"), "-m"]
    install = ["pip", "install", "--no-input", "--disable-pip-version-check", "--no-compile"]
    await _step([*python, *install, *packages], say)
    # Once for all, on all cores: pip compiles on one, and pods cannot, since they see the environment read-only.
    await _step([*python, "compileall", "-q", "-j", "0", str(folder / "lib")], say, may_fail=True)


def worth_saying(line: str) -> str | None:
    """Of all that pip prints, what a person waits for: large downloads, and the moment when all are there."""
    download = re.match(r"Downloading (\S+?)-\S+ \((\d+)(?:\.\d+)? MB\)", line)
    if download is not None and int(download[2]) >= LARGE_MEGABYTES:
        return f"downloading {download[1]}, {download[2]} MB"
    if line.startswith("Installing collected packages: "):
        return f"installing {line.count(',') + 1} packages"
    return None


async def _step(command: Sequence[str], say: Callable[[str], None], *, may_fail: bool = False) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    tail: list[str] = []
    try:
        async for raw in process.stdout:
            line = raw.decode(errors="replace").strip()
            tail = [*tail[-9:], line]
            if (progress := worth_saying(line)) is not None:
                say(progress)
        if await process.wait() != 0 and not may_fail:
            raise ImageError("ErrImagePull", "the environment could not be made: " + " / ".join(tail[-4:]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _alone(lock: Path) -> AsyncIterator[None]:
    """Two clusters that share environments must not both install one: the second waits for the first."""
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        await asyncio.to_thread(fcntl.flock, handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
