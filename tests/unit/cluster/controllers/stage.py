"""What the tests of the controllers share: controllers at work, small objects, names of what is there."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from trainmaster.api.core import CONFIG_MAPS
from trainmaster.api.meta import Object, Resource, name_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.testing.faults import is_death


@asynccontextmanager
async def at_work(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Controllers that run until the end of the block. One that ended by itself fails the test, unless it died."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, BaseException) and not isinstance(ended, asyncio.CancelledError):
                assert is_death(ended), ended


def config_map(name: str, *owners: Object, namespace: str = "default", blocks: bool = True, **more: Any) -> Object:
    """A small object. An owner is an object that was read from the server."""
    about: Object = {"name": name, "namespace": namespace, **more}
    if owners:
        about["ownerReferences"] = [reference(owner, blocks=blocks) for owner in owners]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def reference(owner: Object, *, blocks: bool = True) -> Object:
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner),
        "blockOwnerDeletion": blocks,
    }


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def make(client: Client, *things: Object) -> list[Object]:
    return [await client.create(CONFIG_MAPS, thing) for thing in things]


async def own(client: Client, dependent: Object, *owners: Object) -> None:
    """Give an object these owners, whichever came first: the only way to make a ring."""
    change = {"metadata": {"ownerReferences": [reference(owner) for owner in owners]}}
    await client.patch(CONFIG_MAPS, name_of(dependent), dependent["metadata"]["namespace"], change)


async def names(client: Client, resource: Resource = CONFIG_MAPS, place: str = "default") -> list[str]:
    """What is there, but for what is in every namespace."""
    found = [name_of(thing) for thing in (await client.list(resource, place)).items]
    return [name for name in found if name != "kube-root-ca.crt"]


def definition(plural: str, *versions: str, group: str = "example.com", scope: str = "Namespaced") -> Object:
    """A custom kind that takes anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": plural[:-1].capitalize()},
            "versions": [
                {"name": version, "served": True, "storage": number == 0, "schema": {"openAPIV3Schema": anything}}
                for number, version in enumerate(versions or ("v1",))
            ],
        },
    }


def custom(plural: str, group: str = "example.com", version: str = "v1", *, namespaced: bool = True) -> Resource:
    return Resource(group, version, plural, plural[:-1].capitalize(), namespaced=namespaced)
