"""PyTorchJob: a master and workers, or workers alone, possibly elastic; peers are told by MASTER_*, RANK and PET_*.

torchrun takes every PET_* variable for the default of the option of that name. Ranks count pods, not processes (B-54).
Workers wait in an init container until their master's name can be resolved.
"""

from collections.abc import Mapping, Sequence

from trainmaster.api.core import AUTOSCALERS
from trainmaster.api.defaults import elastic_bounds
from trainmaster.api.kubeflow_v1 import PYTORCH_JOB, ElasticPolicy, PyTorchJobSpec
from trainmaster.api.meta import Object
from trainmaster.frameworks import outcomes, waiting
from trainmaster.frameworks.framework import Companion, Environment, Framework, Group, Member, Outcome, Role, Tally


def environment(group: Group, me: Member) -> Environment:
    spec, master = _spec(group), group.role("Master")
    told = [("PYTHONUNBUFFERED", "1")]
    if master is not None:
        told += _ranked(group, me, master)
    if spec.nproc_per_node:
        told.append(("PET_NPROC_PER_NODE", spec.nproc_per_node))
    if spec.elastic_policy is not None:
        told += _elastic(group, spec.elastic_policy)
    else:
        told.append(("PET_NNODES", str(group.size)))
        if master is None:
            told += _masterless(group, me)
    return [{"name": name, "value": value} for name, value in told]


def outcome(group: Group, tallies: Mapping[str, Tally]) -> Outcome:
    """Elastic workers need not all come to the end: torchrun has one result, and any of them has it."""
    return outcomes.led(group, tallies, one_is_enough=_spec(group).elastic_policy is not None)


def init_containers(group: Group, me: Member) -> Sequence[Object]:
    master = group.role("Master")
    return waiting.for_host(group.host(master, 0), group.site) if master is not None and me.role is not master else ()


def companions(group: Group) -> Sequence[Companion]:
    """The autoscaler of an elastic job that says what to go by."""
    policy = _spec(group).elastic_policy
    if policy is None or not policy.metrics:
        return ()
    least, most = _bounds(group, policy)
    target = {"apiVersion": group.kind.resource.api_version, "kind": group.kind.kind, "name": group.job}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, "metrics": list(policy.metrics)}
    return (Companion(AUTOSCALERS, spec),)


def _ranked(group: Group, me: Member, master: Role) -> list[tuple[str, str]]:
    port, address = str(group.port(master)), group.host(master, 0)
    rank = str(me.index if me.role is master else me.index + 1)
    return [
        ("MASTER_PORT", port),
        ("PET_MASTER_PORT", port),
        ("MASTER_ADDR", address),
        ("PET_MASTER_ADDR", address),
        ("WORLD_SIZE", str(group.size * _processes(group))),
        ("RANK", rank),
        ("PET_NODE_RANK", rank),
    ]


def _masterless(group: Group, me: Member) -> list[tuple[str, str]]:
    """Upstream tells nobody whom to meet (B-55). What users have told them themselves since is left alone."""
    taken = {entry.get("name") for container in me.role.containers for entry in container.get("env") or ()}
    offered = [
        ("PET_MASTER_ADDR", group.host(me.role, 0)),
        ("PET_MASTER_PORT", str(group.port(me.role))),
        ("PET_NODE_RANK", str(me.index)),
    ]
    return [(name, value) for name, value in offered if name not in taken]


def _elastic(group: Group, policy: ElasticPolicy) -> list[tuple[str, str]]:
    worker = group.role("Worker")
    host = policy.rdzv_host or (group.host(worker, 0) if worker else "")
    port = policy.rdzv_port or (group.port(worker) if worker else group.kind.port)
    least, most = _bounds(group, policy)
    if policy.min_replicas is None and policy.max_replicas is None and group.has("Master"):
        least, most = least + 1, most + 1  # nobody said how many nodes: all of them, the master too (B-36)
    told: list[tuple[str, str | None]] = [
        ("PET_RDZV_ENDPOINT", f"{host}:{port}"),
        ("PET_RDZV_BACKEND", policy.rdzv_backend or "c10d"),
        ("PET_NNODES", f"{least}:{most}"),
        ("PET_MAX_RESTARTS", _number(policy.max_restarts)),
        ("PET_NPROC_PER_NODE", _number(policy.n_proc_per_node)),
        ("PET_RDZV_ID", policy.rdzv_id),
        ("PET_RDZV_CONF", ",".join(f"{each.key}={each.value}" for each in policy.rdzv_conf) or None),
        ("PET_STANDALONE", "1" if policy.standalone else None),  # upstream's empty text cannot be parsed (B-35)
    ]
    return [(name, value) for name, value in told if value is not None]


def _bounds(group: Group, policy: ElasticPolicy) -> tuple[int, int]:
    worker = group.role("Worker")
    return elastic_bounds(policy.min_replicas, policy.max_replicas, worker.replicas if worker else 0)


def _processes(group: Group) -> int:
    """In each pod; only a number multiplies (B-54)."""
    given = _spec(group).nproc_per_node or ""
    return int(given) if given.isdecimal() else 1


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _spec(group: Group) -> PyTorchJobSpec:
    assert isinstance(group.spec, PyTorchJobSpec)
    return group.spec


PYTORCH = Framework(
    kind=PYTORCH_JOB,
    environment=environment,
    outcome=outcome,
    leaders=("Master",),
    deleted_reason="DeletePod",
    init_containers=init_containers,
    companions=companions,
    companion_resources=(AUTOSCALERS,),
    restarts=outcomes.restarts,
)
