"""Code that is to run, from where it is written to the launch of a job: for `trainmaster run` as for `submit`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

from trainmaster.sdk import launches, parcels
from trainmaster.sdk.launches import Launch
from trainmaster.sdk.manifests import MAIN, SCRIPTS, SUFFIXES
from trainmaster.sdk.parcels import ScriptError
from trainmaster.sdk.session import some

FUNCTION = "function.py"      # what the script is called that calls a function


class How(TypedDict, total=False):
    """How code is to run; all of it has a default."""

    name: str
    framework: str                  # pytorch, tensorflow, jax...; by what is imported, if absent
    workers: int
    servers: int                    # parameter servers beside them
    gpus: int                       # of each worker
    env: Mapping[str, str]
    args: Sequence[str]             # of a script
    parameters: Mapping[str, Any]   # of a function, as JSON
    queue: str
    priority: str
    image: str                      # needed on any cluster but the embedded one


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


def of_function(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Code:
    """A function, as a script that calls it. Raises ScriptError."""
    text, name = _source(function, parameters), getattr(function, "__name__", "function")
    return Code(name, name, FUNCTION, {FUNCTION: text.encode()}, parcels.imports(text, name))


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


def launched(code: Code, how: How, *, output: str = "") -> Launch:
    """What is to be made of it. Raises ScriptError."""
    launch = Launch(
        name=how.get("name") or launches.job_name(code.name), parcel=parcels.packed(code.files, code.source),
        script=code.script, framework=how.get("framework") or code.framework, workers=how.get("workers", 1),
        servers=how.get("servers", 0), gpus=how.get("gpus", 0), environment=dict(how.get("env") or {}),
        arguments=[str(each) for each in how.get("args") or ()], queue=how.get("queue", ""),
        priority=how.get("priority", ""), image=how.get("image", ""), output=output,
    )
    if launch.framework not in launches.PROFILES:
        raise ScriptError(f"framework='{launch.framework}': choose one of {', '.join(launches.PROFILES)}.")
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
