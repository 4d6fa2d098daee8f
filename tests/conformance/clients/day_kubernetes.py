"""A day in the words of the official Python client: 25, 31 and the newest. See `test_clients`."""

import json
import sys

from kubernetes import client, config, watch

kubeconfig, namespace = sys.argv[1:]
config.load_kube_config(kubeconfig)
core, objects, extensions = client.CoreV1Api(), client.CustomObjectsApi(), client.ApiextensionsV1Api()
GROUP = f"{namespace}.example.com"


def settings(name, data=None, labels=None, owners=None):
    metadata = client.V1ObjectMeta(name=name, labels=labels, owner_references=owners)
    return client.V1ConfigMap(metadata=metadata, data=data)


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except client.ApiException as error:
        status = json.loads(error.body)
        return error.status, status["reason"], [each["field"] for each in status["details"].get("causes", ())]
    raise SystemExit("it was not refused")


def seen(since, name, enough):
    """Events of one config map, from a revision on, until they are enough."""
    found = []
    looking = watch.Watch()
    for event in looking.stream(core.list_namespaced_config_map, namespace, resource_version=since,
                                field_selector=f"metadata.name={name}", timeout_seconds=60):
        found.append((event["type"], event["object"]))
        if enough(found):
            looking.stop()
    return found


def ended(found):
    return found[-1][0] == "DELETED"


def write():
    made = core.create_namespaced_config_map(namespace, settings("a", {"a": "1"}))
    print("created", made.data)
    print("again", *refused(core.create_namespaced_config_map, namespace, settings("a")))
    print("read", core.read_namespaced_config_map("a", namespace).data)
    print("merge patch", core.patch_namespaced_config_map("a", namespace, {"data": {"b": "2"}}).data)
    operations = [{"op": "remove", "path": "/data/a"}]
    print("json patch", core.patch_namespaced_config_map("a", namespace, operations).data)
    print("stale", *refused(core.replace_namespaced_config_map, "a", namespace, made))
    fresh = core.read_namespaced_config_map("a", namespace)
    fresh.data = {"c": "3"}
    print("replaced", core.replace_namespaced_config_map("a", namespace, fresh).data)


def pages():
    for index in range(7):
        core.create_namespaced_config_map(namespace, settings(f"m{index}", labels={"paged": "yes"}))
    names, more = [], None
    while more is None or more:
        page = core.list_namespaced_config_map(namespace, limit=3, _continue=more, label_selector="paged in (yes,no)")
        assert len(page.items) <= 3
        names += [each.metadata.name for each in page.items]
        more = page.metadata._continue or ""
    print("pages", names)
    core.delete_collection_namespaced_config_map(namespace, label_selector="paged=yes")
    print("left", len(core.list_namespaced_config_map(namespace, label_selector="paged=yes").items))


def watches():
    since = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, settings("w"))
    core.patch_namespaced_config_map("w", namespace, {"data": {"x": "y"}})
    core.delete_namespaced_config_map("w", namespace)
    found = seen(since, "w", ended)
    print("watched", [kind for kind, _ in found])
    print("resumed", [kind for kind, _ in seen(found[0][1].metadata.resource_version, "w", ended)])


def propagation():
    for policy in ("Orphan", "Background", "Foreground"):
        owner = core.create_namespaced_config_map(namespace, settings(f"owner-{policy.lower()}"))
        reference = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name=owner.metadata.name,
                                            uid=owner.metadata.uid, block_owner_deletion=True)
        name = f"child-{policy.lower()}"
        child = core.create_namespaced_config_map(namespace, settings(name, owners=[reference]))
        core.delete_namespaced_config_map(owner.metadata.name, namespace, propagation_policy=policy)
        kind, last = seen(child.metadata.resource_version, name, bool)[0]
        print(policy, kind, len(last.metadata.owner_references or ()))
        ends = seen(owner.metadata.resource_version, owner.metadata.name, ended)
        print("its owner", (ends[0][1].metadata.finalizers or ["gone"])[0], ends[-1][0])


def custom():
    versions = [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]
    extensions.create_custom_resource_definition({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"foos.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
                 "versions": versions}})
    conditions = extensions.read_custom_resource_definition(f"foos.{GROUP}").status.conditions
    print("definition", sorted(each.type for each in conditions if each.status == "True"))
    place = (GROUP, "v1", namespace, "foos")
    foo = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"size": 1}}
    print("custom", objects.create_namespaced_custom_object(*place, foo)["spec"])
    wrong = {**foo, "metadata": {"name": "g"}, "spec": {"size": 0}}
    print("invalid", *refused(objects.create_namespaced_custom_object, *place, wrong))
    print("patched", objects.patch_namespaced_custom_object(*place, "f", {"spec": {"size": 2}})["spec"])
    status = objects.patch_namespaced_custom_object_status(*place, "f", {"status": {"phase": "Ready"}})
    print("status", status["spec"], status["status"])
    print("listed", [each["metadata"]["name"] for each in objects.list_namespaced_custom_object(*place)["items"]])
    objects.delete_namespaced_custom_object(*place, "f")
    print("gone", *refused(objects.get_namespaced_custom_object, *place, "f"))
    extensions.delete_custom_resource_definition(f"foos.{GROUP}")


write()
pages()
watches()
propagation()
custom()
