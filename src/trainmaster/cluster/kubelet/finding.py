"""From names in a request to what the node has: a pod, one of its containers, an attempt. Or the kubelet's refusal."""

from pathlib import Path

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.containers import all_containers
from trainmaster.cluster.kubelet.launcher import Process
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.pods import Pods


class Refused(Exception):
    """A request that cannot be served, with the kubelet's sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def pod_of(pods: Pods, namespace: str, name: str) -> Life:
    """Raises Refused."""
    life = pods.find(namespace, name)
    if life is None:
        raise Refused(404, f'pod "{name}" not found')
    return life


def container_of(life: Life, name: str) -> Object:
    """Raises Refused."""
    for one in all_containers(life.pod):
        if one["name"] == name:
            return one
    raise Refused(404, f'container "{name}" not found in pod "{life.pod["metadata"]["name"]}"')


def attempt_of(life: Life, container: str, *, previous: bool) -> int:
    """The number of the last attempt that has begun, or of the one before it. Raises Refused."""
    folder, name = life.places.pod / container, life.pod["metadata"]["name"]
    numbers = sorted(
        int(entry.name) for entry in (folder.iterdir() if folder.is_dir() else ())
        if entry.name.isdecimal() and records.read(str(entry), records.SHIM) is not None
    )
    if previous:
        if len(numbers) < 2:
            raise Refused(400, f'previous terminated container "{container}" in pod "{name}" not found')
        return numbers[-2]
    if not numbers:
        why = life.waiting[container].reason if container in life.waiting else "ContainerCreating"
        raise Refused(400, f'container "{container}" in pod "{name}" is waiting to start: {why}')
    return numbers[-1]


def running_attempt(life: Life, container: str) -> tuple[Path, Process]:
    """The directory and the shim of the attempt that runs. Raises Refused."""
    process = life.processes.get(container)
    if process is None or process.ended:
        raise Refused(404, f'container not found ("{container}")')
    return life.places.attempt(container, attempt_of(life, container, previous=False)), process
