"""What all training jobs share: how to run, restart and clean up, and how a job says how it is.

The fields are those of kubeflow.org/v1, plus `status.postMortem`, which is ours: what must be known about pods that
no longer exist. Everything the engine remembers is there and nowhere else, so that an operator can die and another one
can go on.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, field

from trainmaster.api.wire import Int32, Int64, PodTemplate, Resources, Wire, Word

# The only value of `managedBy` that makes a job ours; absent means the same.
MANAGED_BY_US = "kubeflow.org/training-operator"
MANAGERS = ("kueue.x-k8s.io/multikueue", MANAGED_BY_US)

# The annotation of a job that says what one failed replica means for the others: an `OnReplicaFailure`.
ON_REPLICA_FAILURE = "trainmaster.dev/on-replica-failure"
# The annotation of a job that says when its pods have ended: a `PodEndsWith`.
POD_ENDS_WITH = "trainmaster.dev/pod-ends-with"
# The annotation of a job that says which ports its pods have on the network of their host: a `HostPorts`.
HOST_PORTS = "trainmaster.dev/host-ports"


class RestartPolicy(Word):
    """What happens to a replica that failed. `EXIT_CODE` is ours to carry out; the kubelet does not know it."""

    UNSAID = ""
    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    EXIT_CODE = "ExitCode"


class CleanPodPolicy(Word):
    """Which pods go, with their services, once the job is finished."""

    UNSAID = ""
    NONE = "None"
    RUNNING = "Running"
    ALL = "All"


class OnReplicaFailure(Word):
    """What one failed replica means for the others. Said by an annotation, because the spec is not ours to extend."""

    UNSAID = ""
    RESTART_ALL = "RestartAll"
    FAIL_ALL = "FailAll"


class PodEndsWith(Word):
    """What ends a pod. Unsaid, all of its containers do; sidecars of a service mesh then keep it running for ever."""

    UNSAID = ""
    TRAINING_CONTAINER = "TrainingContainer"


class HostPorts(Word):
    """Which ports pods have that share the network of their host. Unsaid, that of the template or of the kind: of all
    pods with the same one a host can have one only (B-63).
    """

    UNSAID = ""
    OWN = "Own"


class ConditionType(Word):
    """The types of condition a job can have."""

    CREATED = "Created"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUCCEEDED = "Succeeded"
    SUSPENDED = "Suspended"
    FAILED = "Failed"


class SchedulingPolicy(Wire, frozen=True, kw_only=True):
    """What the gang scheduler is told about the job."""

    min_available: Annotated[
        Int32 | None, Meta(description="How many pods must fit together; all of them if absent.")
    ] = None
    queue: Annotated[str, Meta(description="The queue the job waits in. It cannot be changed later.")] = ""
    min_resources: Annotated[
        Resources | None, Meta(description="What the gang needs in total; computed from the pods if absent.")
    ] = None
    priority_class: Annotated[str, Meta(description="Priority class of the pod group.")] = ""
    schedule_timeout_seconds: Annotated[
        Int32 | None, Meta(description="How long the scheduler may hold pods back before it starts over.")
    ] = None


class RunPolicy(Wire, frozen=True, kw_only=True):
    """How the job as a whole runs and ends."""

    clean_pod_policy: Annotated[
        CleanPodPolicy, Meta(description="Which pods are deleted once the job is finished: None, Running or All.")
    ] = CleanPodPolicy.UNSAID
    ttl_seconds_after_finished: Annotated[
        Int32 | None, Meta(description="The finished job is deleted after so many seconds; never if absent.")
    ] = None
    active_deadline_seconds: Annotated[
        Int64 | None, Meta(description="The job fails once it has been active for so many seconds.")
    ] = None
    backoff_limit: Annotated[
        Int32 | None, Meta(description="At so many restarts the job fails; unlimited if absent.")
    ] = None
    scheduling_policy: Annotated[SchedulingPolicy | None, Meta(description="For gang scheduling.")] = None
    suspend: Annotated[
        bool, Meta(description="True removes the pods until it is false again.", extra={"stored": True})
    ] = False
    managed_by: Annotated[
        str | None, Meta(description=f"Who runs the job: {MANAGERS[1]} (if absent) or {MANAGERS[0]}.")
    ] = None


class ReplicaSpec(Wire, frozen=True, kw_only=True):
    """One role of the job: how many replicas, made from which template, restarted when."""

    replicas: Annotated[Int32 | None, Meta(description="How many replicas; 1 if absent.")] = None
    template: Annotated[PodTemplate, Meta(description="What each replica's pod is made from.")] = field(
        default_factory=dict
    )
    restart_policy: Annotated[
        RestartPolicy, Meta(description="When a failed replica comes back: Always, OnFailure, Never or ExitCode.")
    ] = RestartPolicy.UNSAID


class Condition(Wire, frozen=True, kw_only=True):
    """One thing that is or was true of the job. The list is ordered by last change."""

    type: str
    status: Annotated[str, Meta(description="True, False or Unknown.")]
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None

    @property
    def true(self) -> bool:
        return self.status == "True"


class ReplicaStatus(Wire, frozen=True, kw_only=True):
    """How many replicas of one role are in which state."""

    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    selector: Annotated[str, Meta(description="Label selector of the role's pods, for autoscalers.")] = ""


class EndedReplica(Wire, frozen=True, kw_only=True):
    """How one replica ended badly. Written down before its pod is deleted."""

    pod: str
    uid: str
    exit_code: Annotated[Int32 | None, Meta(description="Of the training container; absent if it never ran.")] = None
    reason: Annotated[str, Meta(description="As the node gave it: Error, OOMKilled, Evicted...")] = ""
    says: Annotated[str, Meta(description="The exit code in words.")] = ""
    node: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    last_words: Annotated[str, Meta(description="The end of what the replica printed.")] = ""


class ReplicaMemory(Wire, frozen=True, kw_only=True):
    """What is known of one index beyond its present pod."""

    uid: Annotated[str, Meta(description="The latest pod of this index whose bad end was written down.")]
    restarts: Annotated[Int32, Meta(description="How often this index was started again, in place or anew.")] = 0


class PostMortem(Wire, frozen=True, kw_only=True):
    """What must be known about pods that are gone or going. Bounded: see `engine.memory`."""

    ended: Annotated[
        tuple[EndedReplica, ...], Meta(description="Bad ends, oldest first; the first few and the last few are kept.")
    ] = ()
    replicas: Annotated[
        dict[str, ReplicaMemory], Meta(description="By role and index, for example worker-1.")
    ] = field(default_factory=dict)
    completed: Annotated[
        dict[str, str], Meta(description="By role: the indexes that succeeded, such as 0-3,7. They never run again.")
    ] = field(default_factory=dict)
    leaving: Annotated[
        tuple[str, ...], Meta(description="UIDs of pods that we sent away and that still end; they count for nothing.")
    ] = ()


class JobStatus(Wire, frozen=True, kw_only=True):
    """How the job is."""

    conditions: tuple[Condition, ...] = ()
    replica_statuses: dict[str, ReplicaStatus] = field(default_factory=dict)
    start_time: Annotated[datetime | None, Meta(description="When it last became active.")] = None
    completion_time: Annotated[datetime | None, Meta(description="When it finished, well or badly.")] = None
    last_reconcile_time: datetime | None = None
    post_mortem: PostMortem | None = None

    def condition(self, kind: ConditionType) -> Condition | None:
        return next((found for found in self.conditions if found.type == kind), None)

    def says(self, kind: ConditionType) -> bool:
        """Whether the condition is there and true."""
        found = self.condition(kind)
        return found is not None and found.true

    @property
    def finished(self) -> bool:
        return self.says(ConditionType.SUCCEEDED) or self.says(ConditionType.FAILED)
