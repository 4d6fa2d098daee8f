"""Pod groups in a cluster that may not know them, and whose priority classes count."""

from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import NAMESPACE, stage

from trainmaster.api.core import DEFINITIONS, PRIORITY_CLASSES
from trainmaster.api.groups import VOLCANO_GROUPS, definitions
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
