"""`pods/resize`, in the words of a real server; a pod that runs can be resized only where its node can do it."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import JSON_PATCH, PODS, STRATEGIC, Api, pod

SOME = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
ALL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
INIT = [{"name": "i", "image": "x", "resources": SOME}]


def two(resources: Any, **more: Any) -> Any:
    return pod(containers=[{"name": "c", "image": "x", "resources": resources}, {"name": "d", "image": "x"}], **more)


def to(resources: Any, **more: Any) -> Any:
    return {"spec": {"containers": [{"name": "c", "resources": resources, **more}]}}


@pytest.mark.parametrize(("given", "sent", "said"), [
    pytest.param(SOME, to({"requests": {"cpu": "150m"}}), "", id="a little more"),
    pytest.param(SOME, to({"limits": {"memory": "100Mi"}}), "", id="a little less"),
    pytest.param(SOME, to({"requests": {"cpu": "5"}}), 'spec.containers[0].resources.requests: Invalid value: "5": '
                 "must be less than or equal to cpu limit of 200m", id="more than its limit"),
    pytest.param(SOME, to({"requests": {"cpu": None}, "limits": {"cpu": None}}), "[spec.containers[0].resources."
                 "requests: Forbidden: resource requests cannot be removed, spec.containers[0].resources.limits: "
                 "Forbidden: resource limits cannot be removed]", id="no amount any more"),
    pytest.param(SOME, to({"requests": {"ephemeral-storage": "1Gi"}}), "spec: Forbidden: only cpu and memory resources "
                 "are mutable", id="something else"),
    pytest.param({}, to({"requests": {"cpu": "1"}}), 'spec: Invalid value: "BestEffort": Pod QOS Class may not change '
                 "as a result of resizing", id="another quality of service"),
    pytest.param(SOME, to({}, resizePolicy=[{"resourceName": "x", "restartPolicy": "Y"}]), "[spec.containers[0]."
                 'resizePolicy: Unsupported value: "x": supported values: "cpu", "memory", spec.containers[0].'
                 'resizePolicy: Unsupported value: "Y": supported values: "NotRequired", "RestartContainer", spec: '
                 "Forbidden: only cpu and memory resources are mutable]", id="a policy that is none"),
    pytest.param(SOME, [{"op": "replace", "path": "/spec/containers/0/name", "value": "z"}], "spec.containers[0].name: "
                 "Forbidden: containers may not be renamed or reordered on resize", id="another name"),
    pytest.param(SOME, [{"op": "remove", "path": "/spec/containers/1"}], "spec.containers: Forbidden: containers may "
                 "not be added or removed on resize", id="a container less"),
])
async def test_a_pod_that_waits(api: Api, given: Any, sent: Any, said: str) -> None:
    await api.made(PODS, two(given))
    answer = await api.patch(f"{PODS}/p/resize", sent, JSON_PATCH if isinstance(sent, list) else STRATEGIC)

    assert (422 if said else 200, said) == (answer.code, answer.json.get("message", "").partition("is invalid: ")[2])
    if not said:
        assert 2 == answer.json["metadata"]["generation"]


@pytest.mark.parametrize(("told", "code"), [
    pytest.param({}, 422, id="on a node that does not tell what it has"),
    pytest.param({"resources": SOME}, 200, id="on a node that does"),
])
async def test_a_pod_that_runs(api: Api, told: Any, code: int) -> None:
    await api.made(PODS, two(SOME))
    running = {"name": "c", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {}}}
    await api.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [{**running, **told}]}})
    answer = await api.patch(f"{PODS}/p/resize", to({"requests": {"cpu": "150m"}}), STRATEGIC)

    assert code == answer.code
    if code == 422:
        assert answer.message.endswith("spec: Forbidden: Pod running on node without support for resize")


async def test_nothing_but_resources_changes(api: Api) -> None:
    await api.made(PODS, two(SOME, initContainers=INIT))
    sent = {**to({"requests": {"cpu": "150m"}}, image="other"), "metadata": {"labels": {"a": "b"}}}
    answer = await api.patch(f"{PODS}/p/resize", sent, STRATEGIC)
    read = await api.get(f"{PODS}/p/resize")

    assert ("x", "150m") == (answer.json["spec"]["containers"][0]["image"],
                             answer.json["spec"]["containers"][0]["resources"]["requests"]["cpu"])
    assert "labels" not in answer.json["metadata"]
    assert read.json["spec"] == answer.json["spec"]


async def test_limits_and_quotas_hold_for_what_a_pod_is_resized_to(api: Api) -> None:
    namespace = "/api/v1/namespaces/default"
    await api.made(PODS, pod(containers=[{"name": "c", "image": "x", "resources": ALL}]))
    await api.made(f"{namespace}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "max": {"cpu": "4"}}]}})
    await api.made(f"{namespace}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "3"}}})
    await api.patch(f"{namespace}/resourcequotas/q/status", {"status": {"hard": {"requests.cpu": "3"},
                                                                        "used": {"requests.cpu": "1"}}})
    above = await api.patch(f"{PODS}/p/resize", to({"requests": {"cpu": "9"}, "limits": {"cpu": "9"}}), STRATEGIC)
    beyond = await api.patch(f"{PODS}/p/resize", to({"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}), STRATEGIC)

    assert (403, True) == (above.code, "maximum cpu usage per Container is 4, but limit is 9" in above.message)
    assert (403, True) == (beyond.code, "exceeded quota: q, requested: requests.cpu=3" in beyond.message)


async def test_another_name_and_other_verbs(api: Api) -> None:
    await api.made(PODS, two(SOME))
    other = await api.put(f"{PODS}/p/resize", {**two(SOME), "metadata": {"name": "q"}})
    made = await api.post(f"{PODS}/p/resize", {})

    assert (400, 405) == (other.code, made.code)
    assert "the name of the object (q) does not match the name on the URL (p)" == other.message
