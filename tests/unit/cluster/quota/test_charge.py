"""Whether a quota takes an object, in the words of Kubernetes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from trainmaster.api.core import CONFIG_MAPS, PODS, SERVICES
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.quota.charge import Exceeded, charged, counted

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Object:
    zero = dict.fromkeys(hard, "0")
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec},
            "status": {"hard": hard, "used": {**zero, **(used or {})}}}


def pod(requests: dict[str, str] | None = None, qos: str = "Burstable", **spec: Any) -> Object:
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}, "status": {"qosClass": qos}}


def selecting(operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(("what", "thing", "expected"), [
    pytest.param(quota({"pods": "2"}), pod(), {"pods": "1"}, id="there is room"),
    pytest.param(quota({"memory": "1Gi"}, {"memory": "256Mi"}), pod({"memory": "256Mi"}), {"memory": "512Mi"},
                 id="the notation stays"),
    pytest.param(quota({"pods": "0"}, scopes=["Terminating"]), pod(), None, id="a scope that is not the pod's"),
    pytest.param(quota({"pods": "1"}, scopes=["Terminating"]), pod(activeDeadlineSeconds=9), {"pods": "1"},
                 id="a pod that ends by itself"),
    pytest.param(quota({"pods": "1"}, scopes=["BestEffort", "NotTerminating"]), pod(qos="BestEffort"), {"pods": "1"},
                 id="two scopes that hold"),
    pytest.param(quota({"pods": "0"}, scopes=["NotBestEffort"]), pod(qos="BestEffort"), None,
                 id="best effort, and not"),
    pytest.param(quota({"pods": "1"}, scopeSelector=selecting("In", "high")), pod(priorityClassName="high"),
                 {"pods": "1"}, id="a priority class among those"),
    pytest.param(quota({"pods": "0"}, scopeSelector=selecting("In", "high")), pod(), None, id="no priority class"),
    pytest.param(quota({"pods": "0"}, scopeSelector=selecting("NotIn", "high")), pod(priorityClassName="high"), None,
                 id="a priority class that is left out"),
    pytest.param(quota({"configmaps": "0"}), pod(), None, id="a quota about something else"),
    pytest.param({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}, pod(), None,
                 id="a quota that was not counted yet is not in force"),
])
def test_a_pod_is_charged(what: Object, thing: Object, expected: dict[str, str] | None) -> None:
    changed = charged([what], PODS, thing, None, NOON)

    assert ([] if expected is None else [expected]) == [each["status"]["used"] for each in changed]


@pytest.mark.parametrize(("what", "resource", "thing", "said"), [
    pytest.param(quota({"pods": "2", "cpu": "1"}, {"pods": "1", "cpu": "600m"}), PODS, pod({"cpu": "500m"}),
                 "exceeded quota: q, requested: cpu=500m, used: cpu=600m, limited: cpu=1", id="one resource of two"),
    pytest.param(quota({"pods": "1", "requests.cpu": "1"}, {"pods": "1", "requests.cpu": "1"}), PODS, pod({"cpu": "1"}),
                 "exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=1,requests.cpu=1, limited: "
                 "pods=1,requests.cpu=1", id="both"),
    pytest.param(quota({"cpu": "1", "limits.memory": "1Gi"}), PODS, pod(),
                 "failed quota: q: must specify cpu for: c; limits.memory for: c", id="amounts that are not named"),
    pytest.param({**quota({"pods": "1"}), "status": {"hard": {"pods": "1"}, "used": {}}}, PODS, pod(),
                 "status unknown for quota: q, resources: pods", id="nobody knows what is used"),
    pytest.param(quota({"count/configmaps": "0"}), CONFIG_MAPS, {"metadata": {"name": "m"}},
                 "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=0, limited: "
                 "count/configmaps=0", id="a count"),
])
def test_a_quota_refuses(what: Object, resource: Resource, thing: Object, said: str) -> None:
    with pytest.raises(Exceeded) as refusal:
        charged([what], resource, thing, None, NOON)

    assert said == str(refusal.value)


@pytest.mark.parametrize(("kind", "expected"), [
    pytest.param("NodePort", ["2"], id="more than before"),
    pytest.param("ClusterIP", [], id="the same"),
])
def test_an_update_is_charged_for_the_difference(kind: str, expected: list[str]) -> None:
    old = {"spec": {"type": "ClusterIP", "ports": [{}, {}]}}
    new = {"metadata": {"name": "s"}, "spec": {"type": kind, "ports": [{}, {}]}}
    changed = charged([quota({"services.nodeports": "2", "services": "0"})], SERVICES, new, old, NOON)

    assert expected == [each["status"]["used"]["services.nodeports"] for each in changed]


def test_a_count_covers_what_the_scopes_do_and_keeps_what_nobody_counts() -> None:
    what = quota({"pods": "5", "count/nosuch.example.com": "1"}, {"pods": "9"}, scopes=["NotBestEffort"])
    pods = [pod(), pod(qos="BestEffort"), {**pod(), "status": {"phase": "Failed", "qosClass": "Burstable"}}]

    assert {"hard": what["spec"]["hard"], "used": {"pods": "1", "count/nosuch.example.com": "0"}} == \
        counted(what, [(PODS, pods)], NOON)
