"""Deployments and their relatives: scale, generations, what status writes touch, the life of a claim."""

import pytest
from tests.unit.cluster.apiserver.api import PODS, Api, pod

from trainmaster.api.meta import Json, Object

APPS = "/apis/apps/v1/namespaces/default"
DEPLOYMENTS = f"{APPS}/deployments"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LABELS = {"app": "x"}


def deployment(**spec: Json) -> Object:
    return {"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x"}]}}, **spec}}


def job(**spec: Json) -> Object:
    return {"metadata": {"name": "j"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}, **spec}}


def claim(name: str = "c") -> Object:
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                 "resources": {"requests": {"storage": "1Gi"}}}}


class TestScale:
    async def test_it_is_read_and_written(self, api: Api) -> None:
        await api.made(DEPLOYMENTS, deployment(replicas=2))
        await api.patch(f"{DEPLOYMENTS}/d/status", {"status": {"replicas": 1}})
        before = (await api.get(f"{DEPLOYMENTS}/d/scale")).json
        answer = await api.put(f"{DEPLOYMENTS}/d/scale", {**before, "spec": {"replicas": 5}})
        found = (await api.get(f"{DEPLOYMENTS}/d")).json

        assert ({"replicas": 2}, {"replicas": 1, "selector": "app=x"}) == (before["spec"], before["status"])
        assert (200, 5, 2) == (answer.code, found["spec"]["replicas"], found["metadata"]["generation"])

    async def test_a_controller_has_a_plain_selector(self, api: Api) -> None:
        path = "/api/v1/namespaces/default/replicationcontrollers"
        await api.made(path, {"metadata": {"name": "r"}, "spec": {"template": deployment()["spec"]["template"]}})

        assert "app=x" == (await api.get(f"{path}/r/scale")).json["status"]["selector"]


@pytest.mark.parametrize(("body", "finalizers", "warned"), [
    pytest.param(None, ["orphan"], True, id="nothing: they stay, and that is told"),
    pytest.param({"propagationPolicy": "Orphan"}, ["orphan"], False, id="that they stay"),
    pytest.param({"propagationPolicy": "Background"}, None, False, id="that they go"),
    pytest.param({"orphanDependents": False}, None, False, id="that they go, the old way"),
])
async def test_what_becomes_of_the_pods_of_a_job_that_is_deleted_saying(
        api: Api, body: Json, finalizers: list[str] | None, warned: bool) -> None:
    await api.made(JOBS, job())
    answer = await api.delete(f"{JOBS}/j", body)
    found = await api.get(f"{JOBS}/j")

    assert finalizers == (found.json["metadata"]["finalizers"] if found.code == 200 else None)
    assert warned == any("child pods are preserved by default" in each for each in answer.warnings)


async def test_what_waits_for_its_dependents_is_not_told_to_leave_them(api: Api) -> None:
    await api.made(JOBS, {**job(), "metadata": {"name": "j", "finalizers": ["foregroundDeletion"]}})
    await api.delete(f"{JOBS}/j")

    assert ["foregroundDeletion"] == (await api.get(f"{JOBS}/j")).json["metadata"]["finalizers"]


@pytest.mark.parametrize(("path", "change", "expected"), [
    pytest.param("", {"spec": {"replicas": 3}}, 2, id="a new spec is a new generation"),
    pytest.param("", {"metadata": {"labels": {"a": "b"}}}, 1, id="labels are not"),
    pytest.param("", {"status": {"replicas": 3}}, 1, id="a status is not written with the rest"),
    pytest.param("/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}}, 1, id="nor a spec with the status"),
])
async def test_generations(api: Api, path: str, change: Json, expected: int) -> None:
    await api.made(DEPLOYMENTS, deployment())
    answer = await api.patch(f"{DEPLOYMENTS}/d{path}", change)

    assert (200, expected) == (answer.code, answer.json["metadata"]["generation"])


async def test_the_number_of_a_template_goes_up_with_it(api: Api) -> None:
    await api.made(f"{APPS}/daemonsets", deployment())
    note = "deprecated.daemonset.template.generation"
    other = await api.patch(f"{APPS}/daemonsets/d", {"spec": {"minReadySeconds": 5}})
    image = await api.patch(f"{APPS}/daemonsets/d", {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}})

    assert ["1", "2"] == [each.json["metadata"]["annotations"][note] for each in (other, image)]


