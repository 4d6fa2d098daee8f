"""A day in the words of lightkube. See `test_clients`."""

import sys

from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import CascadeType, PatchType

kubeconfig, namespace = sys.argv[1:]
GROUP = f"{namespace}.example.com"
Foo = create_namespaced_resource(GROUP, "v1", "Foo", "foos")
client = Client(config=KubeConfig.from_file(kubeconfig), namespace=namespace)


def settings(name, data=None, labels=None, owners=None):
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels, ownerReferences=owners), data=data)


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ApiError as error:
        details = error.status.details
        return error.status.code, error.status.reason, [each.field for each in (details and details.causes) or ()]
    raise SystemExit("it was not refused")


def seen(since, name, enough):
    """Events of one config map, from a revision on, until they are enough."""
    found = []
    for kind, thing in client.watch(ConfigMap, resource_version=since, fields={"metadata.name": name},
                                    server_timeout=60):
        found.append((kind, thing))
        if enough(found):
            break
    return found


def ended(found):
    return found[-1][0] == "DELETED"


def write():
    made = client.create(settings("a", {"a": "1"}))
    print("created", made.data)
    print("again", *refused(client.create, settings("a")))
    print("read", client.get(ConfigMap, "a").data)
    merged = client.patch(ConfigMap, "a", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
    print("merge patch", merged.data)
    operations = [{"op": "remove", "path": "/data/a"}]
    print("json patch", client.patch(ConfigMap, "a", operations, patch_type=PatchType.JSON).data)
    print("stale", *refused(client.replace, made))
    fresh = client.get(ConfigMap, "a")
    fresh.data = {"c": "3"}
    print("replaced", client.replace(fresh).data)


def pages():
    for index in range(7):
        client.create(settings(f"m{index}", labels={"paged": "yes"}))
    found = client.list(ConfigMap, chunk_size=3, labels={"paged": ("yes", "no")})
    print("pages", [each.metadata.name for each in found])
    for index in range(7):
        client.delete(ConfigMap, f"m{index}", grace_period=0)
    print("left", len(list(client.list(ConfigMap, labels={"paged": "yes"}))))


def watches():
    listed = client.list(ConfigMap)
    list(listed)
    since = listed.resourceVersion
    client.create(settings("w"))
    client.patch(ConfigMap, "w", {"data": {"x": "y"}})
    client.delete(ConfigMap, "w")
    found = seen(since, "w", ended)
    print("watched", [kind for kind, _ in found])
    print("resumed", [kind for kind, _ in seen(found[0][1].metadata.resourceVersion, "w", ended)])


def propagation():
    for policy in (CascadeType.ORPHAN, CascadeType.BACKGROUND, CascadeType.FOREGROUND):
        owner = client.create(settings(f"owner-{policy.value.lower()}"))
        reference = OwnerReference(apiVersion="v1", kind="ConfigMap", name=owner.metadata.name,
                                   uid=owner.metadata.uid, blockOwnerDeletion=True)
        child = client.create(settings(f"child-{policy.value.lower()}", owners=[reference]))
        client.delete(ConfigMap, owner.metadata.name, cascade=policy)
        kind, last = seen(child.metadata.resourceVersion, child.metadata.name, bool)[0]
        print(policy.value, kind, len(last.metadata.ownerReferences or ()))
        ends = seen(owner.metadata.resourceVersion, owner.metadata.name, ended)
        print("its owner", (ends[0][1].metadata.finalizers or ["gone"])[0], ends[-1][0])


def custom():
    versions = [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]
    client.create(CustomResourceDefinition.from_dict({
        "metadata": {"name": f"foos.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
                 "versions": versions}}))
    definition = client.wait(CustomResourceDefinition, f"foos.{GROUP}", for_conditions=["Established"])
    print("definition", sorted(each.type for each in definition.status.conditions if each.status == "True"))
    made = client.create(Foo(metadata={"name": "f"}, spec={"size": 1}))
    print("custom", made.spec)
    print("invalid", *refused(client.create, Foo(metadata={"name": "g"}, spec={"size": 0})))
    print("patched", client.patch(Foo, "f", {"spec": {"size": 2}}, patch_type=PatchType.MERGE).spec)
    status = client.patch(Foo.Status, "f", {"status": {"phase": "Ready"}}, patch_type=PatchType.MERGE)
    print("status", status.spec, status.status)
    print("listed", [each.metadata.name for each in client.list(Foo)])
    client.delete(Foo, "f")
    print("gone", *refused(client.get, Foo, "f"))
    client.delete(CustomResourceDefinition, f"foos.{GROUP}")


write()
pages()
watches()
propagation()
custom()
