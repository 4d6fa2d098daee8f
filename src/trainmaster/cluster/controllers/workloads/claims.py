"""Who belongs to an owner: adoption and release, by selector and controller reference. Pure but for `claim`.

An orphan that the selector matches is adopted, a dependent that it does not match any more is let go. Whoever does
either names the state it was decided on, so that of two owners that want one orphan, one gets it.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from trainmaster.api.labels import holds
from trainmaster.api.meta import (
    Object,
    Resource,
    being_deleted,
    controller_of,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from trainmaster.cluster.controllers.workloads.pods import reference
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Invalid, NotFound
from trainmaster.runtime.recent import Recent


@dataclass(frozen=True, slots=True)
class Claims:
    mine: tuple[Object, ...] = ()
    adopt: tuple[Object, ...] = ()
    release: tuple[Object, ...] = ()


def claims(owner: Object, selector: Object, things: Iterable[Object]) -> Claims:
    """Sort an owner's dependents, and orphans of its namespace, by what becomes of them."""
    mine, adopt, release = [], [], []
    for thing in things:
        controller = controller_of(thing)
        matches = holds(selector, labels_of(thing))
        if controller is None:
            if matches and not being_deleted(owner) and not being_deleted(thing):
                adopt.append(thing)
        elif controller.get("uid") == uid_of(owner):
            if matches or being_deleted(owner):
                mine.append(thing)
            elif not being_deleted(thing):
                release.append(thing)
    return Claims(tuple(mine), tuple(adopt), tuple(release))


async def claim(
    client: Client, kind: Resource, owner: Object, selector: Object, of: Resource, things: Iterable[Object],
    recent: Recent, finalizer: str = "",
) -> list[Object]:
    """Adopt and release what must be; the dependents after that. What is adopted gets the finalizer, if any."""
    found = claims(owner, selector, things)
    for thing in found.release:
        with suppress(NotFound, Invalid):    # it went, or may not be changed any more
            await client.patch(of, name_of(thing), namespace_of(thing), _owners(thing, [
                each for each in metadata(thing).get("ownerReferences") or () if each.get("uid") != uid_of(owner)
            ]))
    mine = list(found.mine)
    if found.adopt and await _still_there(client, kind, owner):
        for thing in found.adopt:
            owners = [*(metadata(thing).get("ownerReferences") or ()), reference(owner)]
            with suppress(NotFound):
                change = _owners(thing, owners)
                if finalizer:
                    change["metadata"]["finalizers"] = [*(metadata(thing).get("finalizers") or ()), finalizer]
                adopted = await client.patch(of, name_of(thing), namespace_of(thing), change)
                recent.made(adopted)
                mine.append(adopted)
    return mine


async def _still_there(client: Client, kind: Resource, owner: Object) -> bool:
    """A deleted owner whose copy is late must not take anybody along."""
    try:
        fresh = await client.get(kind, name_of(owner), namespace_of(owner))
    except NotFound:
        return False
    return uid_of(fresh) == uid_of(owner) and not being_deleted(fresh)


def _owners(thing: Object, owners: list[Object]) -> Object:
    about = {"uid": uid_of(thing), "resourceVersion": revision_of(thing), "ownerReferences": owners or None}
    return {"metadata": about}
