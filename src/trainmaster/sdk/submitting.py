"""What can be submitted, whatever form it has: a file, YAML text, a dictionary, an object of another SDK, code."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.api.meta import Json
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.jobs import Job, is_job
from trainmaster.sdk.manifests import SCRIPTS, Manifest, objects, parsed, read
from trainmaster.sdk.session import Session

if TYPE_CHECKING:      # loaded with code only
    from trainmaster.sdk.code import How


async def submit(session: Session, what: Any, namespace: str | None = None, how: "How | None" = None, *,
                 home: Path | None = None) -> Job:
    """The one job in it, created, with what comes with it; `home` is that of the embedded cluster, if it is that one.

    Raises ManifestError.
    """
    from trainmaster.sdk.submit import submit as create

    manifests = (_launched(what, how or {}, home) if _is_code(what, how)
                 else _without(how, manifests_of(what)))
    jobs = [each for each in manifests if (await _is_job(session, each))]
    if len(jobs) != 1:
        raise ManifestError(f"There {'is no job' if not jobs else f'are {len(jobs)} jobs'} in {manifests[0].source}; "
                            "submit takes one at a time, apply takes any number of objects.")
    made = await create(session.client, session.clock, manifests, namespace or session.namespace)
    return next(Job(each.resource, each.thing) for each in made if is_job(each.resource))


def _is_code(what: Any, how: "How | None") -> bool:
    if isinstance(what, str | Path) and "\n" not in str(what):
        return Path(what).suffix in SCRIPTS or (Path(what).is_dir() and _has_code(Path(what), told=bool(how)))
    return callable(what) and not hasattr(what, "attribute_map")


def _has_code(folder: Path, *, told: bool) -> bool:
    from trainmaster.sdk.code import is_code

    return is_code(folder, told=told)


def _without(how: "How | None", manifests: list[Manifest]) -> list[Manifest]:
    if how:
        raise ManifestError(f"'{next(iter(how))}' is for code; a manifest says by itself how it is to run.")
    return manifests


def _launched(what: Any, how: "How", home: Path | None) -> list[Manifest]:
    """The objects of a job that runs the code. Raises ManifestError."""
    from trainmaster.sdk import code, launches

    sent, launch = code.planned(what if callable(what) else Path(what), how, home)
    return [Manifest(thing, sent.name) for thing in launches.objects(launch)]


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