class TestJobs:
    async def test_a_job_marks_its_pods(self, api: Api) -> None:
        made = await api.made(JOBS, job())
        uid = made["metadata"]["uid"]

        assert {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}} == made["spec"]["selector"]
        assert {"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid, "job-name": "j",
                "batch.kubernetes.io/job-name": "j"} == made["spec"]["template"]["metadata"]["labels"]

    async def test_a_selector_of_ones_own(self, api: Api) -> None:
        body = job(manualSelector=True, selector={"matchLabels": LABELS})
        body["spec"]["template"]["metadata"] = {"labels": LABELS}
        made = await api.made(JOBS, body)

        assert ({"matchLabels": LABELS}, LABELS) == (made["spec"]["selector"],
                                                     made["spec"]["template"]["metadata"]["labels"])

    @pytest.mark.parametrize(("suspend", "change", "code"), [
        pytest.param(False, {"containers": [{"name": "c", "image": "y"}]}, 422, id="the image stays"),
        pytest.param(True, {"containers": [{"name": "c", "image": "y"}]}, 422, id="also before it starts"),
        pytest.param(False, {"nodeSelector": {"a": "b"}}, 422, id="where it runs stays once it may run"),
        pytest.param(True, {"nodeSelector": {"a": "b"}}, 200, id="where it runs may change before it starts"),
    ])
    async def test_its_template(self, api: Api, suspend: bool, change: Json, code: int) -> None:
        await api.made(JOBS, job(suspend=suspend))
        answer = await api.patch(f"{JOBS}/j", {"spec": {"template": {"spec": change}}})

        assert code == answer.code, answer.body

    async def test_an_indexed_job_may_grow(self, api: Api) -> None:
        await api.made(JOBS, job(completionMode="Indexed", completions=2, parallelism=2))
        both = await api.patch(f"{JOBS}/j", {"spec": {"completions": 3, "parallelism": 3}})
        one = await api.patch(f"{JOBS}/j", {"spec": {"completions": 4}})

        assert (200, 422) == (both.code, one.code)


class TestProtection:
    async def test_a_claim_that_nobody_uses_goes_at_once(self, api: Api) -> None:
        made = await api.made(CLAIMS, claim())
        await api.delete(f"{CLAIMS}/c")

        assert ["kubernetes.io/pvc-protection"] == made["metadata"]["finalizers"]
        assert 404 == (await api.get(f"{CLAIMS}/c")).code

    async def test_a_claim_in_use_waits_for_its_pod(self, api: Api) -> None:
        await api.made(CLAIMS, claim())
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        await api.made(PODS, pod(volumes=volumes, nodeName="n"))
        await api.delete(f"{CLAIMS}/c")
        waiting = await api.get(f"{CLAIMS}/c")
        await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})

        assert "deletionTimestamp" in waiting.json["metadata"]
        assert 404 == (await api.get(f"{CLAIMS}/c")).code

    @pytest.mark.parametrize(("phase", "code"), [
        pytest.param("Available", 404, id="a free volume goes at once"),
        pytest.param("Bound", 200, id="a bound one stays"),
    ])
    async def test_volumes(self, api: Api, phase: str, code: int) -> None:
        await api.made(VOLUMES, {"metadata": {"name": "v"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})
        await api.patch(f"{VOLUMES}/v/status", {"status": {"phase": phase}})
        await api.delete(f"{VOLUMES}/v")

        assert code == (await api.get(f"{VOLUMES}/v")).code
