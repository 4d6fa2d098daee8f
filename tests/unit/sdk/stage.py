"""A stage for the verbs of the SDK: the embedded API server, where the test plays operator and node."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

from trainmaster import AsyncClient
from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.kube.client import Client as KubeClient
from trainmaster.kube.errors import ApiError, Unreachable
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.testing.clock import VirtualClock

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
INSTALLED = ("tfjobs.kubeflow.org", "jaxjobs.kubeflow.org", "podgroups.scheduling.volcano.sh")
JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: x}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: x}]}}}
"""


@dataclass
class Node:
    """The wire to the server, with a node behind it that has logs: pod -> what each opening of its log sends."""

    inner: Transport
    logs: dict[str, list[list[bytes | type[Exception]]]] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    blind: bool = False      # pods can be listed, not watched

    async def send(self, request: Request) -> Response:
        return await self.inner.send(request)

    async def open(self, request: Request) -> Stream:
        if self.blind and request.path.endswith("/pods"):
            raise Unreachable("cut")
        if not request.path.endswith("/log"):
            return await self.inner.open(request)
        self.asked.append(request)
        left = self.logs[request.path.split("/")[-2]]
        return Printed(left.pop(0) if left else [])

    async def close(self) -> None:
        await self.inner.close()


class NodeAway(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(503, "ServiceUnavailable", message)


@dataclass
class Printed:
    pieces: list[bytes | type[Exception]]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            if not isinstance(piece, bytes):
                raise piece("cut")
            yield piece

    async def close(self) -> None:
        return


@dataclass
class Stage:
    clock: VirtualClock
    sdk: AsyncClient
    kube: KubeClient
    node: Node

    async def pod(self, role: str, index: int) -> Object:
        labels = {"training.kubeflow.org/job-name": "mnist", "training.kubeflow.org/replica-type": role,
                  "training.kubeflow.org/replica-index": str(index)}
        name = f"mnist-{role}-{index}"
        made = await self.kube.create(PODS, {
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"containers": [{"name": "tensorflow", "image": "x"}]}})
        await self.state(name, running={})
        return made

    async def state(self, pod: str, restarts: int = 0, **state: object) -> None:
        container = {"name": "tensorflow", "restartCount": restarts, "state": state, "ready": True, "image": "x",
                     "imageID": ""}
        await self.kube.patch(PODS, pod, "default", {"status": {
            "phase": "Running", "containerStatuses": [container]}}, subresource="status")
        await self.clock.settle()

    async def condition(self, state: str, **status: object) -> None:
        said = {"type": state, "status": "True", "reason": state, "message": f"it is {state}"}
        await self.kube.patch(TFJOBS, "mnist", "default", {"status": {"conditions": [said], **status}},
                              subresource="status")
        await self.clock.settle()
