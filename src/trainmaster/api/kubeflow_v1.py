"""The training jobs of kubeflow.org/v1: what each kind is called, and the fields of its spec.

A `JobKind` holds the facts that defaults, validation, schema and frameworks share, so that they cannot disagree. How a
kind finds its peers and when it has succeeded is not here but in `frameworks`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from msgspec import Meta, field
from msgspec.structs import replace

from trainmaster.api.meta import Resource
from trainmaster.api.policy import ReplicaSpec, RestartPolicy, RunPolicy
from trainmaster.api.wire import Int32, Metric, Wire

GROUP, VERSION = "kubeflow.org", "v1"


class JobSpec(Wire, frozen=True, kw_only=True):
    """What the specs of all kinds have in common."""

    roles_field: ClassVar[str]  # which of our fields is the replica map

    run_policy: Annotated[RunPolicy, Meta(description="How the job as a whole runs and ends.")] = RunPolicy()

    @property
    def replica_specs(self) -> Mapping[str, ReplicaSpec]:
        """The replica map, whatever the kind calls it."""
        found: Mapping[str, ReplicaSpec] = getattr(self, self.roles_field)
        return found

    def with_replica_specs(self, specs: dict[str, ReplicaSpec]) -> Self:
        return replace(self, **{self.roles_field: specs})

    def filled_in(self) -> Self:
        """With the defaults that only this kind has."""
        return self


@dataclass(frozen=True, slots=True)
class JobKind:
    """The facts about one kind that everybody shares."""

    resource: Resource
    singular: str
    short: str                               # for kubectl, which kubeflow's definitions lack; nothing depends on it
    spec: type[JobSpec]
    replica_field: str                       # the replica map in `spec`
    roles: tuple[str, ...]                   # as spelled in the map, in the order in which they are created and judged
    container: str                           # the container that trains
    port_name: str
    port: int
    restart: RestartPolicy = RestartPolicy.NEVER
    deciding: tuple[str, ...] = ("Worker",)  # the first of these that a job has says when it has succeeded
    needed: tuple[str, ...] = ()             # roles that a job must have
    single: tuple[str, ...] = ()             # roles of which there is exactly one replica
    never_empty: tuple[str, ...] = ()        # roles that have at least one replica if the job has them
    one_port: tuple[str, ...] = ()           # roles of whose members the others are told a single port for all
    required: tuple[str, ...] = ()           # fields of the spec that must be there beside the replica map
    scaled: str = ""                         # the role that `kubectl scale` and autoscalers change, if any

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

    roles_field = "tf_replica_specs"

    success_policy: Annotated[
        str, Meta(description="Without a chief: empty, worker 0 decides; AllWorkers, all of them.")
    ] = ""
    tf_replica_specs: Annotated[
        dict[str, ReplicaSpec], Meta(description="By role: Chief or Master, PS, Worker, Evaluator.")
    ] = field(default_factory=dict)
    enable_dynamic_worker: Annotated[
        bool, Meta(description="Workers may come and go: each is told only of itself and the parameter servers.")
    ] = False


class Setting(Wire, frozen=True, kw_only=True):
    """One setting of the rendezvous."""

    key: str = ""
    value: str = ""


class ElasticPolicy(Wire, frozen=True, kw_only=True):
    """How many workers there may be, and how torchrun brings them together."""

    min_replicas: Annotated[Int32 | None, Meta(description="The fewest workers; all there are if absent.")] = None
    max_replicas: Annotated[Int32 | None, Meta(description="The most workers; all there are if absent.")] = None
    rdzv_backend: Annotated[str | None, Meta(description="c10d (if absent), etcd or etcd-v2.")] = None
    rdzv_port: Annotated[Int32 | None, Meta(description="Port of the rendezvous; that of worker 0 if absent.")] = None
    rdzv_host: Annotated[str | None, Meta(description="Host of the rendezvous; worker 0 if absent.")] = None
    rdzv_id: Annotated[str | None, Meta(description="Name of the rendezvous, if it has one.")] = None
    rdzv_conf: Annotated[tuple[Setting, ...], Meta(description="Further settings of the rendezvous.")] = ()
    standalone: Annotated[bool | None, Meta(description="A rendezvous of its own in each pod.")] = None
    n_proc_per_node: Annotated[Int32 | None, Meta(description="Deprecated: use spec.nprocPerNode.")] = None
    max_restarts: Annotated[Int32 | None, Meta(description="How often torchrun starts its processes again.")] = None
    metrics: Annotated[
        tuple[Metric, ...], Meta(description="What an autoscaler goes by (autoscaling/v2); without any there is none.")
    ] = ()


class PyTorchJobSpec(JobSpec, frozen=True, kw_only=True):
    """PyTorch: a master and workers, or workers alone."""

    roles_field = "pytorch_replica_specs"

    elastic_policy: Annotated[ElasticPolicy | None, Meta(description="For a number of workers that changes.")] = None
    pytorch_replica_specs: Annotated[
        dict[str, ReplicaSpec], Meta(description="By role: Master (one replica), Worker.")
    ] = field(default_factory=dict)
    nproc_per_node: Annotated[
        str | None, Meta(description="Processes in each pod: auto (if absent), cpu, gpu or a number.")
    ] = None

    def filled_in(self) -> Self:
        old_way = self.elastic_policy is not None and self.elastic_policy.n_proc_per_node is not None
        return self if old_way or self.nproc_per_node else replace(self, nproc_per_node="auto")


class XGBoostJobSpec(JobSpec, frozen=True, kw_only=True):
    """XGBoost and LightGBM: a master that keeps track, and workers."""

    roles_field = "xgb_replica_specs"

    xgb_replica_specs: Annotated[
        dict[str, ReplicaSpec], Meta(description="By role: Master (one replica, always), Worker.")
    ] = field(default_factory=dict)


class MXJobSpec(JobSpec, frozen=True, kw_only=True):
    """MXNet and BytePS: a scheduler, servers and workers; or a tuner with its tracker and servers."""

    roles_field = "mx_replica_specs"

    job_mode: Annotated[str, Meta(description="MXTrain or MXTune.")] = ""
    mx_replica_specs: Annotated[
        dict[str, ReplicaSpec],
        Meta(description="By role: Scheduler, Server, Worker; TunerTracker, TunerServer, Tuner."),
    ] = field(default_factory=dict)


class PaddleElasticPolicy(Wire, frozen=True, kw_only=True):
    """Taken and kept for other people's manifests; Paddle's own launcher does what it describes."""

    min_replicas: Annotated[Int32 | None, Meta(description="The fewest workers.")] = None
    max_replicas: Annotated[Int32 | None, Meta(description="The most workers.")] = None
    max_restarts: Annotated[Int32 | None, Meta(description="How often processes are started again.")] = None
    metrics: Annotated[tuple[Metric, ...], Meta(description="What an autoscaler would go by (autoscaling/v2).")] = ()


class PaddleJobSpec(JobSpec, frozen=True, kw_only=True):
    """Paddle: workers that are all alike, or servers (Master) and trainers (Worker)."""

    roles_field = "paddle_replica_specs"

    elastic_policy: Annotated[PaddleElasticPolicy | None, Meta(description="Kept, without effect.")] = None
    paddle_replica_specs: Annotated[
        dict[str, ReplicaSpec], Meta(description="By role: Worker; with Master they are trainers and it serves.")
    ] = field(default_factory=dict)


class JAXJobSpec(JobSpec, frozen=True, kw_only=True):
    """JAX: workers, the first of which coordinates."""

    roles_field = "jax_replica_specs"

    jax_replica_specs: Annotated[dict[str, ReplicaSpec], Meta(description="By role: Worker.")] = field(
        default_factory=dict
    )


TF_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "tfjobs", "TFJob"),
    singular="tfjob",
    short="tfj",
    spec=TFJobSpec,
    replica_field="tfReplicaSpecs",
    roles=("Chief", "Master", "Evaluator", "PS", "Worker"),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    deciding=("Chief", "Master", "Worker"),
)
PYTORCH_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "pytorchjobs", "PyTorchJob"),
    singular="pytorchjob",
    short="ptj",
    spec=PyTorchJobSpec,
    replica_field="pytorchReplicaSpecs",
    roles=("Master", "Worker"),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    restart=RestartPolicy.ON_FAILURE,
    deciding=("Master", "Worker"),
    single=("Master",),
    never_empty=("Worker",),
    scaled="Worker",
)
XGBOOST_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "xgboostjobs", "XGBoostJob"),
    singular="xgboostjob",
    short="xgbj",
    spec=XGBoostJobSpec,
    replica_field="xgbReplicaSpecs",
    roles=("Master", "Worker"),
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    deciding=("Master",),
    needed=("Master",),
    single=("Master",),
    one_port=("Worker",),
)
MX_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "mxjobs", "MXJob"),
    singular="mxjob",
    short="mxj",
    spec=MXJobSpec,
    replica_field="mxReplicaSpecs",
    roles=("Scheduler", "Server", "Worker", "TunerTracker", "TunerServer", "Tuner"),
    container="mxnet",
    port_name="mxjob-port",
    port=9091,
    deciding=("Scheduler", "Tuner", "Worker"),
    required=("jobMode",),
)
PADDLE_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "paddlejobs", "PaddleJob"),
    singular="paddlejob",
    short="pdj",
    spec=PaddleJobSpec,
    replica_field="paddleReplicaSpecs",
    roles=("Master", "Worker"),
    container="paddle",
    port_name="master",
    port=36543,
    restart=RestartPolicy.ON_FAILURE,
    deciding=("Master", "Worker"),
    scaled="Worker",
)
JAX_JOB = JobKind(
    resource=Resource(GROUP, VERSION, "jaxjobs", "JAXJob"),
    singular="jaxjob",
    short="jaxj",
    spec=JAXJobSpec,
    replica_field="jaxReplicaSpecs",
    roles=("Worker",),
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    scaled="Worker",
)
TF_SUCCESS_POLICIES = ("", "AllWorkers")
MX_JOB_MODES = ("MXTrain", "MXTune")

KINDS: tuple[JobKind, ...] = (TF_JOB, PYTORCH_JOB, XGBOOST_JOB, MX_JOB, PADDLE_JOB, JAX_JOB)


def kind_named(kind: str) -> JobKind | None:
    return next((known for known in KINDS if known.kind == kind), None)
