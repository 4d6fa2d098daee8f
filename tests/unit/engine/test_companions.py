"""What exists beside the pods: made with the job, changed where it is ours, gone with its end."""

from typing import Any

import pytest
from tests.unit.engine.stories import job_of, tfjob
from tests.unit.engine.world import World

from trainmaster.api.core import AUTOSCALERS
from trainmaster.api.groups import KUBE_BATCH_GROUPS, VOLCANO_GROUPS
from trainmaster.api.meta import Object
from trainmaster.engine.actions import CreateCompanion
from trainmaster.frameworks.framework import Site

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}}}


def elastic(**policy: Any) -> World:
    made = World(job_of("PyTorchJob", elasticPolicy={"minReplicas": 1, "maxReplicas": 3, "metrics": [CPU], **policy}))
    made.settle()
    return made


def scaler(world: World) -> Object | None:
    return world.beside.get((AUTOSCALERS, "mnist"))


def test_an_autoscaler_is_made_with_the_job_and_owned_by_it() -> None:
    made = scaler(elastic())

    assert made is not None
    assert ("PyTorchJob", "job-1") == tuple(made["metadata"]["ownerReferences"][0][key] for key in ("kind", "uid"))
    assert (1, 3) == (made["spec"]["minReplicas"], made["spec"]["maxReplicas"])


def test_an_autoscaler_follows_the_spec() -> None:
    world = elastic()
    world.edit(elasticPolicy={"maxReplicas": 5})
    world.settle()

    assert 5 == (scaler(world) or {})["spec"]["maxReplicas"]
    assert ["update HorizontalPodAutoscaler mnist"] == [write for write in world.writes if write.startswith("update")]


