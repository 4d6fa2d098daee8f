"""Writing a job's status, on clusters whose CRD knows our memory and on those whose does not.

A cluster that swaps operators may keep the other one's CRD, which prunes `status.postMortem`. What it would have held
then goes into an annotation: a second request, but only where there is something to remember.
"""

import orjson

from trainmaster.api import codec
from trainmaster.api.meta import Object, Resource, metadata, name_of, namespace_of, revision_of
from trainmaster.api.policy import JobStatus
from trainmaster.kube.client import Client

ANNOTATION = "trainmaster.dev/post-mortem"
FIELD = "postMortem"


async def write(client: Client, resource: Resource, thing: Object, status: JobStatus) -> Object:
    """Store the status; the object as it is then. Raises Conflict if it changed since it was read."""
    wanted = codec.encode(status)
    stored = await client.replace(resource, {**thing, "status": wanted}, subresource="status")
    kept = (stored.get("status") or {}).get(FIELD)
    noted = (metadata(stored).get("annotations") or {}).get(ANNOTATION)
    memory = wanted.get(FIELD)
    if memory == kept:
        return stored if noted is None else await _annotate(client, resource, stored, None)
    text = orjson.dumps(memory).decode() if memory else None
    return stored if text == noted else await _annotate(client, resource, stored, text)


def with_memory(thing: Object) -> Object:
    """The object with what the annotation holds where the status would have it."""
    noted = (metadata(thing).get("annotations") or {}).get(ANNOTATION)
    status = thing.get("status") or {}
    if not noted or FIELD in status:
        return thing
    try:
        memory = orjson.loads(noted)
    except orjson.JSONDecodeError:
        return thing  # somebody edited it; what is left of the facts is in the pods
    return {**thing, "status": {**status, FIELD: memory}}


async def _annotate(client: Client, resource: Resource, thing: Object, text: str | None) -> Object:
    change = {"metadata": {"resourceVersion": revision_of(thing), "annotations": {ANNOTATION: text}}}
    return await client.patch(resource, name_of(thing), namespace_of(thing), change)
