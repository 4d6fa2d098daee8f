"""From the local copies to what the engine reads."""

from trainmaster.api.meta import Object, controller_of
from trainmaster.engine.observed import Observed, observe
from trainmaster.frameworks.framework import TrainingJob
from trainmaster.operator.recent import Recent
from trainmaster.runtime.informer import Informer

OWNER = "owner"


def owner_index(thing: Object) -> tuple[str, ...]:
    """Index of local copies by the UID of the controller."""
    owner = controller_of(thing)
    return (str(owner.get("uid")),) if owner else ()


class Children:
    """The pods and services of all jobs, as far as we know."""

    def __init__(self, pods: Informer, services: Informer, recent_pods: Recent, recent_services: Recent) -> None:
        self._pods = pods
        self._services = services
        self.recent_pods = recent_pods
        self.recent_services = recent_services
        pods.on_change(recent_pods.shown)
        services.on_change(recent_services.shown)

    def of(self, job: TrainingJob) -> Observed:
        return observe(
            job,
            self.recent_pods.over(self._pods.copy.by(OWNER, job.uid), job.uid),
            self.recent_services.over(self._services.copy.by(OWNER, job.uid), job.uid),
        )
