"""TFJob: chief or master, workers, parameter servers, evaluator; peers are told through TF_CONFIG.

The JSON is byte for byte what tf-operator and training-operator write: scripts parse it, and some compare it.
"""

from collections.abc import Mapping

import msgspec

from trainmaster.api.kubeflow_v1 import TF_JOB, TFJobSpec
from trainmaster.api.meta import Json
from trainmaster.frameworks import outcomes
from trainmaster.frameworks.framework import Environment, Framework, Group, Member, Outcome, Tally

_CHIEFS = ("Chief", "Master")
_json = msgspec.json.Encoder()


def environment(group: Group, me: Member) -> Environment:
    if group.size == 1:
        return ()  # nobody to talk to: TensorFlow's own single-process path, as upstream
    config = _sparse(group, me) if _spec(group).enable_dynamic_worker else _whole(group, me)
    return ({"name": "TF_CONFIG", "value": _json.encode(config).decode()},)


def outcome(group: Group, tallies: Mapping[str, Tally]) -> Outcome:
    """The chief decides if there is one, else worker 0 or all workers; whatever fails fails the job."""
    return outcomes.in_order(group, tallies, _judge)


def _judge(group: Group, tally: Tally) -> Outcome:
    spec, role = _spec(group), tally.role
    decides = role.name in _CHIEFS if group.has(*_CHIEFS) else role.name == "Worker"
    first_is_enough = not group.has(*_CHIEFS) and spec.success_policy != "AllWorkers"
    if decides and (outcomes.is_done(tally) or (role.replicas > 0 and first_is_enough and tally.first_done)):
        return outcomes.succeeded(group)
    tolerated = role.name == "Worker" and spec.enable_dynamic_worker
    if tally.failed and not tolerated:
        return outcomes.failed(group, tally)
    return outcomes.running(group) if decides and tally.active else None


def _whole(group: Group, me: Member) -> Json:
    roles = sorted(group.roles, key=lambda role: role.word)
    return {
        "cluster": {role.word: group.addresses(role) for role in roles},
        "task": _task(me),
        "environment": "cloud",
    }


def _sparse(group: Group, me: Member) -> Json:
    """What a member of a changing cluster may know: itself, and a worker the parameter servers too."""
    workers: dict[str, str] = {}
    servers: list[str] | None = []
    if me.role.name == "Worker":
        ps = group.role("PS")
        workers = {str(me.index): group.address(me.role, me.index)}
        servers = group.addresses(ps) if ps else None  # null, as Go writes a list that was never made
    elif me.role.name == "PS":
        servers = [group.address(me.role, me.index)]
    return {"cluster": {"worker": workers, "ps": servers}, "task": _task(me)}


def _task(me: Member) -> Json:
    return {"type": me.role.word, "index": me.index}


def _spec(group: Group) -> TFJobSpec:
    assert isinstance(group.spec, TFJobSpec)
    return group.spec


TENSORFLOW = Framework(
    kind=TF_JOB,
    environment=environment,
    outcome=outcome,
    every_container=False,
    leaders=_CHIEFS,
    deleted_reason="DeleteJob",
)
