"""A job as a person sees it, whatever its kind: one word of state, how many replicas, and why it is so. Pure.

Reads the object as it came, without decoding it: a list of a thousand jobs is shown by a short command.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.core import BATCH_JOBS
from trainmaster.api.membership import JOB_NAME
from trainmaster.api.meta import (
    Object,
    Resource,
    controller_of,
    metadata,
    moment_if_any,
    name_of,
    namespace_of,
    uid_of,
)

GROUP = "kubeflow.org"
BATCH_NAME = "batch.kubernetes.io/job-name"

WAITING, RUNNING, RESTARTING, SUSPENDED = "Waiting", "Running", "Restarting", "Suspended"
SUCCEEDED, FAILED = "Succeeded", "Failed"
STATES = (WAITING, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED)
_SAID = {"Complete": SUCCEEDED}      # batch/v1 has its own word


def is_training(resource: Resource) -> bool:
    """A training job is a kind of kubeflow's group whose name says so."""
    return resource.group == GROUP and resource.kind.endswith("Job")


def is_job(resource: Resource) -> bool:
    """The same, or a plain Job."""
    return is_training(resource) or (resource.group, resource.plural) == (BATCH_JOBS.group, BATCH_JOBS.plural)


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a job: how many replicas were asked for, and how those that there are do."""

    name: str
    replicas: int
    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the cluster had it; and if anybody asked, what the scheduler said about its group (`waits`) and what
    keeps its replicas from running (`trouble`)."""

    resource: Resource
    object: Object
    waits: str = ""
    trouble: str = ""

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def namespace(self) -> str:
        return namespace_of(self.object)

    @property
    def uid(self) -> str:
        return uid_of(self.object)

    @property
    def created(self) -> datetime | None:
        return moment_if_any(metadata(self.object).get("creationTimestamp"))

    @property
    def started(self) -> datetime | None:
        return moment_if_any(_status(self.object).get("startTime"))

    @property
    def ended(self) -> datetime | None:
        return moment_if_any(_status(self.object).get("completionTime"))

    @property
    def pod_label(self) -> str:
        """The label that its pods have, and what it says is the job's name."""
        return JOB_NAME if is_training(self.resource) else BATCH_NAME

    @property
    def pods(self) -> str:
        """The label selector of its pods."""
        return f"{self.pod_label}={self.name}"

    @property
    def elastic(self) -> bool:
        """Whether replicas that run take notice when others come and go."""
        spec = self.object.get("spec") or {}
        return not is_training(self.resource) or bool(spec.get("elasticPolicy") or spec.get("enableDynamicWorker"))

    @property
    def owned(self) -> bool:
        """Whether it is a part of something else, as the launcher of an MPIJob is."""
        return controller_of(self.object) is not None

    @property
    def state(self) -> str:
        """One of STATES."""
        true = {_SAID.get(kind, kind) for kind, condition in self.conditions() if condition.get("status") == "True"}
        for state in (FAILED, SUCCEEDED, SUSPENDED, RESTARTING):
            if state in true:
                return state
        return RUNNING if RUNNING in true or (any(role.active for role in self.roles()) and not self.waits) else WAITING

    @property
    def finished(self) -> bool:
        return self.state in (SUCCEEDED, FAILED)

    @property
    def succeeded(self) -> bool:
        return self.state == SUCCEEDED

    @property
    def why(self) -> str:
        """One sentence about the state, "" if there is nothing to say."""
        state = self.state
        if state in (WAITING, RUNNING):
            return (self.waits if state == WAITING else "") or self.trouble
        if state in (FAILED, SUSPENDED, RESTARTING):
            told = self.first_failure() if state == FAILED else ""
            return told or next((str(each.get("message") or each.get("reason") or "")
                                 for kind, each in self.conditions() if _SAID.get(kind, kind) == state), "")
        return ""

    def first_failure(self) -> str:
        """Which replica failed first and how, if the post-mortem knows."""
        ended = (_status(self.object).get("postMortem") or {}).get("ended") or ()
        for first in ended:
            code = first.get("exitCode")
            said = first.get("says") or (f"exit code {code}" if code is not None else first.get("reason", ""))
            return f"{self.short(str(first.get('pod', '')))}: {said}" if said else ""
        return ""

    def short(self, pod: str) -> str:
        """The name of a replica without that of its job."""
        return pod.removeprefix(f"{self.name}-")

    def conditions(self) -> Iterator[tuple[str, Object]]:
        for each in _status(self.object).get("conditions") or ():
            yield str(each.get("type", "")), each

    def roles(self) -> list[Role]:
        spec, status = self.object.get("spec") or {}, _status(self.object)
        if not is_training(self.resource):
            wanted = min(spec.get("parallelism", 1), spec.get("completions") or spec.get("parallelism", 1))
            return [Role("pod", wanted, *(int(status.get(each) or 0) for each in ("active", "succeeded", "failed")))]
        counts = status.get("replicaStatuses") or {}
        return [_role(name, role, counts.get(name) or {}) for name, role in self.replica_specs().items()]

    def replica_field(self) -> str:
        """The field of the spec that has the roles."""
        return next((name for name in self.object.get("spec") or {} if name.endswith("ReplicaSpecs")), "")

    def replica_specs(self) -> Mapping[str, Object]:
        found = (self.object.get("spec") or {}).get(self.replica_field())
        return found if isinstance(found, dict) else {}

    def summary(self) -> Object:
        """What `get` shows, as data."""
        roles = self.roles()
        return {
            "kind": self.kind, "name": self.name, "namespace": self.namespace, "state": self.state,
            "replicas": sum(role.replicas for role in roles), "active": sum(role.active for role in roles),
            "succeeded": sum(role.succeeded for role in roles), "failed": sum(role.failed for role in roles),
            "why": self.why,
        }


def _role(name: str, spec: Object, counts: Object) -> Role:
    replicas = spec.get("replicas")
    return Role(name, 1 if replicas is None else int(replicas),
                *(int(counts.get(each) or 0) for each in ("active", "succeeded", "failed")))


def _status(thing: Object) -> Object:
    found = thing.get("status")
    return found if isinstance(found, dict) else {}
