"""The containers of a pod by their part in its life: those that initialize, those that stay beside, those it is for.

A sidecar is an init container that is always restarted. It starts in the order of the init containers, is not waited
for to end, and is ended after the main ones. An ephemeral container comes to a pod that runs, for somebody who wants to
look around in it: it is started once, and nothing depends on it.
"""

from trainmaster.api.meta import Object, is_dns_label
from trainmaster.cluster.kubelet.observed import ContainerSeen
from trainmaster.cluster.kubelet.restarts import comes_back

CHANGED = "definition"      # the verdict on an attempt whose container has changed since


def init_containers(pod: Object) -> list[Object]:
    return list(pod["spec"].get("initContainers") or ())


def main_containers(pod: Object) -> list[Object]:
    return list(pod["spec"].get("containers") or ())


def ephemeral_containers(pod: Object) -> list[Object]:
    """Those whose name can be a directory's: they come when the pod has been looked at already."""
    return [one for one in pod["spec"].get("ephemeralContainers") or () if is_dns_label(str(one.get("name", "")))]


def own_containers(pod: Object) -> list[Object]:
    """Those that the pod was made with."""
    return init_containers(pod) + main_containers(pod)


def all_containers(pod: Object) -> list[Object]:
    return own_containers(pod) + ephemeral_containers(pod)


def is_sidecar(container: Object) -> bool:
    """Only for init containers: a main container has no restartPolicy of this meaning."""
    return container.get("restartPolicy") == "Always"


def sidecars(pod: Object) -> list[Object]:
    return [container for container in init_containers(pod) if is_sidecar(container)]


def policy_of(pod: Object, container: Object) -> str:
    """When an attempt of this container is followed by another. An init container must succeed once: `Always` means
    for it what `OnFailure` does."""
    policy = str(pod["spec"].get("restartPolicy") or "Always")
    if any(container["name"] == one["name"] for one in ephemeral_containers(pod)):
        return "Never"
    if not any(container["name"] == one["name"] for one in init_containers(pod)):
        return policy
    if is_sidecar(container):
        return "Always"
    return "Never" if policy == "Never" else "OnFailure"


def restarts(policy: str, state: ContainerSeen) -> bool:
    """Whether a container that has ended is started again. One that was ended for failing a probe is, however well it
    took its end; and so is, whatever the policy, one that was ended to be started with another image."""
    if state.exit is None or state.verdict == CHANGED:
        return True
    return comes_back(policy, state.exit.code) or (state.verdict in ("liveness", "startup") and policy != "Never")


def hook_of(container: Object, name: str) -> Object | None:
    """The handler of a lifecycle hook."""
    found = (container.get("lifecycle") or {}).get(name)
    return found if isinstance(found, dict) and found else None
