"""The training jobs of kubeflow.org/v1: what each kind is called, and the fields of its spec.

A `JobKind` holds the facts that defaults, validation, schema and frameworks share, so that they cannot disagree. How a
kind finds its peers and when it has succeeded is not here but in `frameworks`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import replace

from trainmaster.api.meta import Resource
from trainmaster.api.policy import ReplicaSpec, RestartPolicy, RunPolicy
from trainmaster.api.wire import Wire

GROUP, VERSION = "kubeflow.org", "v1"


class JobSpec(Wire, frozen=True, kw_only=True):
    """What the specs of all kinds have in common."""

    run_policy: Annotated[RunPolicy, Meta(description="How the job as a whole runs and ends.")] = RunPolicy()

    @property
    def replica_specs(self) -> Mapping[str, ReplicaSpec]:
        """The replica map, whatever the kind calls it."""
        raise NotImplementedError

    def with_replica_specs(self, specs: dict[str, ReplicaSpec]) -> "JobSpec":
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class JobKind:
    """The facts about one kind that everybody shares."""

    resource: Resource
    singular: str
    spec: type[JobSpec]
    replica_field: str                       # the replica map in `spec`
    roles: tuple[str, ...]                   # as spelled in the map, in the order in which they are created and judged
    container: str                           # the container that trains
    port_name: str
    port: int
    restart: RestartPolicy = RestartPolicy.NEVER
    deciding: tuple[str, ...] = ("Worker",)  # the first of these that a job has says when it has succeeded

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def controller(self) -> str:
        """Our name towards the cluster: label `operator-name`, source of events."""
        return f"{self.singular}-controller"

    def role(self, name: str) -> str | None:
        """The role as it is properly spelled, however the user did."""
        return next((role for role in self.roles if role.lower() == name.lower()), None)


class TFJobSpec(JobSpec, frozen=True, kw_only=True):
    """TensorFlow: a chief (or master), workers, parameter servers, an evaluator."""

    success_policy: Annotated[
        str, Meta(description="Without a chief: empty, worker 0 decides; AllWorkers, all of them.")
    ] = ""
    tf_replica_specs: Annotated[
        dict[str, ReplicaSpec], Meta(description="By role: Chief or Master, PS, Worker, Evaluator.")
    ] = field(default_factory=dict)
    enable_dynamic_worker: Annotated[
        bool, Meta(description="Workers may come and go: each is told only of itself and the parameter servers.")
    ] = False

    @property
    def replica_specs(self) -> Mapping[str, ReplicaSpec]:
        return self.tf_replica_specs

    def with_replica_specs(self, specs: dict[str, ReplicaSpec]) -> "TFJobSpec":
        return replace(self, tf_replica_specs=specs)


TF_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "tfjobs", "TFJob"),
    singular="tfjob",
    spec=TFJobSpec,
    replica_field="tfReplicaSpecs",
    roles=("Chief", "Master", "Evaluator", "PS", "Worker"),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    deciding=("Chief", "Master", "Worker"),
)
TF_SUCCESS_POLICIES = ("", "AllWorkers")

KINDS: tuple[JobKind, ...] = (TF_JOB,)


def kind_named(kind: str) -> JobKind | None:
    return next((known for known in KINDS if known.kind == kind), None)
