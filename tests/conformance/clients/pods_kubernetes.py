"""Pods in the words of the official Python client: bound, patched, watched, ended. See `test_clients`."""

import sys

from kubernetes import client, config, dynamic, watch

kubeconfig, namespace = sys.argv[1:]
config.load_kube_config(kubeconfig)
api = client.CoreV1Api()
print("version", client.VersionApi().get_code().major)

container = client.V1Container(name="c", image="busybox:1")
pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p", labels={"a": "b"}),
                   spec=client.V1PodSpec(containers=[container], scheduler_name="nobody"))
print("created", api.create_namespaced_pod(namespace, pod).status.phase)
target = client.V1ObjectReference(kind="Node", name="machine")
api.create_namespaced_binding(namespace, client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target),
                              _preload_content=False)
print("bound", api.read_namespaced_pod("p", namespace).spec.node_name)
print("strategic", api.patch_namespaced_pod("p", namespace, {"metadata": {"labels": {"x": "y"}}}).metadata.labels)
patch = [{"op": "remove", "path": "/metadata/labels/x"}]
print("json patch", api.patch_namespaced_pod("p", namespace, patch).metadata.labels)
events = watch.Watch().stream(api.list_namespaced_pod, namespace, timeout_seconds=1)
print("watched", [(event["type"], event["object"].metadata.name) for event in events])
pods = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="Pod")
print("dynamic", [each.metadata.name for each in pods.get(namespace=namespace).items])
print("graceful", api.delete_namespaced_pod("p", namespace).metadata.deletion_grace_period_seconds)
api.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
try:
    api.read_namespaced_pod("p", namespace)
except client.ApiException as error:
    print("gone", error.status, error.reason)
