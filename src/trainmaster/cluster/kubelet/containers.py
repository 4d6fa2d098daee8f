"""The containers of a pod by their part in its life: those that initialize, those that stay beside, those it is for.

A sidecar is an init container that is always restarted. It starts in the order of the init containers, is not waited
for to end, and is ended after the main ones.
"""

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.observed import ContainerSeen
from trainmaster.cluster.kubelet.restarts import comes_back


def init_containers(pod: Object) -> list[Object]:
    return list(pod["spec"].get("initContainers") or ())


def main_containers(pod: Object) -> list[Object]:
    return list(pod["spec"].get("containers") or ())


def all_containers(pod: Object) -> list[Object]:
    return init_containers(pod) + main_containers(pod)


def is_sidecar(container: Object) -> bool:
    """Only for init containers: a main container has no restartPolicy of this meaning."""
    return container.get("restartPolicy") == "Always"


def sidecars(pod: Object) -> list[Object]:
    return [container for container in init_containers(pod) if is_sidecar(container)]


def policy_of(pod: Object, container: Object) -> str:
    """When an attempt of this container is followed by another. An init container must succeed once: `Always` means
    for it what `OnFailure` does."""
    policy = str(pod["spec"].get("restartPolicy") or "Always")
    if not any(container["name"] == one["name"] for one in init_containers(pod)):
        return policy
    if is_sidecar(container):
        return "Always"
    return "Never" if policy == "Never" else "OnFailure"


def restarts(policy: str, state: ContainerSeen) -> bool:
    """Whether a container that has ended is started again. One that was ended for failing a probe is, however well it
    took its end."""
    if state.exit is None:
        return True
    return comes_back(policy, state.exit.code) or (state.verdict in ("liveness", "startup") and policy != "Never")


def hook_of(container: Object, name: str) -> Object | None:
    """The handler of a lifecycle hook."""
    found = (container.get("lifecycle") or {}).get(name)
    return found if isinstance(found, dict) and found else None