def test_b23_what_others_added_stays_and_other_forms_of_a_number_are_the_same() -> None:
    world = elastic()
    made = scaler(world)
    assert made is not None
    made["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 300}}
    made["spec"]["metrics"][0]["resource"]["target"]["averageValue"] = "0.5"

    assert () == world.plan().actions


@pytest.mark.parametrize("end", [
    pytest.param(lambda world: world.succeed("*-worker-0"), id="B-28: the job is over"),
    pytest.param(lambda world: world.edit(elasticPolicy={"metrics": None}), id="B-28: nothing to go by any more"),
    pytest.param(lambda world: world.edit(runPolicy={"suspend": True}), id="the job pauses"),
])
def test_when_the_autoscaler_goes(end: Any) -> None:
    world = elastic()
    world.run()
    world.settle()
    end(world)
    world.settle()

    assert scaler(world) is None
    assert not [event for event in world.events if "Autoscaler" in event.message]


def test_an_autoscaler_of_the_same_name_that_is_not_ours_is_left_alone() -> None:
    world = World(job_of("PyTorchJob", elasticPolicy={"metrics": [CPU]}))
    own = {"metadata": {"name": "mnist", "uid": "mine"}, "spec": {"maxReplicas": 9}}
    world.beside[AUTOSCALERS, "mnist"] = own
    world.settle()
    world.succeed("*")
    world.settle()

    assert own is scaler(world)


@pytest.mark.parametrize(("kind", "uid", "expected"), [
    pytest.param("TFJob", "of-before", [], id="the job of our name that was there before us is gone: wait"),
    pytest.param("PyTorchJob", "other", ["create PodGroup mnist"], id="a job of another kind: ask, so that it is told"),
])
def test_a_group_of_another_owner(kind: str, uid: str, expected: list[str]) -> None:
    world = in_gang()
    owner = {"apiVersion": "kubeflow.org/v1", "kind": kind, "name": "mnist", "uid": uid, "controller": True}
    world.beside[VOLCANO_GROUPS, "mnist"] = {
        "metadata": {"name": "mnist", "uid": "g", "ownerReferences": [owner]}, "status": {"phase": "Running"}}

    actions = world.plan().actions

    assert expected == [f"create {each.resource.kind} {each.manifest['metadata']['name']}" for each in actions
                        if isinstance(each, CreateCompanion)]
    assert [] == [each for each in actions if not isinstance(each, CreateCompanion)], "no pod before the group is ours"


def in_gang(scheduler: str = "volcano", **changes: Any) -> World:
    return World(tfjob(roles={"PS": (1, "Never"), "Worker": (2, "Never")}, **changes),
                 site=Site(gang_scheduler=scheduler))


def test_pods_wait_until_volcano_has_let_them_in() -> None:
    world = in_gang()
    world.settle()
    assert ["create PodGroup mnist", "status"] == world.writes
    assert ([("Created", "True")], None) == (world.conditions(), world.status.start_time)
    assert world.status.last_reconcile_time is not None

    world.phase("Inqueue")
    world.settle()
    assert 3 == len(world.pods)
    assert world.status.start_time is not None


def test_b02_time_that_is_spent_waiting_does_not_count_against_the_deadline() -> None:
    world = in_gang(policy={"activeDeadlineSeconds": 60})
    world.settle()
    world.pass_time(3600)
    world.phase("Inqueue")
    world.settle()

    assert not world.status.finished


def test_a_job_that_waits_can_be_suspended_and_waits_again() -> None:
    world = in_gang()
    world.settle()
    world.edit(runPolicy={"suspend": True})
    world.settle()
    assert {} == world.beside
    world.edit(runPolicy={"suspend": False})
    world.settle()

    assert [("Created", "True"), ("Suspended", "False")] == world.conditions()
    assert (1, 0) == (len(world.beside), len(world.pods))


@pytest.mark.parametrize("scheduler", ["kube-batch", "t9k-scheduler", "scheduler-plugins-scheduler"])
def test_the_other_schedulers_hold_the_pods_themselves(scheduler: str) -> None:
    world = in_gang(scheduler)
    world.settle()

    assert (1, 3) == (len(world.beside), len(world.pods))
    assert {scheduler} == {pod["spec"]["schedulerName"] for pod in world.pods.values()}


def test_the_group_goes_with_the_end_of_the_job_and_that_is_told() -> None:
    world = in_gang("kube-batch")
    world.settle()
    world.succeed("*-worker-0")
    world.settle()

    assert {} == world.beside
    assert [("JobTerminated", "Job has been terminated. Deleting PodGroup"),
            ("SuccessfulDeletePodGroup", "Deleted PodGroup: mnist")] == [
        (event.reason, event.message) for event in world.events if "PodGroup" in event.message]


def test_a_group_that_somebody_deletes_comes_back_and_the_pods_go_on() -> None:
    world = in_gang()
    world.settle()
    world.phase("Inqueue")
    world.settle()
    world.run()
    world.settle()
    world.beside.clear()
    world.settle()

    assert ("", 3, True) == (
        (world.beside[VOLCANO_GROUPS, "mnist"].get("status") or {}).get("phase", ""), len(world.pods),
        world.conditions()[-1] == ("Running", "True"),
    )
    world.succeed("*-worker-*")
    world.settle()
    assert ("Succeeded", "True") == world.conditions()[-1]


def test_b23_a_group_is_changed_only_where_it_is_ours() -> None:
    world = in_gang("kube-batch")
    world.settle()
    world.beside[KUBE_BATCH_GROUPS, "mnist"]["spec"]["minTaskMember"] = {"worker": 1}
    world.edit(tfReplicaSpecs={"Worker": {"replicas": 3}})
    world.settle()

    assert {"minMember": 4, "minTaskMember": {"worker": 1}} == world.beside[KUBE_BATCH_GROUPS, "mnist"]["spec"]


def test_b14_a_group_that_a_user_made_is_used_as_it_is() -> None:
    world = in_gang()
    own = {"metadata": {"name": "mnist", "uid": "mine"}, "spec": {"minMember": 6}, "status": {"phase": "Inqueue"}}
    world.beside[VOLCANO_GROUPS, "mnist"] = own
    world.settle()
    world.succeed("*-worker-*")
    world.settle()

    assert (own, 3) == (world.beside[VOLCANO_GROUPS, "mnist"], len(world.pods))


def test_pods_stay_in_the_group_that_their_user_named() -> None:
    thing = tfjob(roles={"Worker": (2, "Never")})
    named = {"annotations": {"scheduling.k8s.io/group-name": "tfjob-group"}}
    thing["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"] = named
    world = World(thing, site=Site(gang_scheduler="kube-batch"))
    world.settle()

    assert {} == world.beside
    assert [named["annotations"]] * 2 == [pod["metadata"]["annotations"] for pod in world.pods.values()]


def test_a_group_of_a_job_that_had_the_name_before_lets_nobody_in() -> None:
    world = in_gang()
    old = {"uid": "job-0", "controller": True, "kind": "TFJob", "name": "mnist"}
    world.beside[VOLCANO_GROUPS, "mnist"] = {
        "metadata": {"name": "mnist", "uid": "old", "ownerReferences": [old]}, "status": {"phase": "Running"},
    }
    world.settle()

    assert {} == world.pods


def test_what_a_group_carries_of_the_job() -> None:
    thing = tfjob()
    thing["metadata"]["annotations"] = {"note": "copied", "trainmaster.dev/post-mortem": "{}",
                                        "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    world = World(thing, site=Site(gang_scheduler="volcano"))
    world.settle()

    assert {"note": "copied"} == world.beside[VOLCANO_GROUPS, "mnist"]["metadata"]["annotations"]


def test_a_template_that_names_another_scheduler_keeps_it_and_is_told() -> None:
    thing = tfjob(roles={"PS": (1, "Never"), "Worker": (1, "Never")})
    thing["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["schedulerName"] = "mine"
    world = World(thing, site=Site(gang_scheduler="kube-batch"))
    world.settle()

    assert ["mine", "kube-batch"] == [world.pods[name]["spec"]["schedulerName"]
                                      for name in ("mnist-ps-0", "mnist-worker-0")]
    assert 2 == sum(event.reason == "SetPodTemplateSchedulerName" for event in world.events)


def test_pods_that_a_user_put_into_a_group_of_another_scheduler_are_that_ones() -> None:
    """The site keeps jobs whole with Volcano, the manifest was written for kube-batch: it runs as it is."""
    job = tfjob(roles={"PS": (1, "Never"), "Worker": (2, "Never")})
    for role in job["spec"]["tfReplicaSpecs"].values():
        role["template"]["metadata"] = {"annotations": {"scheduling.k8s.io/group-name": "tfjob-group"}}
        role["template"]["spec"]["schedulerName"] = "kube-batch"
    world = World(job, site=Site(gang_scheduler="volcano"))
    world.settle()

    assert ({}, 3) == (world.beside, len(world.pods)), "no group of ours, and no waiting for one"
    assert {("kube-batch", "tfjob-group")} == {
        (pod["spec"]["schedulerName"], pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"])
        for pod in world.pods.values()}
