"""What `run` is given besides manifests: a script or a folder of code, and the options that say how it is to run."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from trainmaster.sdk import code, launches
from trainmaster.sdk.embedded import home
from trainmaster.sdk.launches import Launch
from trainmaster.sdk.manifests import MAIN, SCRIPTS, Manifest
from trainmaster.sdk.parcels import BadOption, ScriptError
from trainmaster.sdk.session import some

FLAGS = {"servers": "ps", "environment": "env"}      # of the options that are typed otherwise than they are called


@dataclass(frozen=True, slots=True)
class Options:
    """How a script is to run, as it was typed; None and () are what was not said."""

    framework: str | None = None
    workers: int | None = None
    servers: int | None = None
    gpus: int | None = None
    environment: tuple[str, ...] = ()
    queue: str | None = None
    priority: str | None = None
    name: str | None = None
    image: str | None = None
    requirements: str | None = None
    output: str | None = None
    arguments: tuple[str, ...] = ()

    @property
    def given(self) -> list[str]:
        """The options that make no sense with a manifest."""
        said = [name for name in self.__slots__ if getattr(self, name)]
        return ["arguments after --" if name == "arguments" else f"--{FLAGS.get(name, name)}" for name in said]


def meant(targets: Sequence[str], options: Options) -> Path | None:
    """The script or folder of code that is meant, or None for manifests. Raises ScriptError for a mixture."""
    paths = [Path(target) for target in targets]
    told = bool(options.given)
    scripts = [path for path in paths if path.suffix in SCRIPTS or (path.is_dir() and code.is_code(path, told=told))]
    if scripts and len(paths) > 1:
        raise ScriptError(f"{scripts[0]}: one script or folder of code at a time; start another `run` for the rest.")
    if not scripts and options.given:
        raise ScriptError(f"{options.given[0]}: is for scripts; {targets[0]} is not one. A manifest says by itself how "
                          "it is to run.")
    if scripts and not scripts[0].exists():
        raise ScriptError(f"{scripts[0]}: No such file or directory.{_nearly(scripts[0])}")
    return scripts[0] if scripts else None


def _nearly(missing: Path) -> str:
    """What is there and may be meant."""
    there = [path.name for path in missing.parent.glob("*") if path.suffix in SCRIPTS]
    close = get_close_matches(missing.name, there, 1)
    return f" Did you mean {missing.parent / close[0]}?" if close else ""


def passed_over(targets: Sequence[str]) -> list[str]:
    """That a folder of manifests was meant by a target although there is code in it, which is easily overlooked."""
    return [f"{target} has manifests and code ({some(names, 3)}): runs the manifests; to run the code, name it: "
            f"trainmaster run {Path(target) / names[0]}" for target in targets if (names := _code_of(Path(target)))]


def _code_of(folder: Path) -> list[str]:
    """The scripts of a folder, the one that it would be started by first."""
    there = [path.name for path in folder.iterdir() if path.suffix in SCRIPTS] if folder.is_dir() else []
    return sorted(there, key=lambda name: (MAIN.index(name) if name in MAIN else len(MAIN), name))


@dataclass(frozen=True, slots=True)
class Script:
    """A launch, and what the person should be told about it."""

    launch: Launch
    files: Mapping[str, bytes]
    said: tuple[str, ...]

    def manifests(self) -> list[Manifest]:
        """Raises ScriptError."""
        with _as_typed():
            return [Manifest(thing, self.launch.script) for thing in launches.objects(self.launch)]

    def left(self) -> list[str]:
        """Leave in the folder for the output what the replicas wrote, without the code that was sent to them."""
        if not self.launch.output:
            return []
        places = sorted(place for place in Path(self.launch.output).iterdir() if place.is_dir())
        for place in places:
            _tidy(place, self.files)
        wrote = [place.name for place in places if any(place.iterdir())]
        return [f"What they wrote is in {self.launch.output}: {', '.join(wrote)}." if wrote else
                f"They left nothing in {self.launch.output}."]


def read(target: Path, options: Options, environment: Mapping[str, str] = os.environ, *,
         embedded: bool = True) -> Script:
    """The launch that was asked for, on the embedded cluster or another. Raises ScriptError."""
    how: code.How = {
        "name": options.name or "", "framework": options.framework or "", "workers": options.workers or 1,
        "servers": options.servers or 0, "gpus": options.gpus or 0, "args": options.arguments,
        "env": _environment(options.environment, environment), "queue": options.queue or "",
        "priority": options.priority or "", "image": options.image or "", "requirements": options.requirements or "",
        "output": options.output or "",
    }
    with _as_typed():
        sent, launch = code.planned(target, how, home(environment) if embedded else None)
    size = len(launch.parcel.archive)
    said = [f"sending {_files(launch.parcel.files, sent.script)}, {size / 1024:.1f} KB"]
    if options.framework is None:
        said.append(_guess(sent.script, launch.framework, sent.imports))
    return Script(launch, sent.files, tuple(said))


@contextmanager
def _as_typed() -> Iterator[None]:
    """What is wrong with an option names it as it is typed."""
    try:
        yield
    except BadOption as problem:
        flag = f"--{FLAGS.get(problem.option, problem.option)}{'' if problem.value is None else f' {problem.value}'}"
        raise ScriptError(f"{flag}: {problem.why}") from problem


def _files(names: Sequence[str], script: str) -> str:
    more = len(names) - 1
    return script if not more else f"{script} and {more} file{'s' if more > 1 else ''} with it"


def _guess(script: str, framework: str, imports: Sequence[str]) -> str:
    profile = launches.PROFILES[framework]
    why = next((name for name in imports if name in profile.modules), "")
    if not why:
        return (f"{script} imports no framework that is known here: plain Python, as a {profile.kind.kind}; RANK, "
                "WORLD_SIZE and MASTER_ADDR say who is who (--framework says otherwise)")
    return f"{script} imports {why}: runs as a {profile.kind.kind} (--framework says otherwise)"


def _environment(given: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """NAME=VALUE, or NAME for what it is here."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or (not equals and name not in own):
            raise ScriptError(f"--env {text}: write NAME=VALUE, or the NAME of a variable that is set here.")
        found[name] = value if equals else own[name]
    return found


def _tidy(place: Path, sent: Mapping[str, bytes]) -> None:
    for name, content in sent.items():
        copy = place / name
        if copy.is_file() and not copy.is_symlink() and copy.read_bytes() == content:
            copy.unlink()
    for caches in list(place.rglob("__pycache__")):
        shutil.rmtree(caches, ignore_errors=True)
    for folder in sorted({place / Path(name).parent for name in sent}, key=lambda path: len(path.parts), reverse=True):
        if folder != place and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
