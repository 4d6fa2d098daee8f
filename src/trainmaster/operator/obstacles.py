"""What keeps the operator from watching something, said with what to do about it.

It goes on trying, because most of this mends itself or is mended by somebody else while it waits: a server that starts,
definitions that come after the operator. Ending instead, as upstream does for some of it, was rejected: a Deployment
would start it again, only later each time.
"""

from collections.abc import Callable

from trainmaster.api.core import AUTOSCALERS
from trainmaster.api.groups import GROUPS
from trainmaster.api.meta import Resource
from trainmaster.kube.errors import ApiError, Forbidden, KubeError, NotFound
from trainmaster.runtime.log import logger

UNAUTHORIZED = 401

log = logger("operator")


def told(resource: Resource) -> Callable[[KubeError], None]:
    """For whoever watches such objects: tells once for each cause."""

    def tell(error: KubeError) -> None:
        what, remedy = obstacle(resource, error)
        log.warning(f"cannot watch, trying again: {what}", kind=resource.kind, do=remedy)

    return tell


def obstacle(resource: Resource, error: KubeError) -> tuple[str, str]:
    """What is wrong, and what to do."""
    if isinstance(error, NotFound):
        return f"the cluster has no {resource.kind} of {resource.api_version}", _install(resource)
    if isinstance(error, ApiError) and error.code == UNAUTHORIZED:
        return f"the server does not know us: {error}", "look at the user in the kubeconfig, or at the pod's account"
    if isinstance(error, Forbidden):
        return str(error), ("give the account its rights: kubectl apply -f deploy/operator/rbac.yaml; with rights in "
                            "one namespace only, start with --namespace")
    if isinstance(error, ApiError):
        return str(error), "nothing yet: the server is in trouble"
    return str(error), "see whether the API server is up, and whether this is its address"


def _install(resource: Resource) -> str:
    if resource in GROUPS:
        return "install the gang scheduler, or start with another --gang-scheduler-name"
    if resource == AUTOSCALERS:
        return "nothing: only elastic PyTorchJobs with metrics need it"
    return ("install the definitions: trainmaster crds | kubectl apply -f - ; to run only kinds that are there, start "
            "with --enable-scheme")
