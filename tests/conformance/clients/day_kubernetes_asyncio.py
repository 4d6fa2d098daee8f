"""A day in the words of kubernetes_asyncio. See `test_clients`."""

import asyncio
import json
import sys

from kubernetes_asyncio import client, config, watch

kubeconfig, namespace = sys.argv[1:]
GROUP = f"{namespace}.example.com"


def settings(name, data=None, labels=None, owners=None):
    metadata = client.V1ObjectMeta(name=name, labels=labels, owner_references=owners)
    return client.V1ConfigMap(metadata=metadata, data=data)


async def refused(awaitable):
    try:
        await awaitable
    except client.ApiException as error:
        status = json.loads(error.body)
        return error.status, status["reason"], [each["field"] for each in status["details"].get("causes", ())]
    raise SystemExit("it was not refused")


async def seen(core, since, name, enough):
    """Events of one config map, from a revision on, until they are enough."""
    found = []
    async with watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=since,
                                    field_selector=f"metadata.name={name}", timeout_seconds=60) as events:
        async for event in events:
            found.append((event["type"], event["object"]))
            if enough(found):
                break
    return found


def ended(found):
    return found[-1][0] == "DELETED"


async def write(core):
    made = await core.create_namespaced_config_map(namespace, settings("a", {"a": "1"}))
    print("created", made.data)
    print("again", *await refused(core.create_namespaced_config_map(namespace, settings("a"))))
    print("read", (await core.read_namespaced_config_map("a", namespace)).data)
    patched = await core.patch_namespaced_config_map("a", namespace, {"data": {"b": "2"}},
                                                     _content_type="application/merge-patch+json")
    print("merge patch", patched.data)
    operations = [{"op": "remove", "path": "/data/a"}]
    patched = await core.patch_namespaced_config_map("a", namespace, operations)
    print("json patch", patched.data)
    print("stale", *await refused(core.replace_namespaced_config_map("a", namespace, made)))
    fresh = await core.read_namespaced_config_map("a", namespace)
    fresh.data = {"c": "3"}
    print("replaced", (await core.replace_namespaced_config_map("a", namespace, fresh)).data)


async def pages(core):
    for index in range(7):
        await core.create_namespaced_config_map(namespace, settings(f"m{index}", labels={"paged": "yes"}))
    names, more = [], None
    while more is None or more:
        options = {"_continue": more} if more else {}
        page = await core.list_namespaced_config_map(namespace, limit=3, label_selector="paged in (yes,no)", **options)
        assert len(page.items) <= 3
        names += [each.metadata.name for each in page.items]
        more = page.metadata._continue or ""
    print("pages", names)
    await core.delete_collection_namespaced_config_map(namespace, label_selector="paged=yes")
    print("left", len((await core.list_namespaced_config_map(namespace, label_selector="paged=yes")).items))


async def watches(core):
    since = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
    await core.create_namespaced_config_map(namespace, settings("w"))
    await core.patch_namespaced_config_map("w", namespace, {"data": {"x": "y"}})
    await core.delete_namespaced_config_map("w", namespace)
    found = await seen(core, since, "w", ended)
    print("watched", [kind for kind, _ in found])
    again = await seen(core, found[0][1].metadata.resource_version, "w", ended)
    print("resumed", [kind for kind, _ in again])


async def propagation(core):
    for policy in ("Orphan", "Background", "Foreground"):
        owner = await core.create_namespaced_config_map(namespace, settings(f"owner-{policy.lower()}"))
        reference = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name=owner.metadata.name,
                                            uid=owner.metadata.uid, block_owner_deletion=True)
        name = f"child-{policy.lower()}"
        child = await core.create_namespaced_config_map(namespace, settings(name, owners=[reference]))
        await core.delete_namespaced_config_map(owner.metadata.name, namespace, propagation_policy=policy)
        kind, last = (await seen(core, child.metadata.resource_version, name, bool))[0]
        print(policy, kind, len(last.metadata.owner_references or ()))
        ends = await seen(core, owner.metadata.resource_version, owner.metadata.name, ended)
        print("its owner", (ends[0][1].metadata.finalizers or ["gone"])[0], ends[-1][0])


async def custom(api):
    objects, extensions = client.CustomObjectsApi(api), client.ApiextensionsV1Api(api)
    versions = [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]
    await extensions.create_custom_resource_definition({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"foos.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
                 "versions": versions}})
    conditions = (await extensions.read_custom_resource_definition(f"foos.{GROUP}")).status.conditions
    print("definition", sorted(each.type for each in conditions if each.status == "True"))
    place = (GROUP, "v1", namespace, "foos")
    foo = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"size": 1}}
    print("custom", (await objects.create_namespaced_custom_object(*place, foo))["spec"])
    wrong = {**foo, "metadata": {"name": "g"}, "spec": {"size": 0}}
    print("invalid", *await refused(objects.create_namespaced_custom_object(*place, wrong)))
    print("patched", (await objects.patch_namespaced_custom_object(
        *place, "f", {"spec": {"size": 2}}, _content_type="application/merge-patch+json"))["spec"])
    status = await objects.patch_namespaced_custom_object_status(
        *place, "f", {"status": {"phase": "Ready"}}, _content_type="application/merge-patch+json")
    print("status", status["spec"], status["status"])
    listed = await objects.list_namespaced_custom_object(*place)
    print("listed", [each["metadata"]["name"] for each in listed["items"]])
    await objects.delete_namespaced_custom_object(*place, "f")
    print("gone", *await refused(objects.get_namespaced_custom_object(*place, "f")))
    await extensions.delete_custom_resource_definition(f"foos.{GROUP}")


async def main():
    await config.load_kube_config(kubeconfig)
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        await write(core)
        await pages(core)
        await watches(core)
        await propagation(core)
        await custom(api)


asyncio.run(main())
