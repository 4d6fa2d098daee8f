"""PaddleJob: workers that are all alike, or servers (Master) and trainers (Worker); peers are told by PADDLE_*."""

from collections.abc import Mapping

from trainmaster.api.kubeflow_v1 import PADDLE_JOB
from trainmaster.api.meta import Object
from trainmaster.frameworks import outcomes
from trainmaster.frameworks.framework import Environment, Framework, Group, Member, Outcome, Tally

# How a mode is announced to Paddle's launcher: one server, or one trainer, in each pod.
_SHARE = {"Master": "PADDLE_SERVER_NUM", "Worker": "PADDLE_TRAINER_NUM"}


def environment(group: Group, me: Member) -> Environment:
    master = group.role("Master")
    first = master or me.role
    told: list[Object] = [
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "PADDLE_JOB_ID", "value": group.job},
        {"name": "PADDLE_NNODES", "value": str(group.size)},
    ]
    if me.role is first and me.index == 0:
        # The one that all others ask cannot ask for itself before it listens: it is told its own address.
        told += [
            {"name": "POD_IP_DUMMY", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "PADDLE_MASTER", "value": f"$(POD_IP_DUMMY):{group.port(first)}"},
        ]
    else:
        told.append({"name": "PADDLE_MASTER", "value": f"{group.host(first, 0)}:{group.port(first)}"})
    if master is not None:
        told.append({"name": _SHARE[me.role.name], "value": "1"})
    return told


def outcome(group: Group, tallies: Mapping[str, Tally]) -> Outcome:
    return outcomes.led(group, tallies)


PADDLE = Framework(
    kind=PADDLE_JOB,
    environment=environment,
    outcome=outcome,
    leaders=("Master",),  # without one worker 0 leads; upstream leaves such jobs without (B-34)
    deleted_reason="DeletePod",
    restarts=outcomes.restarts,
)
