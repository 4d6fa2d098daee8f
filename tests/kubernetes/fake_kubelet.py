"""A node that runs nothing: binds every pod to itself, says that it runs, and lets it end when a test says so.

Everything goes through the API as a kubelet would send it, so it works on any server. A pod that is being deleted goes
at once: there is no process to wait for.
"""

import asyncio
from datetime import UTC, datetime

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object, being_deleted, name_of, namespace_of, timestamp, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, NotFound
from trainmaster.runtime.clock import RealClock
from trainmaster.runtime.informer import Informer

NAME = "fake"
ADDRESS = "192.0.2.2"  # reserved for documentation: reaches nobody


class FakeKubelet:
    """One namespace's node; `run()` it, then let pods end with `end()`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._changed = asyncio.Event()
        self.pods = Informer(client, PODS, clock=RealClock(), namespace=namespace)
        self.pods.on_change(lambda _before, _after: self._changed.set())

    async def run(self) -> None:
        await register(self._client)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run())
            group.create_task(self._work())

    async def end(self, name: str, namespace: str, code: int = 0) -> None:
        """Report that the containers of a pod ended with `code`."""
        pod = await self._client.get(PODS, name, namespace)
        await self._report(pod, "Failed" if code else "Succeeded", {"terminated": _ending(code)})

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
            target = {"apiVersion": "v1", "kind": "Node", "name": NAME}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self._client.create(PODS, binding, namespace=namespace, name=name, subresource="binding")
        elif status.get("phase", "Pending") == "Pending":
            await self._report(pod, "Running", {"running": {"startedAt": timestamp(datetime.now(UTC))}})

    async def _report(self, pod: Object, phase: str, state: Object) -> None:
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
                }
                for container in pod["spec"]["containers"]
            ],
        }
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self._client.patch(PODS, name_of(pod), namespace_of(pod), patch, subresource="status")


async def register(client: Client) -> None:
    """Make the Node object, ready and with room, unless it is there."""
    now, room = timestamp(datetime.now(UTC)), {"cpu": "64", "memory": "256Gi", "pods": "1000"}
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


def _ending(code: int) -> Object:
    now = timestamp(datetime.now(UTC))
    return {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
