"""The records a framework module is made of, and the job as frameworks and engine see it.

All kinds are read into one `TrainingJob`; nothing outside `frameworks` and `api` asks which kind it is. A framework is
data and two functions: what a replica is told about its peers, and what the states of the replicas mean for the job.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.api.defaults import main_container
from trainmaster.api.kubeflow_v1 import JobKind, JobSpec
from trainmaster.api.meta import Key, Object, Resource
from trainmaster.api.policy import (
    ON_REPLICA_FAILURE,
    POD_ENDS_WITH,
    JobStatus,
    OnReplicaFailure,
    PodEndsWith,
    ReplicaSpec,
    RunPolicy,
)


@dataclass(frozen=True, slots=True)
class Site:
    """What the operator was told about the cluster it works in, as far as pods are told of it."""

    cluster_domain: str = ""          # appended to host names if not empty: CUSTOM_CLUSTER_DOMAIN
    init_image: str = "alpine:3.10"   # of the init container that waits for a master's name
    init_tries: int = 100             # how often it looks, every two seconds
    init_template: str = ""           # YAML list of containers to use instead of it, with placeholders
    gang_scheduler: str = ""          # who places the pods of a job together: see `gang.dialects`; nobody if empty


ANYWHERE = Site()
# Below those that Kubernetes gives to services, and those that Linux gives to outgoing connections.
OWN_PORTS = range(10_000, 30_000)


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a job: its name as in the spec, and its completed spec."""

    name: str
    spec: ReplicaSpec

    @property
    def word(self) -> str:
        """The role in names, labels and rendezvous."""
        return self.name.lower()

    @property
    def replicas(self) -> int:
        return self.spec.replicas or 0

    @property
    def template(self) -> Object:
        return self.spec.template

    @property
    def on_host(self) -> bool:
        """Whether its pods share the network of their host."""
        return bool((self.template.get("spec") or {}).get("hostNetwork"))

    @property
    def containers(self) -> list[Object]:
        return list((self.template.get("spec") or {}).get("containers") or ())


@dataclass(frozen=True, slots=True)
class Group:
    """All members of a job, as each of them may need to know them."""

    job: str
    namespace: str
    kind: JobKind
    spec: JobSpec
    roles: tuple[Role, ...]
    site: Site = ANYWHERE
    own_ports: int | None = None      # where they begin, if members on the network of their host have their own (B-63)
    # Every member is told of every other: worked out once, or 500 members would mean 250,000 addresses.
    _addresses: dict[str, list[str]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int:
        return sum(role.replicas for role in self.roles)

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def has(self, *names: str) -> bool:
        return any(role.name in names for role in self.roles)

    def host(self, role: Role, index: int) -> str:
        """The short name of a member: its pod and its service are called so."""
        return f"{self.job}-{role.word}-{index}"

    def address(self, role: Role, index: int) -> str:
        """The full name of a member and its port, reachable from any namespace."""
        domain = f".{self.site.cluster_domain}" if self.site.cluster_domain else ""
        return f"{self.host(role, index)}.{self.namespace}.svc{domain}:{self.port(role, index)}"

    def addresses(self, role: Role) -> list[str]:
        """Those of all members of a role, by index."""
        if role.name not in self._addresses:
            self._addresses[role.name] = [self.address(role, index) for index in range(role.replicas)]
        return self._addresses[role.name]

    def port(self, role: Role, index: int = 0) -> int:
        """Where a member listens. An own port follows from the job and the member, so that nobody has to keep it: two
        members of a job never have the same one, and members of two jobs seldom.
        """
        if self.own_ports is not None and role.on_host:
            roles, number = self.kind.roles, 0 if role.name in self.kind.one_port else index
            return OWN_PORTS[(self.own_ports + roles.index(role.name) + number * len(roles)) % len(OWN_PORTS)]
        main = main_container(role.containers, self.kind.container) or {}
        for port in main.get("ports") or ():
            if port.get("name") == self.kind.port_name:
                return int(port["containerPort"])
        return self.kind.port


@dataclass(frozen=True, slots=True)
class Member:
    """One replica of a group."""

    role: Role
    index: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How the replicas of one role are. `failed` are those that will not come back."""

    role: Role
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    permanent: int = 0         # of the failed: those whose exit code says that trying again is useless
    first_done: bool = False   # replica 0 has ended, its training container with exit code 0

    @property
    def left(self) -> int:
        """How many have not succeeded yet."""
        return self.role.replicas - self.succeeded


@dataclass(frozen=True, slots=True)
class Running:
    message: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    message: str


Outcome = Running | Succeeded | Failed | None
Environment = Sequence[Object]  # entries of a container's `env`, in order


@dataclass(frozen=True, slots=True)
class Companion:
    """An object beside the pods, one of its kind for a job, named like it and owned by it."""

    resource: Resource
    spec: Object                # the fields that we own; those that others add are left alone


def nobody(group: Group, me: Member) -> Sequence[Object]:  # noqa: ARG001  an answer like the others
    return ()


def nothing(group: Group) -> Sequence[Companion]:  # noqa: ARG001  an answer like the others
    return ()


@dataclass(frozen=True, slots=True)
class Framework:
    """How one kind of job finds its peers and when it has succeeded."""

    kind: JobKind
    environment: Callable[[Group, Member], Environment]
    outcome: Callable[[Group, Mapping[str, Tally]], Outcome]
    every_container: bool = True            # who gets the environment: every container, or the main one alone
    leaders: tuple[str, ...] = ()           # pods of these roles carry `job-role: master`...
    first_leads: str = "Worker"             # ...and if the job has none of them, replica 0 of this role does
    deleted_reason: str = "DeleteJob"       # of the event when the finished job's time is over
    init_containers: Callable[[Group, Member], Sequence[Object]] = nobody    # run after the user's own
    companions: Callable[[Group], Sequence[Companion]] = nothing             # wanted while the job is not over
    companion_resources: tuple[Resource, ...] = ()                           # all that `companions` can ask for
    restarts: Callable[[Group, Role, int], str] | None = None  # what is told of so many restarts, beside the engine's
    runs_first: bool = False                # the conditions show Running before the end, however fast the end came


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """One job, read and completed. Everything the engine knows about it except its children."""

    framework: Framework
    name: str
    namespace: str
    uid: str
    group: Group
    status: JobStatus
    deleting: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.framework.kind.kind

    @property
    def resource(self) -> Resource:
        return self.framework.kind.resource

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def roles(self) -> tuple[Role, ...]:
        return self.group.roles

    @property
    def on_replica_failure(self) -> OnReplicaFailure:
        said = self.annotations.get(ON_REPLICA_FAILURE)
        return OnReplicaFailure(said) if said in OnReplicaFailure.supported() else OnReplicaFailure.UNSAID

    @property
    def ends_with_training(self) -> bool:
        """Whether a pod has ended when its training container has, whoever else runs in it."""
        return self.annotations.get(POD_ENDS_WITH) == PodEndsWith.TRAINING_CONTAINER

    @property
    def run_policy(self) -> RunPolicy:
        return self.group.spec.run_policy
