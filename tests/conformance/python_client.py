"""A day with the official Python client, run by an interpreter that has it; every line it prints is compared.

Not a test by itself: `test_python_client.py` starts it with the path of a kubeconfig. It imports nothing of ours.
"""

import sys

from kubernetes import client, config, dynamic, watch  # type: ignore[import-not-found,unused-ignore]  # not ours

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
FOO = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"a": 1}}
PLACE = ("example.com", "v1", "default", "foos")


def custom_objects() -> None:
    objects, extensions = client.CustomObjectsApi(), client.ApiextensionsV1Api()
    made = extensions.create_custom_resource_definition(DEFINITION)
    print("definition", sorted(each.type for each in made.status.conditions))
    objects.create_namespaced_custom_object(*PLACE, FOO)
    print("patched", objects.patch_namespaced_custom_object(*PLACE, "f", {"spec": {"b": 2}})["spec"])
    print("status", objects.patch_namespaced_custom_object_status(*PLACE, "f", {"status": {"c": 3}})["status"])
    foos = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="example.com/v1", kind="Foo")
    print("dynamic", [each.metadata.name for each in foos.get(namespace="default").items])
    gone = objects.delete_namespaced_custom_object(*PLACE, "f", propagation_policy="Foreground")
    print("foreground", gone["metadata"]["finalizers"])
    extensions.delete_custom_resource_definition("foos.example.com")


def pods() -> None:
    api = client.CoreV1Api()
    container = client.V1Container(name="c", image="busybox:1")
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p", labels={"a": "b"}),
                       spec=client.V1PodSpec(containers=[container]))
    print("created", api.create_namespaced_pod("default", pod).status.phase)
    target = client.V1ObjectReference(kind="Node", name="machine")
    api.create_namespaced_binding("default", client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target),
                                  _preload_content=False)
    print("bound", api.read_namespaced_pod("p", "default").spec.node_name)
    print("strategic", api.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"x": "y"}}}).metadata.labels)
    patch = [{"op": "remove", "path": "/metadata/labels/x"}]
    print("json patch", api.patch_namespaced_pod("p", "default", patch).metadata.labels)
    events = watch.Watch().stream(api.list_namespaced_pod, "default", timeout_seconds=1)
    print("watched", [(event["type"], event["object"].metadata.name) for event in events])
    ending = api.delete_namespaced_pod("p", "default")
    print("graceful", ending.metadata.deletion_grace_period_seconds)
    api.delete_namespaced_pod("p", "default", grace_period_seconds=0)
    try:
        api.read_namespaced_pod("p", "default")
    except client.ApiException as error:
        print("gone", error.status, error.reason)


def pages() -> None:
    api = client.CoreV1Api()
    for index in range(7):
        api.create_namespaced_config_map("default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"m{index}")))
    first = api.list_namespaced_config_map("default", limit=3)
    rest = api.list_namespaced_config_map("default", limit=9, _continue=first.metadata._continue)
    print("pages", len(first.items), first.metadata.remaining_item_count, len(rest.items))
    api.delete_collection_namespaced_config_map("default")
    print("left", len(api.list_namespaced_config_map("default").items))


if __name__ == "__main__":
    config.load_kube_config(sys.argv[1])
    print("version", client.VersionApi().get_code().major)
    custom_objects()
    pods()
    pages()
