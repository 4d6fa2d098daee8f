"""Bring a cluster to what manifests say, by server-side apply; or only find out what would happen.

All are looked at before any is sent: half of a file is worse than none of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Object, Resource, metadata, name_of, revision_of
from trainmaster.kube.client import APPLY_PATCH
from trainmaster.kube.errors import ApiError, Conflict, NotFound
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.manifests import Manifest, refusal, unknown_kind
from trainmaster.sdk.session import Session

MANAGER = "trainmaster"


@dataclass(frozen=True, slots=True)
class Applied:
    """An object as the cluster has it now, and what became of it: created, configured, unchanged."""

    resource: Resource
    object: Object
    how: str


async def apply(session: Session, manifests: Sequence[Manifest], namespace: str | None = None, *,
                dry_run: bool = False, force: bool = False) -> list[Applied]:
    """In the order in which they are written. Raises ManifestError."""
    where = namespace or session.namespace
    kinds = [await _kind(session, each) for each in manifests]
    if not dry_run and len(manifests) > 1:
        for manifest, resource in zip(manifests, kinds, strict=True):
            await _try_out(session, manifest, resource, where, force, {m.thing["kind"] for m in manifests})
    return [await _apply(session, manifest, resource, where, dry_run=dry_run, force=force)
            for manifest, resource in zip(manifests, kinds, strict=True)]


async def _kind(session: Session, manifest: Manifest) -> Resource:
    found = await session.resource_of(manifest.thing)
    if found is None:
        known = [(each.resource.api_version, each.resource.kind) for each in await session.served()]
        raise ManifestError(unknown_kind(manifest, known))
    return found


async def _try_out(session: Session, manifest: Manifest, resource: Resource, namespace: str, force: bool,
                   kinds: set[str]) -> None:
    """A dry run; what is missing because an object before it would make it is no mistake."""
    try:
        await _apply(session, manifest, resource, namespace, dry_run=True, force=force)
    except ManifestError:
        if not kinds & {"Namespace", "CustomResourceDefinition"}:
            raise


async def _apply(session: Session, manifest: Manifest, resource: Resource, namespace: str, *, dry_run: bool,
                 force: bool) -> Applied:
    thing = manifest.thing
    where = (str(metadata(thing).get("namespace") or "") or namespace) if resource.namespaced else ""
    query = [("fieldManager", MANAGER), ("fieldValidation", "Strict"), *([("dryRun", "All")] if dry_run else [])]
    client = session.client
    try:
        if not name_of(thing):      # generateName: each time another one
            made = await client.request("POST", resource.path(where), query=query, body=thing)
            return Applied(resource, made, "created")
        before = await _there(session, resource, name_of(thing), where)
        if force:
            query.append(("force", "true"))
        path = resource.path(where, name_of(thing))
        after = await client.request("PATCH", path, query=query, body=thing, content_type=APPLY_PATCH)
    except Conflict as problem:
        raise ManifestError(f"{manifest.source}: {problem}. Take these fields over with --force-conflicts, or "
                            "leave them out.") from problem
    except ApiError as problem:
        raise refusal(manifest, problem) from problem
    if before is None:
        return Applied(resource, after, "created")
    same = revision_of(before) == revision_of(after) if not dry_run else before.get("spec") == after.get("spec")
    return Applied(resource, after, "unchanged" if same else "configured")


async def _there(session: Session, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return await session.client.get(resource, name, namespace)
    except NotFound:
        return None
