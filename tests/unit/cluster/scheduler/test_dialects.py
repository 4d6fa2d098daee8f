"""How groups are written and read: those for pods that name none."""

from typing import Any

import pytest

from trainmaster.cluster.scheduler.dialects import KUBE_BATCH, T9K, VOLCANO, group_for, serving
from trainmaster.testing.scheduling import single

SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web"}
STATEFUL = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db"}


@pytest.mark.parametrize(
    ("owner", "annotations", "name", "least"),
    [
        pytest.param(None, {}, "podgroup-uid-x", 1, id="a pod of nobody"),
        pytest.param(SET, {}, "podgroup-uid-web", 1, id="one group for all pods of a ReplicaSet"),
        pytest.param(STATEFUL, {}, "podgroup-uid-db", 1, id="one for all of a StatefulSet"),
        pytest.param(SET, {"scheduling.volcano.sh/group-min-member": "3"}, "podgroup-uid-web", 3,
                     id="of as many as the owner's pods say"),
    ],
)
def test_a_group_for_pods_that_name_none(owner: dict[str, str] | None, annotations: dict[str, str], name: str,
                                         least: int) -> None:
    made = group_for(single("x", annotations=annotations), VOLCANO, owner)

    (reference,) = made["metadata"]["ownerReferences"]
    assert (name, least, "default") == (made["metadata"]["name"], made["spec"]["minMember"], made["spec"]["queue"])
    assert (owner or {"uid": "uid-x"})["uid"] == reference["uid"], "it goes when its owner goes"


def test_the_owner_says_how_many_and_what_else_counts_for_its_group() -> None:
    above = {"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "3",
                                          "volcano.sh/sla-waiting-time": "1h", "example.com/note": "x"}}}
    pod = single("x", asks={"gpu": 2, "cpu": "500m"}, annotations={"volcano.sh/preemptable": "false",
                                                                   "volcano.sh/task-spec": "worker"})

    made = group_for(pod, VOLCANO, SET, above)

    assert {"minMember": 3, "queue": "default",
            "minResources": {"cpu": "1500m", "nvidia.com/gpu": "6"}} == made["spec"]
    assert {"volcano.sh/sla-waiting-time": "1h", "volcano.sh/preemptable": "false"} == made["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        pytest.param("volcano", VOLCANO, id="Volcano"),
        pytest.param("kube-batch", KUBE_BATCH, id="kube-batch"),
        pytest.param("t9k-scheduler", T9K, id="T9k"),
        pytest.param("default-scheduler", None, id="the default scheduler has no groups"),
        pytest.param("somebody", None, id="nor have those that we do not know"),
    ],
)
def test_who_gets_groups(scheduler: str, expected: Any) -> None:
    assert expected is serving(scheduler)
