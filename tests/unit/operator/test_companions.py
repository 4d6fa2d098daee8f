"""Pod groups in a cluster that may not know them, and whose priority classes count."""

from tests.faults.job_stories import CPU
from tests.unit.engine.stories import job_of, tfjob
from tests.unit.operator.stage import NAMESPACE, stage

from trainmaster.api.core import AUTOSCALERS, DEFINITIONS, PRIORITY_CLASSES
from trainmaster.api.groups import VOLCANO_GROUPS, definitions
from trainmaster.api.kubeflow_v1 import PYTORCH_JOB, TF_JOB
from trainmaster.api.meta import Object, name_of
from trainmaster.frameworks.framework import Site
from trainmaster.operator import main as operator
from trainmaster.operator.config import Settings
from trainmaster.operator.metrics import Metrics

VOLCANO = next(made for made in definitions() if made["spec"]["group"] == VOLCANO_GROUPS.group)
GANGS = Settings(site=Site(gang_scheduler="volcano"))


async def test_a_scheduler_whose_groups_nobody_defined_is_told_on_the_job_until_somebody_does() -> None:
    async with stage(GANGS) as it:
        await it.client.delete(DEFINITIONS, name_of(VOLCANO))
        await it.clock.advance(1)
        metrics = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=metrics))
        await it.apply(tfjob())
        await it.clock.advance(5)

        (told,) = [event for event in await it.events() if event["type"] == "Warning"]
        assert "FailedCreatePodGroup" == told["reason"]
        assert told["message"] == (
            "Error creating: the cluster has no PodGroup of scheduling.volcano.sh/v1beta1. Install what defines it, or "
            "start the operator with another --gang-scheduler-name"
        )
        assert [] == await it.pods()

        await it.client.create(DEFINITIONS, VOLCANO)
        await it.clock.advance(minutes=20)

        assert (await it.client.get(VOLCANO_GROUPS, "mnist", NAMESPACE))["spec"]["minMember"]
        assert 1 == metrics.registry.get_sample_value("created_pod_groups_total")


async def test_of_two_jobs_of_one_name_the_second_says_whose_group_it_is_and_starts_when_that_is_gone() -> None:
    async with stage(GANGS, collects=True) as it:
        it.begin()
        await it.apply(tfjob())
        await it.clock.advance(5)
        twin = {**job_of("PyTorchJob"), "metadata": {"name": "mnist", "namespace": NAMESPACE}}
        await it.client.create(PYTORCH_JOB.resource, twin)
        await it.clock.advance(5)

        (told,) = [event for event in await it.events() if event["type"] == "Warning"]
        assert ("PyTorchJob", "FailedCreatePodGroup") == (told["involvedObject"]["kind"], told["reason"])
        assert told["message"] == (
            'Error creating: podgroups.scheduling.volcano.sh "mnist" already exists and belongs to TFJob mnist; delete '
            "it, or give the job another name")

        await it.client.delete(TF_JOB.resource, "mnist", NAMESPACE)
        await it.clock.advance(minutes=20)

        group = await it.client.get(VOLCANO_GROUPS, "mnist", NAMESPACE)
        assert ["PyTorchJob"] == [owner["kind"] for owner in group["metadata"]["ownerReferences"]]


def asking(thing: Object, role: str, priority: str, cpu: str) -> None:
    spec = thing["spec"]["tfReplicaSpecs"][role]["template"]["spec"]
    spec["priorityClassName"] = priority
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}


async def test_the_smallest_gang_is_counted_from_the_highest_priority() -> None:
    """Upstream never loads the classes (B-13)."""
    thing = tfjob(roles={"PS": (1, "Never"), "Worker": (1, "Never")}, policy={"schedulingPolicy": {"minAvailable": 1}})
    asking(thing, "PS", "low", "1")
    asking(thing, "Worker", "high", "7")
    async with stage(GANGS) as it:
        for name, value in (("low", 1), ("high", 1000)):
            await it.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        it.begin()
        await it.clock.advance(1)
        await it.apply(thing)
        await it.clock.advance(5)

        group = await it.client.get(VOLCANO_GROUPS, "mnist", NAMESPACE)
        assert {"cpu": "7"} == group["spec"]["minResources"]


VOLCANO_GANG = Settings(kinds=("TFJob",), site=Site(gang_scheduler="volcano"))


async def test_an_autoscaler_follows_its_job_and_goes_with_it() -> None:
    policy = {"minReplicas": 1, "maxReplicas": 3, "metrics": [CPU]}
    async with stage(Settings(kinds=("PyTorchJob",))) as it:
        it.begin()
        await it.apply(job_of("PyTorchJob", elasticPolicy=policy))
        await it.settle()
        made = await it.client.get(AUTOSCALERS, "mnist", NAMESPACE)
        assert (1, 3) == (made["spec"]["minReplicas"], made["spec"]["maxReplicas"])

        await it.patch(elasticPolicy={"maxReplicas": 5})
        await it.settle()
        assert 5 == (await it.client.get(AUTOSCALERS, "mnist", NAMESPACE))["spec"]["maxReplicas"]

        await it.succeed("*-worker-0")
        await it.settle()
        assert [] == (await it.picture())["autoscalers"]


async def test_a_gang_waits_for_its_scheduler_and_its_group_goes_at_the_end() -> None:
    async with stage(VOLCANO_GANG) as it:
        it.begin()
        await it.apply(tfjob())
        await it.settle()
        group, = await it.groups()
        assert ({"minMember": 2, "minResources": {}, "queue": "default"}, []) == (group["spec"], await it.pods())

        await it.phase("Inqueue")
        await it.settle()
        assert 2 == len(await it.pods())

        await it.succeed("*")
        await it.settle()
        assert [] == await it.groups()
        told = {event["reason"]: event["message"] for event in await it.events()}
        assert "Deleted PodGroup: mnist" == told["SuccessfulDeletePodGroup"]


async def test_b14_a_group_that_a_user_made_wakes_the_job_when_it_is_let_in() -> None:
    own = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
           "metadata": {"name": "mnist", "namespace": NAMESPACE}, "spec": {"minMember": 6}}
    async with stage(VOLCANO_GANG) as it:
        await it.client.create(VOLCANO_GROUPS, own)
        it.begin()
        await it.apply(tfjob())
        await it.settle()
        assert [] == await it.pods()

        await it.phase("Inqueue")
        await it.clock.advance(1)
        assert 2 == len(await it.pods())
        assert 6 == (await it.groups())[0]["spec"]["minMember"]
