"""Delete an object and know that it is gone, so that another may have its name."""

from contextlib import aclosing

from trainmaster.api.meta import Object, Resource, metadata, name_of, namespace_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.sdk.errors import TimedOut
from trainmaster.sdk.session import Clock

PATIENCE = 120.0     # seconds for pods to end, twice the default grace


async def remove(client: Client, clock: Clock, resource: Resource, thing: Object, *, wait: bool = True,
                 foreground: bool = True) -> None:
    """By its UID: one that was made anew under the name stays. Raises TimedOut if it has to go and does not."""
    name, namespace, uid = name_of(thing), namespace_of(thing), uid_of(thing)
    selector = f"metadata.name={name}"
    try:
        page = await client.list(resource, namespace, fields=selector)
        await client.delete(resource, name, namespace, uid=uid,
                            propagation="Foreground" if foreground else "Background")
    except NotFound:
        return
    ends = clock.monotonic() + PATIENCE
    while wait and any(uid_of(item) == uid for item in page.items):
        seconds = int(ends - clock.monotonic())
        if seconds <= 0:
            held = ", ".join(metadata(page.items[0]).get("finalizers") or ()) or "nothing that can be seen"
            raise TimedOut(f"{resource.kind} {name} is being deleted, but is not gone after {PATIENCE:.0f} s; it is "
                           f"held by {held}.")
        watch = client.watch(resource, namespace, fields=selector, revision=page.revision, timeout=seconds)
        async with aclosing(watch) as events:
            async for event in events:
                if event.type == "DELETED" and uid_of(event.object) == uid:
                    return
        page = await client.list(resource, namespace, fields=selector)
