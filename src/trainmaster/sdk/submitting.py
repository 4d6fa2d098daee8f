"""What can be submitted, whatever form it has: a file, YAML text, a dictionary, an object of another SDK, code."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from trainmaster.api.meta import Json
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.jobs import Job, is_job
from trainmaster.sdk.manifests import MAIN, SCRIPTS, Manifest, objects, parsed, read
from trainmaster.sdk.session import Session


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


async def submit(session: Session, what: Any, namespace: str | None = None, how: How | None = None, *,
                 embedded: bool = True) -> Job:
    """The one job in it, created, with what comes with it. Raises ManifestError."""
    from trainmaster.sdk.submit import submit as create

    manifests = _launched(what, how or {}, embedded=embedded) if _is_code(what) else _without(how, manifests_of(what))
    jobs = [each for each in manifests if (await _is_job(session, each))]
    if len(jobs) != 1:
        raise ManifestError(f"There {'is no job' if not jobs else f'are {len(jobs)} jobs'} in {manifests[0].source}; "
                            "submit takes one at a time, apply takes any number of objects.")
    made = await create(session.client, session.clock, manifests, namespace or session.namespace)
    return next(Job(each.resource, each.thing) for each in made if is_job(each.resource))


def _is_code(what: Any) -> bool:
    if isinstance(what, str | Path) and "\n" not in str(what):
        return Path(what).suffix in SCRIPTS or _has_main(Path(what))
    return callable(what) and not hasattr(what, "attribute_map")


def _has_main(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in MAIN)


def _without(how: How | None, manifests: list[Manifest]) -> list[Manifest]:
    if how:
        raise ManifestError(f"'{next(iter(how))}' is for code; a manifest says by itself how it is to run.")
    return manifests


def _launched(what: Any, how: How, *, embedded: bool) -> list[Manifest]:
    """The objects of a job that runs the code. Raises ManifestError."""
    from trainmaster.sdk import launches, parcels

    if not embedded and not how.get("image"):
        raise ManifestError("On a cluster that is not the embedded one, code needs image=..., the name of an image "
                            "with Python and what the code imports.")
    if callable(what):
        script, files = "function.py", {"function.py": _source(what, how.get("parameters") or {}).encode()}
        name = getattr(what, "__name__", "function")
    else:
        path = Path(what)
        first = next((path / each for each in MAIN if (path / each).exists()), path) if path.is_dir() else path
        files = parcels.of_folder(path) if path.is_dir() else parcels.of_script(path)
        script, name = first.name, path.resolve().name
    imported = parcels.imports(files[script].decode(errors="replace"), script) if script.endswith(".py") else []
    launch = launches.Launch(
        name=how.get("name") or launches.job_name(name), parcel=parcels.packed(files, name), script=script,
        framework=how.get("framework") or launches.guessed(imported), workers=how.get("workers", 1),
        servers=how.get("servers", 0), gpus=how.get("gpus", 0), environment=dict(how.get("env") or {}),
        arguments=[str(each) for each in how.get("args") or ()], queue=how.get("queue", ""),
        priority=how.get("priority", ""), image=how.get("image", ""),
    )
    if launch.framework not in launches.PROFILES:
        raise ManifestError(f"framework='{launch.framework}': choose one of {', '.join(launches.PROFILES)}.")
    return [Manifest(thing, name) for thing in launches.objects(launch)]


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
        raise ManifestError(f"The function cannot be sent: {problem}. It must be written with def in a file or a "
                            "notebook, and its parameters must be plain values.") from problem
    while lines and lines[0].lstrip().startswith("@"):      # decorators are of its surroundings
        lines.pop(0)
    if not lines or not lines[0].startswith(("def ", "async def ")) or lines[0].startswith("async"):
        raise ManifestError(f"{function.__qualname__} cannot be sent: it must be a plain function, written with def.")
    call = f"{function.__name__}(**json.loads({given!r}))"
    return "\n".join([*lines, "", "", "if __name__ == '__main__':", "    import json", "", f"    {call}", ""])


async def _is_job(session: Session, manifest: Manifest) -> bool:
    resource = await session.resource_of(manifest.thing)
    return resource is not None and is_job(resource)


def manifests_of(what: Any) -> list[Manifest]:
    """The objects in it. Raises ManifestError."""
    if isinstance(what, Manifest):
        return [what]
    if isinstance(what, list | tuple):
        return [each for one in what for each in manifests_of(one)]
    if isinstance(what, Path) or (isinstance(what, str) and "\n" not in what and not what.lstrip().startswith("{")):
        return read([str(what)], sys.stdin)
    if isinstance(what, str):
        return parsed(what, "the text")
    return list(objects(plain(what), "the object"))


def plain(value: Any) -> Json:
    """Objects of the `kubernetes` package and of kubeflow's SDK know which JSON field each attribute is."""
    names = getattr(value, "attribute_map", None)
    if isinstance(names, Mapping):
        return {field: plain(inner) for name, field in names.items() if (inner := getattr(value, name)) is not None}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
