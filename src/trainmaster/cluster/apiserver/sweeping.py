"""The deletion of many objects at once: those of a collection, or the instances of a definition that ends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import orjson

from trainmaster.api.core import NAMESPACES
from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.kind import Kind

# Deletions that are under way at once: enough to share a disk flush.
TOGETHER = 64


async def sweep(kind: Kind, found: Sequence[bytes], delete: Callable[[str, str], Awaitable[object]]) -> None:
    """Delete what a list found, by namespace and name; what is gone meanwhile is as good as deleted. Raises Failure."""
    async def deleted(namespace: str, name: str) -> None:
        try:
            await delete(namespace, name)
        except failures.Failure as failure:
            if failure.code not in {404, 409} and not (failure.code == 403 and kind.resource == NAMESPACES):
                raise

    for start in range(0, len(found), TOGETHER):
        places = [orjson.loads(value)["metadata"] for value in found[start:start + TOGETHER]]
        tried = (deleted(meta.get("namespace", ""), meta["name"]) for meta in places)
        for problem in await asyncio.gather(*tried, return_exceptions=True):
            if problem is not None:
                raise problem
