"""Every default, applied in memory at the edge and never stored: the spec is the user's, we write only status."""

from collections.abc import Mapping

from msgspec.structs import replace

from trainmaster.api.kubeflow_v1 import JobKind, JobSpec
from trainmaster.api.meta import Json, Object
from trainmaster.api.policy import CleanPodPolicy, ReplicaSpec, RestartPolicy, RunPolicy


def complete(spec: JobSpec, kind: JobKind) -> JobSpec:
    """The spec as it is meant: roles properly spelled and in the kind's order, everything left out filled in."""
    completed = {}
    for role in kind.roles:
        # Both `worker` and `Worker` given: the proper spelling wins, whatever their order.
        given = [key for key in spec.replica_specs if key.lower() == role.lower()]
        if given:
            chosen = role if role in given else given[0]
            completed[role] = _replica_spec(spec.replica_specs[chosen], kind)
    return replace(spec.with_replica_specs(completed).filled_in(), run_policy=_run_policy(spec.run_policy))


def elastic_bounds(least: int | None, most: int | None, workers: int) -> tuple[int, int]:
    """Between how many workers an elastic job may have: one bound given is both, none given is what there is."""
    if least is None and most is None:
        return workers, workers
    given = [bound for bound in (least, most) if bound is not None]
    return given[0], given[-1]


def main_container(containers: list[Object], name: str) -> Object | None:
    """The container that trains: the one with the kind's name, else the first."""
    return next((found for found in containers if found.get("name") == name), containers[0] if containers else None)


def _run_policy(given: RunPolicy) -> RunPolicy:
    if given.clean_pod_policy is CleanPodPolicy.UNSAID:
        return replace(given, clean_pod_policy=CleanPodPolicy.NONE)
    return given


def _replica_spec(given: ReplicaSpec, kind: JobKind) -> ReplicaSpec:
    return replace(
        given,
        replicas=1 if given.replicas is None else given.replicas,
        restart_policy=kind.restart if given.restart_policy is RestartPolicy.UNSAID else given.restart_policy,
        template=_with_port(given.template, kind),
    )


def _with_port(template: Mapping[str, Json], kind: JobKind) -> Object:
    """The template with the kind's port on the main container, unless a port of that name is there."""
    spec = template.get("spec") or {}
    containers = list(spec.get("containers") or ())
    main = main_container(containers, kind.container)
    if main is None or any(port.get("name") == kind.port_name for port in main.get("ports") or ()):
        return dict(template)
    extended = {**main, "ports": [*(main.get("ports") or ()), {"name": kind.port_name, "containerPort": kind.port}]}
    containers[next(i for i, found in enumerate(containers) if found is main)] = extended
    return {**template, "spec": {**spec, "containers": containers}}
