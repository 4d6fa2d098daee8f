"""XGBoostJob, also for LightGBM: a master that keeps track, and workers; peers are told by MASTER_*, RANK, WORKER_*."""

from collections.abc import Mapping

from trainmaster.api.kubeflow_v1 import XGBOOST_JOB
from trainmaster.frameworks import outcomes
from trainmaster.frameworks.framework import Environment, Framework, Group, Member, Outcome, Tally


def environment(group: Group, me: Member) -> Environment:
    master, worker = group.role("Master"), group.role("Worker")
    assert master is not None, "validation sees to that"
    rank = me.index if me.role is master else me.index + master.replicas
    told = [
        ("MASTER_PORT", str(group.port(master))),
        ("MASTER_ADDR", group.host(master, 0)),
        ("WORLD_SIZE", str(group.size)),
        ("RANK", str(rank)),
        ("PYTHONUNBUFFERED", "1"),
    ]
    if worker is not None and group.size > 1:
        told += [
            ("WORKER_PORT", str(group.port(worker))),
            ("WORKER_ADDRS", ",".join(group.host(worker, index) for index in range(worker.replicas))),
        ]
    return [{"name": name, "value": value} for name, value in told]


def outcome(group: Group, tallies: Mapping[str, Tally]) -> Outcome:
    return outcomes.led(group, tallies)


XGBOOST = Framework(
    kind=XGBOOST_JOB,
    environment=environment,
    outcome=outcome,
    leaders=("Master",),
    first_leads="",
    restarts=outcomes.restarts,
    runs_first=True,
)
