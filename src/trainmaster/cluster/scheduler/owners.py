"""What made a pod, and what made that: whom to ask about a pod, and how to make it stop without deleting it.

Only kinds that are known here are asked for: a scheduler that may read everything would be asking for too much.
"""

from collections.abc import Mapping

from trainmaster.api.core import REPLICA_SETS, STATEFUL_SETS
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Object, Resource, controller_of, namespace_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Forbidden, NotFound

_NO_REPLICAS: Object = {"spec": {"replicas": 0}}
_SUSPENDED: Object = {"spec": {"suspend": True}}
_PAUSED: Object = {"spec": {"runMode": {"pause": {"enabled": True}}}}
_T9K = "batch.tensorstack.dev"
# What a kind is told so that its pods go and it stays.
REST: Mapping[Resource, Object] = {
    REPLICA_SETS: _NO_REPLICAS, STATEFUL_SETS: _NO_REPLICAS,
    Resource("apps", "v1", "deployments", "Deployment"): _NO_REPLICAS,
    Resource("batch", "v1", "jobs", "Job"): _SUSPENDED,
    **{kind.resource: {"spec": {"runPolicy": {"suspend": True}}} for kind in KINDS},
    **{Resource(_T9K, "v1beta1", f"{kind.lower()}s", kind): _PAUSED for kind in (
        "TensorFlowTrainingJob", "PyTorchTrainingJob", "XGBoostTrainingJob", "MPIJob", "DeepSpeedJob", "ColossalAIJob",
        "GenericJob", "BeamJob")},
    **{Resource("tensorstack.dev", "v1beta1", f"{kind.lower()}s", kind): _SUSPENDED
       for kind in ("TensorBoard", "Notebook")},
}
# Nobody's to stop, but their annotations count for the groups of their pods.
_KNOWN = {(resource.group, resource.kind): resource
          for resource in (*REST, Resource("apps", "v1", "daemonsets", "DaemonSet"))}
MOST_LEVELS = 10


def resource_of(reference: Object) -> Resource | None:
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    return _KNOWN.get((group, str(reference.get("kind") or "")))


async def owner_of(client: Client, thing: Object) -> tuple[Resource, Object] | None:
    """What controls an object, if it is of a kind that we know and may read. Raises KubeError."""
    reference = controller_of(thing)
    resource = resource_of(reference) if reference is not None else None
    if reference is None or resource is None:
        return None
    try:
        found = await client.get(resource, str(reference.get("name")), namespace_of(thing))
    except (NotFound, Forbidden):
        return None
    return resource, found


async def highest_of(client: Client, pod: Object) -> tuple[Resource, Object] | None:
    """The topmost of those above a pod that can be told to rest. Raises KubeError."""
    highest, below = None, pod
    for _ in range(MOST_LEVELS):
        above = await owner_of(client, below)
        if above is None:
            break
        if above[0] in REST:
            highest = above
        below = above[1]
    return highest
