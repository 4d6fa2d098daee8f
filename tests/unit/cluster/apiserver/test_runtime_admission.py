"""A pod of a RuntimeClass costs and runs where the class says; what is refused without one is in refusals/pods.yaml."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import PODS, Api, pod

from trainmaster.cluster.apiserver.runtime_admission import merged

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
DEAR = {"overhead": {"podFixed": {"cpu": "250m"}}}
THERE = {"scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}}


@pytest.mark.parametrize(("given", "spec", "expected"), [
    pytest.param({}, {}, (None, None), id="a class that says nothing"),
    pytest.param(DEAR, {}, ({"cpu": "250m"}, None), id="what it costs is the pod's"),
    pytest.param(DEAR, {"overhead": {"cpu": "0.25"}}, ({"cpu": "250m"}, None), id="the same amount, written otherwise"),
    pytest.param(DEAR, {"overhead": {"cpu": "1"}}, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined "
                 "Overhead", id="another amount"),
    pytest.param(THERE, {}, (None, {"a": "b"}), id="where it runs"),
    pytest.param(THERE, {"nodeSelector": {"c": "d"}}, (None, {"a": "b", "c": "d"}), id="and where the pod wants to"),
    pytest.param(THERE, {"nodeSelector": {"a": "x"}}, "conflict: runtimeClass.scheduling.nodeSelector[a] = b; "
                 "pod.spec.nodeSelector[a] = x", id="which is not the same place"),
])
async def test_a_pod_of_a_class(api: Api, given: Any, spec: Any, expected: Any) -> None:
    await api.made(CLASSES, {"metadata": {"name": "r"}, "handler": "h", **given})
    answer = await api.post(PODS, pod(runtimeClassName="r", **spec))

    if isinstance(expected, str):
        assert (403, f'pods "p" is forbidden: {expected}') == (answer.code, answer.message)
    else:
        made = answer.json["spec"]
        assert expected == (made.get("overhead"), made.get("nodeSelector"))
        assert ("k" in [each.get("key") for each in made["tolerations"]]) == ("scheduling" in given)


@pytest.mark.parametrize(("one", "other", "left"), [
    pytest.param({"key": "a", "value": "b"}, {"key": "a", "operator": "Exists"}, 1, id="any value, this one included"),
    pytest.param({"key": "a", "value": "b"}, {"operator": "Exists"}, 1, id="whatever there is"),
    pytest.param({"key": "a", "value": "b"}, {"key": "a", "value": "c"}, 2, id="two values"),
    pytest.param({"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}, 1, id="the same twice"),
    pytest.param({"key": "a", "effect": "NoExecute", "tolerationSeconds": 9},
                 {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}, 1, id="the longer of two"),
    pytest.param({"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}, 2, id="two effects"),
])
def test_tolerations_that_say_no_more_are_left_out(one: Any, other: Any, left: int) -> None:
    assert left == len(merged([one, other])) == len(merged([other, one]))
