"""Pythons with the packages that an image stands for: one of this machine's, or an environment made on first use.

An interpreter of this machine that already has the packages is preferred; else they are installed once into a virtual
environment that all pods share.
"""

import asyncio
import fcntl
import functools
import hashlib
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainmaster.cluster.kubelet.images import PROGRAMS, SYSTEM_PATH, ImageError

LARGE_MEGABYTES = 10      # a download below this is over before one has read about it
COMPLETE = ".complete"   # written last: an environment without it was interrupted and is made anew
GPU = Path("/dev/nvidiactl")      # there if and only if NVIDIA's driver is loaded


@dataclass(frozen=True, slots=True)
class Packages:
    """What a Python must have."""

    packages: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()        # packages that are installed without what they ask for, unless there is a GPU
    finish: str = ""                  # program of ours that makes the environment usable after that
    modules: tuple[str, ...] = ()     # by which an interpreter is recognised that has all of it already

    def for_machine(self, *, gpu: bool) -> "Packages":
        """With a GPU, nothing is left out."""
        return Packages((*self.packages, *self.bare), modules=self.modules) if gpu else self


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of this machine: its program, and the directories it needs to see."""

    program: Path
    prefixes: tuple[Path, ...]
    links: Path | None = None      # a directory with programs that this machine has under another name

    @property
    def search_path(self) -> str:
        return ":".join(map(str, (self.program.parent, SYSTEM_PATH, *filter(None, [self.links]))))


class Pythons:
    """Gives interpreters. Environments are made below `envs`, once for all who need the same packages."""

    def __init__(self, envs: Path, interpreters: Sequence[Path] = ()) -> None:
        self._envs = envs
        self._interpreters = tuple(interpreters) or host_interpreters()
        self._prepared: dict[Packages, Interpreter] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def having(self, wanted: Packages, say: Callable[[str], None]) -> Interpreter:
        """An interpreter with these packages; `say` gets progress. Raises ImageError if they cannot be installed."""
        wanted = wanted.for_machine(gpu=GPU.exists())
        async with self._locks.setdefault(environment_name(wanted), asyncio.Lock()):
            if wanted not in self._prepared:
                self._prepared[wanted] = await self._find(wanted) or await self._install(wanted, say)
            return self._prepared[wanted]

    async def _find(self, wanted: Packages) -> Interpreter | None:
        if not wanted.modules:
            return None if wanted.packages or wanted.bare else own_interpreter(self._envs)
        for program in self._interpreters:
            if (found := await _having(program, wanted.modules)) is not None:
                return found
        return None

    async def _install(self, wanted: Packages, say: Callable[[str], None]) -> Interpreter:
        folder = self._envs / environment_name(wanted)
        async with _alone(folder.with_suffix(".lock")):
            if not (folder / COMPLETE).exists():
                names = ", ".join((*wanted.bare, *wanted.packages))
                say(f"installing {names} into a new environment, once for all jobs")
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                await _make_environment(folder, wanted, say)
                (folder / COMPLETE).touch()
        return Interpreter(folder / "bin" / "python", (folder, Path(sys.base_prefix).resolve()))


def environment_name(wanted: Packages) -> str:
    """Environments are addressed by what they hold: the packages and the Python they are for."""
    finish = (PROGRAMS / wanted.finish).read_text() if wanted.finish else ""
    content = "\n".join([sys.version, *sorted(wanted.packages), *sorted(wanted.bare), finish])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@functools.cache
def host_interpreters() -> tuple[Path, ...]:
    """The Pythons worth asking whether they have a framework: ours and the one a user would get by typing python3."""
    typed = shutil.which("python3")
    return tuple(dict.fromkeys(Path(program) for program in (sys.executable, typed) if program))


def own_interpreter(envs: Path) -> Interpreter:
    """The Python that runs us. Images of Python have a `python`; where the machine has a `python3` only, so do we."""
    base = Path(sys.base_prefix).resolve()
    program = base / "bin" / "python3"
    if (base / "bin" / "python").exists():
        return Interpreter(program, (base,))
    links = envs / "names"
    links.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (links / "python").symlink_to(program)
    return Interpreter(program, (base, links), links)


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


async def _make_environment(folder: Path, wanted: Packages, say: Callable[[str], None]) -> None:
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    await _step([str(base if base.exists() else sys.executable), "-m", "venv", str(folder)], say)
    python = [str(folder / "bin" / "python")]
    install = [*python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-compile"]
    if wanted.packages:
        await _step([*install, *wanted.packages], say)
    if wanted.bare:
        await _step([*install, "--no-deps", *wanted.bare], say)
    if wanted.finish:
        await _step([*python, str(PROGRAMS / wanted.finish)], say)
    # Once for all, on all cores: pip compiles on one, and pods cannot, since they see the environment read-only.
    await _step([*python, "-m", "compileall", "-q", "-j", "0", str(folder / "lib")], say, may_fail=True)


def worth_saying(line: str) -> str | None:
    """Of all that pip prints, what a person waits for: large downloads, and the moment when all are there."""
    download = re.match(r"Downloading (\S+?)-\S+ \((\d+)(?:\.\d+)? MB\)", line)
    if download is not None and int(download[2]) >= LARGE_MEGABYTES:
        return f"downloading {download[1]}, {download[2]} MB"
    if line.startswith("Installing collected packages: "):
        count = line.count(",") + 1
        return f"installing {count} packages" if count > 1 else None
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
