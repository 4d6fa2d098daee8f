"""What a pod wrote outlives it for as long as what it belonged to."""

import pytest
from tests.unit.cluster.kubelet.node import Node, soon
from tests.unit.cluster.kubelet.test_pod_life import files

from trainmaster.api.core import CONFIG_MAPS, PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.testing.builders import pod as built

REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
WORK = {"workingDir": "/work", "volumeMounts": [{"name": "work", "mountPath": "/work"},
                                                {"name": "told", "mountPath": "/told"}]}


async def owner(node: Node) -> Object:
    labels = {"app": "a"}
    spec = {"selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}}
    made = await node.client.create(REPLICA_SETS, {"metadata": {"name": "a", "namespace": "default"}, "spec": spec})
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": made["metadata"]["uid"],
            "controller": True}


async def ran(node: Node, owners: list[Object], says: str) -> str:
    """A pod that wrote something, ended and was removed; its UID."""
    script = f"echo {says} > model; echo {says} > /tmp/checkpoint; cat /told/word > /root/heard"
    made = built("a", node="here", command=("/bin/sh", "-c", script),
                 volumes=[{"name": "work", "emptyDir": {}}, {"name": "told", "configMap": {"name": "told"}}])
    made["spec"]["containers"][0] |= WORK
    made["metadata"]["ownerReferences"] = owners
    uid = str((await node.client.create(PODS, made))["metadata"]["uid"])
    await node.phase("a", "Succeeded")
    await node.client.delete(PODS, "a", "default", grace=0)
    await node.gone("a")
    await soon(lambda: not (node.settings.pods / uid).exists())
    return uid


@pytest.fixture(autouse=True)
async def word(node: Node) -> None:
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "told", "namespace": "default"},
                                           "data": {"word": "secret"}})


async def test_files_are_kept_until_the_owner_is_gone(node: Node) -> None:
    owns = await owner(node)
    first = await ran(node, [owns], "first")

    for agent in ("the same", "the next"):
        if agent == "the next":
            await node.stop()
            await node.start()
        assert {"model": b"first\n"} == await files(node, "a", "model"), agent
        assert {"checkpoint": b"first\n"} == await files(node, "a", "/tmp/checkpoint"), agent
        assert {"heard": b"secret"} == await files(node, "a", "/root/heard"), agent
        assert "No such file" in str(await files(node, "a", "/told/word")), agent      # what the API had put there

    await ran(node, [owns], "second")                                                # replaced, as by a restart
    assert {"model": b"second\n"} == await files(node, "a", "model")
    assert not (node.settings.volumes / "pods" / first).exists()

    await node.client.delete(REPLICA_SETS, "a", "default", uid=owns["uid"])
    await soon(lambda: not list((node.settings.volumes / "pods").iterdir()))
    assert 'pod "a" not found' == await files(node, "a", "model")


@pytest.mark.parametrize("owners", [
    pytest.param([], id="nobody"),
    pytest.param([{"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": "u", "controller": True}],
                 id="a kind of which nobody tells when it is gone"),
    pytest.param([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": True}],
                 id="something that is gone already"),
])
async def test_what_belongs_to(node: Node, owners: list[Object]) -> None:
    """Goes with its pod."""
    uid = await ran(node, owners, "x")

    await soon(lambda: not (node.settings.volumes / "pods" / uid).exists())
