"""From the local copies to what the engine reads."""

from trainmaster.api.meta import Object, controller_of, uid_of
from trainmaster.engine.observed import Observed, Pod, observe, read_pod, read_service
from trainmaster.frameworks.framework import TrainingJob
from trainmaster.operator.companions import Companions
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.recent import Recent

OWNER = "owner"
GOING = "going"


def owner_index(thing: Object) -> tuple[str, ...]:
    """Index of local copies by the UID of the controller."""
    owner = controller_of(thing)
    return (str(owner.get("uid")),) if owner else ()


def going_index(pod: Object) -> tuple[str, ...]:
    """The same, only of pods that have not ended."""
    return owner_index(pod) if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed") else ()


class Children:
    """The pods and services of all jobs, as far as we know."""

    def __init__(
        self, pods: Informer, services: Informer, recent_pods: Recent, recent_services: Recent, companions: Companions
    ) -> None:
        self.companions = companions
        self._pods = pods
        self._services = services
        self.recent_pods = recent_pods
        self.recent_services = recent_services
        # A job of 500 pods is looked at for each of them; what did not change is not read again.
        self._read: dict[str, tuple[Object, Pod]] = {}
        pods.on_change(recent_pods.shown)
        pods.on_change(self._forget)
        services.on_change(recent_services.shown)

    def of(self, job: TrainingJob) -> Observed:
        pods = self.recent_pods.over(self._pods.copy.by(OWNER, job.uid), job.uid)
        services = self.recent_services.over(self._services.copy.by(OWNER, job.uid), job.uid)
        container = job.framework.kind.container
        return observe(
            job,
            [self._pod(pod, container) for pod in pods],
            [read_service(found) for found in services],
            self.companions.of(job),
            self.companions.priorities(),
        )

    def _pod(self, raw: Object, container: str) -> Pod:
        known = self._read.get(uid_of(raw))
        if known is not None and known[0] is raw:
            return known[1]
        pod = read_pod(raw, container)
        self._read[uid_of(raw)] = (raw, pod)
        return pod

    def _forget(self, before: Object | None, after: Object | None) -> None:
        if after is None and before is not None:
            self._read.pop(uid_of(before), None)
