"""A new life of the operator beside jobs that run: it reads, and writes nothing; and what is not ours costs nothing."""

from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import NAMESPACE, Stage, stage

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.operator import main as operator
from trainmaster.operator.metrics import Metrics


async def running(it: Stage, count: int) -> None:
    """So many jobs, all of whose pods run."""
    for number in range(count):
        await it.apply(named(tfjob(roles={"Worker": (1, "Never")}), f"job-{number}"))
    await it.settle()
    await it.run()
    await it.settle()


def named(thing: Object, name: str) -> Object:
    return {**thing, "metadata": {**thing["metadata"], "name": name}}


async def test_jobs_that_nobody_touched_are_not_written() -> None:
    async with stage() as it:
        it.begin()
        await running(it, 50)
        await it.end()

        it.begin()
        await it.settle()

        assert 50 == len(await it.pods())
        assert [] == it.lives[-1].writes


async def test_what_is_not_ours_is_not_even_seen() -> None:
    """The copies hold what carries our labels: the cost of a job does not grow with the cluster."""
    async with stage() as it:
        container = {"name": "web", "image": "example.com/web:1"}
        for number in range(100):
            about = {"name": f"web-{number}", "namespace": NAMESPACE}
            await it.client.create(PODS, {"metadata": about, "spec": {"containers": [container]}})
        metrics = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=metrics))
        await it.apply(tfjob(roles={"Worker": (2, "Never")}))
        await it.settle()

        assert 102 == len(await it.pods())
        assert 2 == metrics.registry.get_sample_value("trainmaster_objects", {"kind": "Pod"})
