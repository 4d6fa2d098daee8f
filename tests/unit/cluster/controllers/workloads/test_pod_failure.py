"""What the end of one pod means for its Job: the first rule of `podFailurePolicy` that fits."""

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.workloads.pod_failure import Verdict, judged


def policy(*rules: Object) -> Object:
    return {"spec": {"podFailurePolicy": {"rules": list(rules)}}}


def codes(action: str, operator: str, *values: int, container: str | None = None) -> Object:
    return {"action": action, "onExitCodes": {"containerName": container, "operator": operator, "values": list(values)}}


def condition(action: str, kind: str, **status: str) -> Object:
    return {"action": action, "onPodConditions": [{"type": kind, **status}]}


def pod(*ends: tuple[str, int], phase: str = "Failed", **conditions: str) -> Object:
    return {"metadata": {"namespace": "train", "name": "p"}, "status": {
        "phase": phase, "conditions": [{"type": kind, "status": status} for kind, status in conditions.items()],
        "containerStatuses": [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in ends]}}


def by_code(action: str, code: int, at: int = 0, container: str = "main") -> Verdict:
    return Verdict(action, f"Container {container} for pod train/p failed with exit code {code} matching {action} rule "
                           f"at index {at}")


def by_condition(action: str, kind: str, at: int = 0) -> Verdict:
    return Verdict(action, f"Pod train/p has condition {kind} matching {action} rule at index {at}")


COUNTS = Verdict("Count")


@pytest.mark.parametrize(("job", "ended", "expected"), [
    pytest.param({"spec": {}}, pod(("main", 1)), COUNTS, id="without a policy every failure counts"),
    pytest.param(policy(codes("FailJob", "In", 4)), pod(("main", 4)), by_code("FailJob", 4), id="a code in the list"),
    pytest.param(policy(codes("FailJob", "In", 42)), pod(("main", 1)), COUNTS, id="a code that no rule speaks of"),
    pytest.param(policy(codes("FailIndex", "NotIn", 1, 2)), pod(("main", 3)), by_code("FailIndex", 3),
                 id="a code that is not in the list"),
    pytest.param(policy(codes("FailJob", "NotIn", 1)), pod(("main", 0)), COUNTS, id="success is no code to speak of"),
    pytest.param(policy(codes("Ignore", "In", 1, container="side")), pod(("main", 1)), COUNTS,
                 id="the code of another container"),
    pytest.param(policy(codes("Ignore", "In", 1, container="side")), pod(("main", 9), ("side", 1)),
                 by_code("Ignore", 1, container="side"), id="the container that is named"),
    pytest.param(policy(condition("Ignore", "DisruptionTarget")), pod(DisruptionTarget="True"),
                 by_condition("Ignore", "DisruptionTarget"), id="a condition that is true"),
    pytest.param(policy(condition("Ignore", "DisruptionTarget")), pod(DisruptionTarget="False"), COUNTS,
                 id="a condition that is not"),
    pytest.param(policy(condition("Ignore", "Good", status="False")), pod(Good="False"), by_condition("Ignore", "Good"),
                 id="a condition that is to be false"),
    pytest.param(policy(codes("Ignore", "In", 9), condition("FailJob", "DisruptionTarget")),
                 pod(("main", 1), DisruptionTarget="True"), by_condition("FailJob", "DisruptionTarget", 1),
                 id="the first rule that fits, told by its number"),
    pytest.param(policy(codes("Count", "In", 1), codes("FailJob", "In", 1)), pod(("main", 1)), by_code("Count", 1),
                 id="one that says it counts ends the search"),
    pytest.param(policy(codes("FailJob", "NotIn", 1)), pod(("main", 7), phase="Running"), COUNTS,
                 id="one that was deleted has not ended yet"),
])
def test_what_a_failure_means(job: Object, ended: Object, expected: Verdict) -> None:
    assert expected == judged(job, ended)
