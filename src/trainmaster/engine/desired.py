"""The pods and services that should exist. Their names are fixed: making one twice is a conflict, not a second one."""

from collections.abc import Mapping

from trainmaster.api.core import PODS, SERVICES
from trainmaster.api.defaults import main_container
from trainmaster.api.membership import INDEX, JOB_NAME, JOB_ROLE, OPERATOR_NAME, ROLE
from trainmaster.api.meta import Json, Object
from trainmaster.api.policy import RestartPolicy
from trainmaster.engine.actions import CreatePod, CreateService, Event, warning
from trainmaster.frameworks.framework import Environment, Member, Role, TrainingJob
from trainmaster.gang import groups
from trainmaster.gang.dialects import Dialect, dialect, known
from trainmaster.gang.groups import Gang, Part

_OVERWRITTEN = warning(
    "SetPodTemplateRestartPolicy",
    "Restart policy in pod template will be overwritten by restart policy in replica spec",
)


_ELSEWHERE = warning(
    "SetPodTemplateSchedulerName",
    "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten",
)


def dialect_of(job: TrainingJob) -> Dialect | None:
    """How to speak to the job's gang scheduler, if there is one.

    Pods that the user has put into a group of another one that we know are that one's: ours would wait for a group
    that nobody makes.
    """
    spoken = dialect(job.group.site.gang_scheduler)
    if spoken is None:
        return None
    named = {(role.template.get("spec") or {}).get("schedulerName") for role in job.roles}
    other = known(str(named.pop() or "")) if len(named) == 1 else None
    return other if other is not None and groups.users_group(gang_of(job), other) else spoken


def gang_of(job: TrainingJob) -> Gang:
    parts = tuple(_part(role) for role in job.roles)
    return Gang(job.name, parts, job.run_policy.scheduling_policy or groups.NO_POLICY)


def pod(job: TrainingJob, role: Role, index: int) -> CreatePod:
    template = role.template
    given = template.get("metadata") or {}
    meta: Object = {
        "name": job.group.host(role, index),
        "namespace": job.namespace,
        "labels": {**(given.get("labels") or {}), **labels(job, role, index), **_leader_label(job, role, index)},
        "ownerReferences": [owner_reference(job)],
    }
    for kept in ("annotations", "finalizers"):
        if given.get(kept):
            meta[kept] = given[kept]
    spec = template.get("spec") or {}
    made: Object = {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": meta}
    made["spec"] = _pod_spec(job, role, index, spec)
    told = [_OVERWRITTEN] if spec.get("restartPolicy") else []
    return CreatePod(made, (*told, *_in_gang(job, role, made)))


def _in_gang(job: TrainingJob, role: Role, pod: Object) -> list[Event]:
    """Mark a pod as one of its gang, for its scheduler; what people should know about that."""
    spoken = dialect_of(job)
    if spoken is None:
        return []
    gang = gang_of(job)
    marks = groups.marks(gang, spoken, _part(role))
    pod["spec"]["schedulerName"] = marks.scheduler
    for key, said in (("labels", marks.labels), ("annotations", marks.annotations)):
        if said:
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **said}
    return [_ELSEWHERE] if groups.asks_elsewhere(gang, spoken) else []


def service(job: TrainingJob, role: Role, index: int) -> CreateService:
    """The headless service that gives one member its name."""
    named = labels(job, role, index)
    return CreateService({
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": job.group.host(role, index),
            "namespace": job.namespace,
            "labels": named,
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": named,
            "ports": _service_ports(job, role, index),
            # Peers look for each other while they start; with a readiness probe nobody would be found (B-29).
            "publishNotReadyAddresses": True,
        },
    })


def labels(job: TrainingJob, role: Role, index: int) -> dict[str, str]:
    return {
        OPERATOR_NAME: job.framework.kind.controller,
        JOB_NAME: job.name,
        ROLE: role.word,
        INDEX: str(index),
    }


def owner_reference(job: TrainingJob) -> Object:
    return {
        "apiVersion": job.resource.api_version,
        "kind": job.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _part(role: Role) -> Part:
    return Part(role.word, role.replicas, role.template)


def _leader_label(job: TrainingJob, role: Role, index: int) -> dict[str, str]:
    framework = job.framework
    if job.group.has(*framework.leaders):
        leads = role.name in framework.leaders
    else:
        leads = role.name == framework.first_leads and index == 0
    return {JOB_ROLE: "master"} if leads else {}


def _pod_spec(job: TrainingJob, role: Role, index: int, spec: Mapping[str, Json]) -> Object:
    told = job.framework.environment(job.group, Member(role, index))
    main = main_container(role.containers, job.framework.kind.container)
    rule = role.spec.restart_policy
    made = {
        **spec,
        "containers": [
            _container(_listening(job, role, index, found) if found is main else found,
                       told if job.framework.every_container or found is main else ())
            for found in role.containers
        ],
        # The kubelet does not know ExitCode: we look at the code and decide.
        "restartPolicy": RestartPolicy.NEVER.value if rule is RestartPolicy.EXIT_CODE else rule.value,
    }
    prepare = [*(spec.get("initContainers") or ()), *job.framework.init_containers(job.group, Member(role, index))]
    if prepare:
        made["initContainers"] = [_container(found, ()) for found in prepare]
    return made


def _container(given: Object, told: Environment) -> Object:
    # Without a message of its own, a container that fails leaves the end of its log as its last words (B-67).
    made = {"terminationMessagePolicy": "FallbackToLogsOnError", **given}
    if told:
        # After the user's own: the later entry wins in the container (B-39).
        made["env"] = [*(given.get("env") or ()), *told]
    return made


def _listening(job: TrainingJob, role: Role, index: int, main: Object) -> Object:
    """The training container with the port of its own that a member has on the network of its host, if it has one."""
    if job.group.own_ports is None or not role.on_host:
        return main
    number = job.group.port(role, index)
    own = {"containerPort": number, "hostPort": number}     # the two must be the same there
    return {**main, "ports": [given | own if given.get("name") == job.framework.kind.port_name else given
                              for given in main.get("ports") or ()]}


def _service_ports(job: TrainingJob, role: Role, index: int) -> list[Object]:
    """Every port of the main container, each number and protocol once, all named, in the order given."""
    main = _listening(job, role, index, main_container(role.containers, job.framework.kind.container) or {})
    made: dict[str, Object] = {}
    for given in main.get("ports") or ():
        number, protocol = given["containerPort"], given.get("protocol") or "TCP"
        name = given.get("name") or f"port-{number}{'' if protocol == 'TCP' else f'-{protocol.lower()}'}"
        port = {"name": name, "port": number} | ({} if protocol == "TCP" else {"protocol": protocol})
        if not any((known["port"], known.get("protocol") or "TCP") == (number, protocol) for known in made.values()):
            made.setdefault(name, port)
    return list(made.values())
