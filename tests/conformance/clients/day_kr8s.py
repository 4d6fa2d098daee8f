"""A day in the words of kr8s. See `test_clients`."""

import asyncio
import sys

import kr8s
from kr8s.asyncio import api as connect
from kr8s.asyncio.objects import ConfigMap, CustomResourceDefinition, new_class

kubeconfig, namespace = sys.argv[1:]
GROUP = f"{namespace}.example.com"
Foo = new_class(kind="Foo", version=f"{GROUP}/v1", namespaced=True, asyncio=True, plural="foos")


async def settings(name, data=None, labels=None, owners=None):
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "ownerReferences": owners or []}
    return await ConfigMap({"metadata": metadata, "data": data or {}})


async def refused(awaitable):
    try:
        await awaitable
    except kr8s.ServerError as error:
        status = error.response.json()
        causes = status["details"].get("causes", ())
        return error.response.status_code, status["reason"], [each["field"] for each in causes]
    raise SystemExit("it was not refused")


async def seen(api, since, name, enough):
    """Events of one config map, from a revision on, until they are enough."""
    found = []
    async with asyncio.timeout(60):
        async for kind, thing in api.watch("configmaps", namespace=namespace, since=since,
                                           field_selector={"metadata.name": name}):
            found.append((kind, thing))
            if enough(found):
                break
    return found


def ended(found):
    return found[-1][0] == "DELETED"


async def write():
    made = await settings("a", {"a": "1"})
    await made.create()
    print("created", dict(made.data))
    print("again", *await refused((await settings("a")).create()))
    again = await ConfigMap.get("a", namespace=namespace)
    print("read", dict(again.data))
    await again.patch({"data": {"b": "2"}})
    print("merge patch", dict(again.data))
    await again.patch([{"op": "remove", "path": "/data/a"}], type="json")
    print("json patch", dict(again.data))
    # There is no replace in kr8s: a patch that names the revision it means is how a stale write is found out.
    print("stale", *await refused(again.patch({"metadata": {"resourceVersion": made.metadata.resourceVersion}})))
    await again.patch({"data": {"b": None, "c": "3"}})
    print("replaced", dict(again.data))


async def pages(api):
    for index in range(7):
        await (await settings(f"m{index}", labels={"paged": "yes"})).create()
    names, params = [], {"limit": 3}
    while params:
        async with api.async_get_kind(ConfigMap, namespace=namespace, label_selector={"paged": "yes"},
                                      params=params) as (_, answer):
            page = answer.json()
        assert len(page["items"]) <= 3
        names += [each["metadata"]["name"] for each in page["items"]]
        more = page["metadata"].get("continue")
        params = {"limit": 3, "continue": more} if more else None
    print("pages", names)
    found = [each async for each in api.get("configmaps", namespace=namespace, label_selector="paged=yes")]
    await asyncio.gather(*(each.delete() for each in found))
    print("left", len([each async for each in api.get("cm", namespace=namespace, label_selector={"paged": "yes"})]))


async def watches(api):
    async with api.async_get_kind("configmaps", namespace=namespace) as (_, answer):
        since = answer.json()["metadata"]["resourceVersion"]
    thing = await settings("w")
    await thing.create()
    await thing.patch({"data": {"x": "y"}})
    await thing.delete()
    # kr8s keeps the object of an event as it is, so the first one's revision is where to go on.
    found = await seen(api, since, "w", ended)
    print("watched", [kind for kind, _ in found])
    again = await seen(api, found[0][1].metadata.resourceVersion, "w", ended)
    print("resumed", [kind for kind, _ in again])


async def propagation(api):
    for policy in ("Orphan", "Background", "Foreground"):
        owner = await settings(f"owner-{policy.lower()}")
        await owner.create()
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.metadata.uid,
                     "blockOwnerDeletion": True}
        child = await settings(f"child-{policy.lower()}", owners=[reference])
        await child.create()
        await owner.delete(propagation_policy=policy)
        kind, last = (await seen(api, child.metadata.resourceVersion, child.name, bool))[0]
        print(policy, kind, len(last.metadata.get("ownerReferences", ())))
        ends = await seen(api, owner.metadata.resourceVersion, owner.name, ended)
        print("its owner", ends[0][1].metadata.get("finalizers", ["gone"])[0], ends[-1][0])


async def custom(api):
    versions = [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]
    definition = await CustomResourceDefinition({
        "metadata": {"name": f"foos.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
                 "versions": versions}})
    await definition.create()
    await definition.wait("condition=Established", timeout=60)
    print("definition", sorted(each.type for each in definition.status.conditions if each.status == "True"))
    foo = {"metadata": {"name": "f", "namespace": namespace}, "spec": {"size": 1}}
    made = await Foo(foo)
    await made.create()
    print("custom", dict(made.spec))
    wrong = await Foo({"metadata": {"name": "g", "namespace": namespace}, "spec": {"size": 0}})
    print("invalid", *await refused(wrong.create()))
    await made.patch({"spec": {"size": 2}})
    print("patched", dict(made.spec))
    await made.patch({"status": {"phase": "Ready"}}, subresource="status")
    print("status", dict(made.spec), dict(made.status))
    print("listed", [each.name async for each in api.get(f"foos.{GROUP}/v1", namespace=namespace)])
    await made.delete()
    try:
        await made.refresh()
    except kr8s.NotFoundError as error:
        status = error.__cause__.response.json()
        print("gone", status["code"], status["reason"], [])
    await definition.delete()


async def main():
    api = await connect(kubeconfig=kubeconfig, namespace=namespace)
    await write()
    await pages(api)
    await watches(api)
    await propagation(api)
    await custom(api)


asyncio.run(main())
