"""Code that is to run, from where it is written to the launch of a job: for `trainmaster run` as for `submit`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

from trainmaster.sdk import launches, parcels, requirements
from trainmaster.sdk.launches import Launch
from trainmaster.sdk.manifests import MAIN, SCRIPTS, SUFFIXES
from trainmaster.sdk.parcels import BadOption, ScriptError
from trainmaster.sdk.session import some

FUNCTION = "function.py"      # what the script is called that calls a function


class How(TypedDict, total=False):
    """How code is to run; all of it has a default. The words are those of `trainmaster run`; the manual prints them."""

    name: str                       # of the job; that of the code, if absent
    framework: str                  # pytorch, tensorflow, jax...; by what is imported, if absent
    workers: int                    # how many replicas
    servers: int                    # parameter servers beside them
    gpus: int                       # of each worker
    env: Mapping[str, str]          # variables
    args: Sequence[str]             # of a script
    parameters: Mapping[str, Any]   # of a function, as JSON
    queue: str                      # that the job waits in
    priority: str                   # priority class of the job
    image: str                      # needed on any cluster but the embedded one
    requirements: str | Path | Sequence[str]      # packages that it needs: a file as pip reads it, or its lines
    output: str | Path              # folder that keeps the working directory of each replica, as ROLE-INDEX


@dataclass(frozen=True, slots=True)
class Code:
    """What is sent, and what is started of it."""

    name: str                    # of the script, folder or function, after which the job is called
    source: str                  # where it is, for people
    script: str                  # its path among the files
    files: Mapping[str, bytes]
    imports: Sequence[str]       # of the script

    @property
    def framework(self) -> str:
        """By what the script imports."""
        return launches.guessed(self.imports)


def of_path(path: Path, more: parcels.Files = MappingProxyType({})) -> Code:
    """A script with the modules beside it, or a folder; and more files that go with it. Raises ScriptError."""
    script = first_of(path) if path.is_dir() else path
    files = {**(parcels.of_folder(path) if path.is_dir() else parcels.of_script(path)), **more}
    text = files[script.name].decode(errors="replace")
    imported = parcels.imports(text, str(script)) if script.suffix == ".py" else []
    return Code(path.resolve().name, str(path), script.name, files, imported)


def of_function(function: Callable[..., Any], parameters: Mapping[str, Any],
                more: parcels.Files = MappingProxyType({})) -> Code:
    """A function, as a script that calls it; and more files that go with it. Raises ScriptError."""
    text, name = _source(function, parameters), getattr(function, "__name__", "function")
    return Code(name, name, FUNCTION, {FUNCTION: text.encode(), **more}, parcels.imports(text, name))


def is_code(folder: Path, *, told: bool) -> bool:
    """A folder of manifests stays one, unless somebody `told` how the code in it is to run."""
    there = list(folder.iterdir())
    has_manifests = any(path.suffix in SUFFIXES and _looks_like_a_manifest(path) for path in there)
    return any(path.suffix in SCRIPTS for path in there) and (told or not has_manifests)


def first_of(folder: Path) -> Path:
    """The script that a folder is started by. Raises ScriptError."""
    scripts = sorted(path for path in folder.iterdir() if path.suffix in SCRIPTS and path.is_file())
    named = [path for name in MAIN for path in scripts if path.name == name]
    if named or len(scripts) == 1:
        return (named or scripts)[0]
    raise ScriptError(f"{folder}: which of its scripts is to run ({some([path.name for path in scripts], 5)})? "
                      f"Call it {' or '.join(MAIN[1:])}.")


def planned(what: Path | Callable[..., Any], how: How, home: Path | None) -> tuple[Code, Launch]:
    """What is sent, and the job that is made of it. Raises ScriptError.

    `home` is that of the embedded cluster, None for another: there the code needs an image, the pods install by
    themselves what is required, and nobody can keep their working directories here.
    """
    if home is None and not how.get("image"):
        raise BadOption("image", "is needed on a cluster that is not the embedded one: the name of an image with "
                        "Python and what the code imports.")
    if home is None and how.get("output"):
        raise BadOption("output", "working directories can be kept on this machine by the embedded cluster only. "
                        "Elsewhere let the script write to a volume or an object store.")
    needs = _requirements(how)
    more = {launches.REQUIREMENTS: needs.encode()} if needs and home is None else {}
    code = of_function(what, how.get("parameters") or {}, more) if callable(what) else of_path(what, more)
    launch = launched(code, how)
    if needs and home is not None:
        recipe = requirements.Recipe(launch.image or launch.profile.image, needs)
        launch = replace(launch, image=requirements.written(home, recipe))
    return code, replace(launch, output=_folder(how["output"])) if how.get("output") else launch


def _requirements(how: How) -> str:
    try:
        return requirements.text_of(how["requirements"]) if how.get("requirements") else ""
    except requirements.BadRequirements as problem:
        raise BadOption("requirements", str(problem)) from problem


def _folder(path: str | Path) -> str:
    """Made here, so that it belongs to the person. Raises BadOption."""
    folder = Path(path).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadOption("output", f"{problem.strerror}.", path) from problem
    return str(folder.resolve())


def launched(code: Code, how: How) -> Launch:
    """The job that is made of it. Raises BadOption."""
    launch = Launch(
        name=how.get("name") or launches.job_name(code.name), parcel=parcels.packed(code.files, code.source),
        script=code.script, framework=how.get("framework") or code.framework, workers=how.get("workers", 1),
        servers=how.get("servers", 0), gpus=how.get("gpus", 0), environment=dict(how.get("env") or {}),
        arguments=[str(each) for each in how.get("args") or ()], queue=how.get("queue", ""),
        priority=how.get("priority", ""), image=how.get("image", ""),
    )
    if launch.framework not in launches.PROFILES:
        raise BadOption("framework", f"choose one of {', '.join(launches.PROFILES)}.", launch.framework)
    if not launches.is_job_name(launch.name):
        raise BadOption("name", "a job's name has small letters, digits and -, begins with a letter and has at most "
                        f"{launches.MOST_LETTERS} signs; {launches.job_name(launch.name)} would do.", launch.name)
    if launch.workers < 1:
        raise BadOption("workers", "a job has at least one.", launch.workers)
    return launch


def _looks_like_a_manifest(path: Path) -> bool:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return False
    return "apiVersion" in text and "kind" in text


def _source(function: Callable[..., Any], parameters: Mapping[str, Any]) -> str:
    """A script that calls the function. Its source is sent, not its surroundings: it must import what it needs."""
    import inspect
    import json
    import textwrap

    try:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
        inspect.signature(function).bind(**parameters)
        given = json.dumps(dict(parameters))
    except (OSError, TypeError, ValueError) as problem:
        raise ScriptError(f"The function cannot be sent: {problem}. It must be written with def in a file or a "
                          "notebook, and its parameters must be plain values.") from problem
    while lines and lines[0].lstrip().startswith("@"):      # decorators are of its surroundings
        lines.pop(0)
    if not lines or not lines[0].startswith(("def ", "async def ")) or lines[0].startswith("async"):
        raise ScriptError(f"{function.__qualname__} cannot be sent: it must be a plain function, written with def.")
    call = f"{function.__name__}(**json.loads({given!r}))"
    return "\n".join([*lines, "", "", "if __name__ == '__main__':", "    import json", "", f"    {call}", ""])
