"""What can be submitted, whatever form it has: a file, YAML text, a dictionary, an object of another SDK."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.api.meta import Json
from trainmaster.sdk.jobs import Job, is_job
from trainmaster.sdk.manifests import Manifest, ManifestError, objects, parsed, read
from trainmaster.sdk.session import Session


async def submit(session: Session, what: Any, namespace: str | None = None) -> Job:
    """The one job in it, created, with what comes with it. Raises ManifestError."""
    from trainmaster.sdk.submit import submit as create

    manifests = manifests_of(what)
    jobs = [each for each in manifests if (await _is_job(session, each))]
    if len(jobs) != 1:
        raise ManifestError(f"There {'is no job' if not jobs else f'are {len(jobs)} jobs'} in {manifests[0].source}; "
                            "submit takes one at a time, apply takes any number of objects.")
    made = await create(session.client, manifests, namespace or session.namespace)
    return next(Job(each.resource, each.thing) for each in made if is_job(each.resource))


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
