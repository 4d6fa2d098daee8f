"""What pods use of CPU and memory, from metrics.k8s.io where a cluster has it."""

from dataclasses import dataclass

from trainmaster.api import quantity
from trainmaster.api.meta import Object, Resource, name_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
LOOK_EVERY = 2.0        # seconds
NOT_THERE = 30.0        # until it is asked again whether there are metrics now


@dataclass(frozen=True, slots=True)
class Usage:
    """Cores and bytes."""

    cpu: float
    memory: int

    def __str__(self) -> str:
        return f"{self.cpu:.2f} CPU, {in_words(self.memory)}"


async def usage(client: Client, namespace: str, labels: str) -> dict[str, Usage] | None:
    """By pod; None where there are no metrics."""
    try:
        page = await client.list(POD_METRICS, namespace, labels=labels)
    except KubeError:
        return None
    return {name_of(item): _total(item) for item in page.items}


def _total(item: Object) -> Usage:
    used = [each.get("usage") or {} for each in item.get("containers") or ()]
    return Usage(float(sum(quantity.parse(str(each.get("cpu", "0"))) for each in used)),
                 int(sum(quantity.parse(str(each.get("memory", "0"))) for each in used)))


def in_words(size: float) -> str:
    """`512 MB`, `1.5 GB`."""
    return f"{size / (1 << 20):.0f} MB" if size < 1 << 30 else f"{size / (1 << 30):.1f} GB"
