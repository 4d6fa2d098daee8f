"""Writing a status where the definition knows our memory, and where it does not."""

from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import Stage, resource_of, stage

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Object, metadata
from trainmaster.api.policy import JobStatus, PostMortem, ReplicaMemory
from trainmaster.operator import ledger

REMEMBERED = PostMortem(replicas={"worker-0": ReplicaMemory(uid="a", restarts=2)})


async def forget_the_field(it: Stage) -> None:
    """The definition becomes that of an operator that does not know `postMortem`."""
    found = await it.client.get(DEFINITIONS, "tfjobs.kubeflow.org")
    del found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["postMortem"]
    await it.client.replace(DEFINITIONS, found)


async def write(it: Stage, thing: Object, memory: PostMortem | None) -> Object:
    return await ledger.write(it.client, resource_of(thing), thing, JobStatus(post_mortem=memory))


def note(thing: Object) -> str | None:
    return (metadata(thing).get("annotations") or {}).get(ledger.ANNOTATION)


async def test_where_the_definition_knows_it_it_is_in_the_status() -> None:
    async with stage() as it:
        stored = await write(it, await it.apply(tfjob()), REMEMBERED)

        assert {"worker-0": {"uid": "a", "restarts": 2}} == stored["status"]["postMortem"]["replicas"]
        assert note(stored) is None


async def test_where_it_does_not_it_is_in_an_annotation() -> None:
    async with stage() as it:
        await forget_the_field(it)
        stored = await write(it, await it.apply(tfjob()), REMEMBERED)

        assert "postMortem" not in stored.get("status", {})
        assert {"worker-0": {"uid": "a", "restarts": 2}} == (
            ledger.with_memory(stored)["status"]["postMortem"]["replicas"]
        )


async def test_the_annotation_goes_when_there_is_nothing_to_remember() -> None:
    async with stage() as it:
        await forget_the_field(it)
        stored = await write(it, await it.apply(tfjob()), REMEMBERED)
        stored = await write(it, stored, None)

        assert note(stored) is None


def test_an_annotation_that_somebody_broke_is_no_memory() -> None:
    thing = {"metadata": {"annotations": {ledger.ANNOTATION: "{"}}}

    assert thing == ledger.with_memory(thing)


async def test_a_whole_life_on_a_foreign_definition() -> None:
    """Restarts are counted up to the limit although the status cannot hold them."""
    async with stage() as it:
        await forget_the_field(it)
        it.begin()
        await it.apply(tfjob(roles={"Worker": (1, "ExitCode")}, policy={"backoffLimit": 3}))
        await it.settle()
        for _ in range(3):
            await it.run()
            await it.settle()
            await it.fail(code=137)
            await it.settle()

        assert "Failed" == (await it.status())["conditions"][-1]["type"]
