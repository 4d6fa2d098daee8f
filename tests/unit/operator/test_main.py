"""The operator as a whole, on the embedded API server."""

from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import stage

from trainmaster.api.meta import name_of


async def test_a_job_from_its_creation_to_its_success() -> None:
    thing = tfjob(roles={"PS": (1, "Never"), "Worker": (2, "Never")})
    async with stage() as it:
        it.begin()
        await it.apply(thing)
        await it.settle()

        assert ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"] == [name_of(pod) for pod in await it.pods()]
        assert ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"] == [name_of(found) for found in await it.services()]

        await it.run()
        await it.settle()
        assert ["Created", "Running"] == [found["type"] for found in (await it.status())["conditions"]]

        await it.succeed("*-worker-*")
        await it.settle()
        status = await it.status()
        assert "Succeeded" == status["conditions"][-1]["type"]
        assert {"PS": {"succeeded": 1}, "Worker": {"succeeded": 2}} == status["replicaStatuses"]
