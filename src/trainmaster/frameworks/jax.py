"""JAXJob: workers, the first of which coordinates; peers are told by COORDINATOR_*, NUM_PROCESSES and PROCESS_ID."""

from collections.abc import Mapping

from trainmaster.api.kubeflow_v1 import JAX_JOB
from trainmaster.frameworks import outcomes
from trainmaster.frameworks.framework import Environment, Framework, Group, Member, Outcome, Tally


def environment(group: Group, me: Member) -> Environment:
    told = [
        ("PYTHONUNBUFFERED", "1"),
        ("COORDINATOR_PORT", str(group.port(me.role))),
        ("COORDINATOR_ADDRESS", group.host(me.role, 0)),  # without the port: scripts put the two together (B-65)
        ("NUM_PROCESSES", str(group.size)),
        ("PROCESS_ID", str(me.index)),
    ]
    return [{"name": name, "value": value} for name, value in told]


def outcome(group: Group, tallies: Mapping[str, Tally]) -> Outcome:
    return outcomes.led(group, tallies)


JAX = Framework(
    kind=JAX_JOB,
    environment=environment,
    outcome=outcome,
    deleted_reason="DeletePod",
    restarts=outcomes.restarts,
)
