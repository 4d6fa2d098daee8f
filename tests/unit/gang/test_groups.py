"""The group of a job, and the marks on its pods."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.api.policy import SchedulingPolicy
from trainmaster.gang.dialects import KUBE_BATCH, SCHEDULER_PLUGINS, T9K, VOLCANO, Dialect
from trainmaster.gang.groups import NO_POLICY, Gang, Part, asks_elsewhere, marks, name, needed, spec


def part(word: str, replicas: int, *resources: Object, **fields: Any) -> Part:
    containers = [{"name": "train", "resources": each} for each in resources] or [{"name": "train"}]
    meta = fields.pop("metadata", {})
    return Part(word, replicas, {"metadata": meta, "spec": {"containers": containers, **fields}})


def gang(*parts: Part, policy: SchedulingPolicy = NO_POLICY) -> Gang:
    return Gang("demo", parts, policy)


CPU, GPU = {"requests": {"cpu": "2", "memory": "1Gi"}}, {"limits": {"cpu": "1", "nvidia.com/gpu": 2}}
POLICY = SchedulingPolicy(min_available=2, queue="q", priority_class="high", schedule_timeout_seconds=60)


@pytest.mark.parametrize(("spoken", "policy", "expected"), [
    pytest.param(VOLCANO, NO_POLICY, {"minMember": 3, "queue": "default", "minResources": {
        "cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "4"}}, id="volcano: everybody, in the default queue"),
    pytest.param(VOLCANO, POLICY, {"minMember": 2, "queue": "q", "priorityClassName": "high", "minResources": {
        "cpu": "3", "memory": "1Gi", "nvidia.com/gpu": "2"}}, id="volcano: as the policy says"),
    pytest.param(SCHEDULER_PLUGINS, POLICY, {"minMember": 2, "scheduleTimeoutSeconds": 60, "minResources": {
        "cpu": "3", "memory": "1Gi", "nvidia.com/gpu": "2"}}, id="scheduler-plugins: a timeout, no queue"),
    pytest.param(KUBE_BATCH, NO_POLICY, {"minMember": 3}, id="kube-batch: the size"),
    pytest.param(KUBE_BATCH, POLICY, {"minMember": 2, "queue": "q", "priorityClassName": "high"}, id="and the policy"),
    pytest.param(T9K, NO_POLICY, {"minMember": 3, "queue": "default"}, id="t9k: the size and the queue"),
    pytest.param(VOLCANO, SchedulingPolicy(min_resources={"cpu": "9"}), {
        "minMember": 3, "queue": "default", "minResources": {"cpu": "9"}}, id="resources that somebody gave"),
])
def test_what_a_group_says(spoken: Dialect, policy: SchedulingPolicy, expected: Object) -> None:
    assert expected == spec(gang(part("ps", 1, CPU), part("worker", 2, GPU), policy=policy), spoken, {})


@pytest.mark.parametrize(("parts", "least", "priorities", "expected"), [
    pytest.param([part("master", 1, CPU), part("worker", 3, GPU)], 1, {}, {"cpu": "2", "memory": "1Gi"},
                 id="B-13: the foremost role first"),
    pytest.param([part("master", 1, CPU), part("worker", 3, GPU, priorityClassName="high")], 1, {"high": 10},
                 {"cpu": "1", "nvidia.com/gpu": "2"}, id="B-13: unless another has a higher priority"),
    pytest.param([part("worker", 2, CPU, {"requests": {"cpu": "500m"}})], 2, {}, {"cpu": "5", "memory": "2Gi"},
                 id="all containers of a pod"),
    pytest.param([part("worker", 3, {"requests": {"memory": "512Mi"}, "limits": {"nvidia.com/gpu": 1}})], 3, {},
                 {"memory": "1536Mi"}, id="limits only where there are no requests"),
    pytest.param([part("worker", 2)], 2, {}, {}, id="nothing asked, nothing needed"),
    pytest.param([part("worker", 2, CPU)], 5, {}, {"cpu": "4", "memory": "2Gi"}, id="more wanted than there are"),
])
def test_what_it_needs_in_all(parts: list[Part], least: int, priorities: dict[str, int], expected: Object) -> None:
    assert expected == needed(gang(*parts, policy=SchedulingPolicy(min_available=least)), priorities)


@pytest.mark.parametrize(("spoken", "labels", "annotations"), [
    pytest.param(VOLCANO, {}, {"scheduling.k8s.io/group-name": "demo", "volcano.sh/task-spec": "worker"}, id="volcano"),
    pytest.param(KUBE_BATCH, {}, {"scheduling.k8s.io/group-name": "demo"}, id="kube-batch"),
    pytest.param(SCHEDULER_PLUGINS, {"scheduling.x-k8s.io/pod-group": "demo"}, {}, id="scheduler-plugins"),
    pytest.param(T9K, {"scheduler.tensorstack.dev/group-name": "demo", "scheduler.tensorstack.dev/role": "worker",
                       "scheduler.tensorstack.dev/queue": "default"}, {}, id="t9k"),
])
def test_what_pods_say(spoken: Dialect, labels: Object, annotations: Object) -> None:
    worker = part("worker", 2)
    found = marks(gang(worker), spoken, worker)

    assert (labels, annotations, spoken.scheduler) == (found.labels, found.annotations, found.scheduler)


def test_a_group_that_the_user_wrote_is_the_group_of_all() -> None:
    """The third user document: upstream overwrites the name."""
    own = {"annotations": {"scheduling.k8s.io/group-name": "tfjob-group"}}
    ps, worker = part("ps", 2), part("worker", 4, metadata=own)

    assert "tfjob-group" == name(gang(ps, worker), KUBE_BATCH)
    assert {"scheduling.k8s.io/group-name": "tfjob-group"} == marks(gang(ps, worker), KUBE_BATCH, ps).annotations


@pytest.mark.parametrize(("schedulers", "elsewhere"), [
    pytest.param(["", ""], False, id="nobody names one"),
    pytest.param(["volcano", ""], False, id="one names the gang's"),
    pytest.param(["default-scheduler", ""], True, id="one names another"),
    pytest.param(["a", "b"], True, id="both name others"),
])
def test_templates_that_name_a_scheduler(schedulers: list[str], elsewhere: bool) -> None:
    parts = [part(f"r{n}", 1, schedulerName=given) for n, given in enumerate(schedulers)]

    assert elsewhere == asks_elsewhere(gang(*parts), VOLCANO)
    found = [marks(gang(*parts), VOLCANO, each).scheduler for each in parts]
    assert [given or "volcano" for given in schedulers] == found
