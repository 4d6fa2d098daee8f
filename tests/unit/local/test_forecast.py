"""What would become of a job."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.dialects import VOLCANO
from trainmaster.local.forecast import There, forecast
from trainmaster.testing.scheduling import NOW, gang, line, machine, member


def job(workers: int, gpus: int = 1, **policy: Any) -> Object:
    container = {"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "new"},
            "spec": {"runPolicy": {"schedulingPolicy": policy} if policy else {}, "pytorchReplicaSpecs": {
                "Worker": {"replicas": workers, "template": {"spec": {"containers": [container]}}}}}}


def running(name: str, gpus: int) -> tuple[list[Object], tuple[Any, Object]]:
    pod = member(name, "worker", 0, on="a", phase="Running", asks={"gpu": gpus},
                 labels={"training.kubeflow.org/job-name": name})
    return [pod], (VOLCANO, gang(name, 1, phase="Running"))


SMALL, SMALL_GROUP = running("small", 1)
LARGE, LARGE_GROUP = running("large", 3)
BUSY = There(nodes=[machine("a", gpu=5)], pods=[*SMALL, *LARGE], groups=[SMALL_GROUP, LARGE_GROUP],
             queues=[(VOLCANO, line())])


@pytest.mark.parametrize(("thing", "there", "sentence"), [
    pytest.param(job(2), There(nodes=[machine("a", gpu=4)]), "2 pods on a", id="there is room"),
    pytest.param(job(4), BUSY, "1 of 4 members fit: 3 nvidia.com/gpu short; held by default/large (3 "
                 "nvidia.com/gpu), default/small (1 nvidia.com/gpu); fits when large ends",
                 id="there is not, and whose end makes enough"),
    pytest.param(job(5), BUSY, "1 of 5 members fit: 4 nvidia.com/gpu short; held by default/large (3 "
                 "nvidia.com/gpu), default/small (1 nvidia.com/gpu)",
                 id="several must end"),
    pytest.param(job(9), BUSY, "1 of 9 members fit: 8 nvidia.com/gpu short; it would not fit even if nothing else ran",
                 id="there never will be"),
    pytest.param(job(2), There(nodes=[machine("a", gpu=4)], quotas=[
        {"metadata": {"name": "team", "namespace": "default"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}},
         "status": {"used": {"requests.nvidia.com/gpu": "1"}}}]),
                 "quota team leaves too little now: 1 nvidia.com/gpu short", id="its namespace may not have so much"),
    pytest.param(job(1, queue="research"), BUSY, "queue research does not exist; create it or name another",
                 id="its queue is not there"),
])
def test_forecast(thing: Object, there: There, sentence: str) -> None:
    found = forecast(thing, there, NOW)

    assert found is not None
    assert sentence == found.told()


def test_what_is_no_job_has_no_future() -> None:
    assert forecast({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}, BUSY, NOW) is None
