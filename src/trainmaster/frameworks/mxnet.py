"""MXJob, also for BytePS: scheduler, servers, workers; or a tuner. Peers are told by MX_CONFIG and DMLC_*.

The newest upstream that had this kind was 1.8; scripts of that time parse the JSON, so it is byte for byte.
"""

from collections.abc import Mapping

import msgspec

from trainmaster.api.kubeflow_v1 import MX_JOB
from trainmaster.api.meta import Json
from trainmaster.frameworks import outcomes
from trainmaster.frameworks.framework import Environment, Framework, Group, Member, Outcome, Role, Tally

# On a role's template: what its servers are for, for the tuner.
_LABEL = "tuner-server-key"
_json = msgspec.json.Encoder()


def environment(group: Group, me: Member) -> Environment:
    scheduler = group.role("Scheduler")
    told = [
        ("MX_CONFIG", _json.encode(_config(group, me)).decode()),
        ("DMLC_PS_ROOT_PORT", str(group.port(scheduler)) if scheduler else "0"),
        ("DMLC_PS_ROOT_URI", group.host(scheduler, 0) if scheduler else ""),
        ("DMLC_NUM_SERVER", str(_replicas(group, "Server"))),
        ("DMLC_NUM_WORKER", str(_replicas(group, "Worker"))),
        ("DMLC_ROLE", me.role.word),
        ("DMLC_USE_KUBERNETES", "1"),
    ]
    if me.role.name == "Worker":
        told.append(("DMLC_WORKER_ID", str(me.index)))  # BytePS wants it
    return [{"name": name, "value": value} for name, value in told]


def outcome(group: Group, tallies: Mapping[str, Tally]) -> Outcome:
    """The scheduler decides; without one the tuners, which upstream never lets end (B-31), or the workers."""
    decides = next((role for role in group.kind.deciding if group.has(role)), "")

    def judge(group: Group, tally: Tally) -> Outcome:
        if tally.role.name == decides and outcomes.is_done(tally):
            return outcomes.succeeded(group, full=False)
        if tally.failed:
            return outcomes.gave_up(group, tally, "mxjob")
        # Nobody leads the roles of a tuning: whoever runs first shows that it runs.
        shows = tally.role.name == decides or decides == "Tuner"
        return outcomes.running(group, full=False) if shows and tally.active else None

    return outcomes.in_order(group, tallies, judge)


def restarts(group: Group, role: Role, count: int) -> str:
    return f"mxjob {group.job} is restarting because {count} {role.name} replica(s) failed."


def _config(group: Group, me: Member) -> Json:
    roles = sorted(group.roles, key=lambda role: role.word)
    return {
        "cluster": {role.word: [{"url": group.host(role, index), "port": group.port(role, index)}
                                for index in range(role.replicas)] for role in roles},
        "labels": {role.word: _label(role) for role in roles},
        "task": {"type": me.role.word, "index": me.index},
    }


def _label(role: Role) -> str:
    return str(((role.template.get("metadata") or {}).get("annotations") or {}).get(_LABEL, ""))


def _replicas(group: Group, name: str) -> int:
    role = group.role(name)
    return role.replicas if role else 0


MXNET = Framework(
    kind=MX_JOB,
    environment=environment,
    outcome=outcome,
    leaders=("Server",),  # not the scheduler: the logs that people ask for are the servers' (B-33)
    first_leads="",
    deleted_reason="DeletePod",
    restarts=restarts,
)
