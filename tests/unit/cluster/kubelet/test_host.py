"""Several nodes on one machine: one agent, one network, and to each its own pods."""

import json

from tests.unit.cluster.kubelet.node import Node, soon

from trainmaster.api.core import LEASES, NODES, PODS
from trainmaster.api.meta import name_of

SLEEP = "exec sleep 1000"


async def test_each_node_has_its_own_pods_and_all_share_one_network(node: Node) -> None:
    await node.stop()
    await node.start("there")
    for name, where in (("a", "here"), ("b", "there")):
        await node.pod(name, SLEEP, where)
    seen = [await node.phase(name, "Running") for name in ("a", "b")]
    of_each = [json.loads(await node.ask("GET", "/pods", socket))["items"] for socket in ("kubelet.sock", "there.sock")]

    assert [["a"], ["b"]] == [[name_of(pod) for pod in pods] for pods in of_each]
    assert 2 == len({pod["status"]["podIP"] for pod in seen})
    assert {"here", "there"} == {name_of(found) for found in (await node.client.list(NODES)).items}
    assert {"here", "there"} <= {name_of(found) for found in (await node.client.list(LEASES, "kube-node-lease")).items}


async def test_the_next_agent_adopts_the_pods_of_all_nodes_and_ends_what_was_deleted(node: Node) -> None:
    await node.stop()
    await node.start("there")
    for name, where in (("a", "here"), ("b", "there"), ("deleted", "there")):
        await node.pod(name, SLEEP, where)
    before = [(await node.phase(name, "Running"))["status"] for name in ("a", "b", "deleted")]
    await node.stop()
    await node.client.delete(PODS, "deleted", "default", grace=0)

    await node.start("there")
    await node.pod("new", SLEEP, "here")
    new = await node.phase("new", "Running")

    after = [(await node.phase(name, "Running"))["status"] for name in ("a", "b")]
    assert [status["containerStatuses"] for status in before[:2]] == [status["containerStatuses"] for status in after]
    # That of the deleted one may be free again by now.
    assert new["status"]["podIP"] not in {status["podIP"] for status in before[:2]}
    await soon(lambda: len(list(node.settings.pods.iterdir())) == 3)


async def test_one_word_ends_the_pods_of_all_nodes(node: Node) -> None:
    await node.stop()
    await node.start("there")
    for name, where in (("a", "here"), ("b", "there")):
        await node.pod(name, SLEEP, where, terminationGracePeriodSeconds=0)
        await node.phase(name, "Running")

    assert "drained" == await node.ask("POST", "/drain")
    assert not node.settings.pods.exists()
