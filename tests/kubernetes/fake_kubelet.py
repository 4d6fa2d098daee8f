"""A node that runs nothing: says of every pod in one namespace that it runs, and lets it end when a test says so.

    python tests/kubernetes/fake_kubelet.py KUBECONFIG NAMESPACE [--bind]

Everything goes through the API as a kubelet would send it, so it works on any server. A pod that is being deleted goes
at once: there is no process to wait for. `--bind` gives pods to this node where no scheduler does.
"""

import argparse
import asyncio
import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object, being_deleted, name_of, namespace_of, revision_of, timestamp, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, NotFound
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.runtime.clock import RealClock
from trainmaster.runtime.informer import Informer

NAME = "fake"
NOTHING_MORE: Mapping[str, str] = {}
ADDRESS = "192.0.2.2"  # reserved for documentation: reaches nobody


class FakeKubelet:
    """The node of one namespace. Pods that run go on until `end` is called for them."""

    def __init__(self, client: Client, namespace: str, *, binds: bool) -> None:
        self._client = client
        self._binds = binds
        self._changed = asyncio.Event()
        self.pods = Informer(client, PODS, clock=RealClock(), namespace=namespace)
        self.pods.on_change(lambda _before, _after: self._changed.set())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run())
            group.create_task(self._work())

    async def _work(self) -> None:
        await self.pods.synced()
        while True:
            for pod in self.pods.copy.all():
                try:
                    await self._step(pod)
                except (NotFound, Conflict):
                    continue  # it changed under our hands; the watch tells
            await self._changed.wait()
            self._changed.clear()

    async def _step(self, pod: Object) -> None:
        name, namespace, status = name_of(pod), namespace_of(pod), pod.get("status") or {}
        if being_deleted(pod):
            await self._client.delete(PODS, name, namespace, uid=uid_of(pod), grace=0)
        elif not pod["spec"].get("nodeName"):
            if not self._binds:
                return
            target = {"apiVersion": "v1", "kind": "Node", "name": NAME}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self._client.create(PODS, binding, namespace=namespace, name=name, subresource="binding")
        elif status.get("phase", "Pending") == "Pending":
            # Only if it is still as we saw it: by now a test may have let it end.
            await report(self._client, pod, "Running", {"running": {"startedAt": timestamp(datetime.now(UTC))}},
                         {"resourceVersion": revision_of(pod)})


async def end(client: Client, name: str, namespace: str, code: int = 0) -> None:
    """Report that the containers of a pod ended with `code`."""
    now = timestamp(datetime.now(UTC))
    ending = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
    pod = await client.get(PODS, name, namespace)
    await report(client, pod, "Failed" if code else "Succeeded", {"terminated": ending})


async def report(
    client: Client, pod: Object, phase: str, state: Object, only: Mapping[str, str] = NOTHING_MORE
) -> None:
    now, runs = timestamp(datetime.now(UTC)), phase == "Running"
    status = {
        "phase": phase,
        "hostIP": ADDRESS,
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "startTime": (pod.get("status") or {}).get("startTime", now),
        "conditions": [
            {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": now}
            for kind, holds in (
                ("PodScheduled", True),
                ("Initialized", True),
                ("ContainersReady", runs),
                ("Ready", runs),
            )
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "ready": runs,
                "started": runs,
                "restartCount": 0,
                "state": state,
                "lastState": {},
            }
            for container in pod["spec"]["containers"]
        ],
    }
    patch = {"metadata": {"uid": uid_of(pod), **only}, "status": status}
    await client.patch(PODS, name_of(pod), namespace_of(pod), patch, subresource="status")


async def register(client: Client, offers: Mapping[str, str] = NOTHING_MORE) -> None:
    """Make the Node object, ready and with room, unless it is there."""
    now, room = timestamp(datetime.now(UTC)), {"cpu": "64", "memory": "256Gi", "pods": "1000", **offers}
    labels = {"kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME, "labels": labels}}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Fake",
        "message": "always",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    status = {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": NAME}],
        "conditions": [ready],
    }
    try:
        await client.create(NODES, node)
    except AlreadyExists:
        return
    await client.patch(NODES, NAME, "", {"spec": {"taints": None}})  # a real server taints a node that is new
    await client.patch(NODES, NAME, "", {"status": status}, subresource="status")


async def main() -> None:
    parser = argparse.ArgumentParser(description="Say of every pod in NAMESPACE that it runs.")
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("namespace")
    parser.add_argument("--bind", action="store_true")
    asked = parser.parse_args()
    client = Client(transport(load(asked.kubeconfig)), user_agent="fake-kubelet")
    work = asyncio.ensure_future(FakeKubelet(client, asked.namespace, binds=asked.bind).run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await asyncio.gather(work, return_exceptions=True)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
