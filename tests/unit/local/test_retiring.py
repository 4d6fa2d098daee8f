"""Nodes that this machine no longer is."""

from trainmaster.api.core import LEASES, NODE_LEASES, NODES, PODS
from trainmaster.api.meta import name_of
from trainmaster.local.retiring import retire
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


async def test_what_was_to_run_on_a_node_that_is_gone_goes_with_it() -> None:
    async with embedded(VirtualClock()) as cluster:
        client = cluster.client()
        for name, runtime in (("box", "trainmaster://1"), ("box-2", "trainmaster://1"), ("theirs", "containerd://2")):
            await client.create(NODES, {"metadata": {"name": name}})
            await client.patch(NODES, name, "", {"status": {"nodeInfo": {"containerRuntimeVersion": runtime}}},
                               subresource="status")
            await client.create(LEASES, {"metadata": {"name": name, "namespace": NODE_LEASES}, "spec": {}})
        for name, node, phase in (("runs", "box-2", "Running"), ("ended", "box-2", "Succeeded"),
                                  ("stays", "box", "Running"), ("other", "theirs", "Running"),
                                  ("lost", "nowhere", "Running"), ("waits", "", "Pending")):
            await client.create(PODS, pod(name, node=node))
            await client.patch(PODS, name, "default", {"status": {"phase": phase}}, subresource="status")

        for number in (0, 1):
            await client.create(NODES, {"metadata": {"name": f"simulated-{number}",
                                                     "labels": {"trainmaster.dev/simulated": "true"}}})
            await client.create(PODS, pod(f"pretends-{number}", node=f"simulated-{number}"))

        await retire(client, {"box", "simulated-0"})

        assert ["box", "simulated-0", "theirs"] == [name_of(each) for each in (await client.list(NODES)).items]
        assert ["box", "theirs"] == [name_of(each) for each in (await client.list(LEASES, NODE_LEASES)).items]
        assert ["ended", "lost", "other", "pretends-0", "stays", "waits"] == [
            name_of(each) for each in (await client.list(PODS)).items]
