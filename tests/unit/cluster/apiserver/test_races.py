"""Writes that get in each other's way, or build on what the disk then refuses."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.cluster.apiserver.api import MAPS, NAMESPACES, Api, config_map

from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.store import Store, store
from trainmaster.cluster.store.history import History, Window
from trainmaster.cluster.store.objects import Objects
from trainmaster.cluster.store.writer import Commit, Job, Outcome
from trainmaster.testing.clock import VirtualClock

WRITERS = 30
ELSEWHERE = "/api/v1/namespaces/elsewhere/configmaps"


async def test_of_many_who_replace_the_same_object_each_gets_through(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one write at a time every winner sends all others back to look again."""
    await api.made(MAPS, config_map("m"))
    monkeypatch.setattr(store, "QUEUE_BYTES", 1)
    answers = await asyncio.gather(*(api.put(f"{MAPS}/m", config_map("m", x=str(n))) for n in range(WRITERS)))

    assert {200} == {answer.code for answer in answers}
    assert WRITERS == len({answer.json["metadata"]["resourceVersion"] for answer in answers})


class Hesitant:
    """A disk that takes what it is given until it is told to wait, and then says what the test wants."""

    def __init__(self) -> None:
        self.waits = False
        self.held: list[tuple[Job, Callable[[Outcome], None]]] = []

    def submit(self, job: Job, done: Callable[[Outcome], None]) -> None:
        self.held.append((job, done))
        if not self.waits:
            asyncio.get_running_loop().call_soon(self.take)

    def take(self) -> None:
        for job, done in self._all():
            done(Outcome(kept=job.batch if isinstance(job, Commit) else ()))

    def refuse(self) -> None:
        self.waits = False
        for job, done in self._all():
            assert isinstance(job, Commit)
            lost = {write.key for transaction in job.batch for write in transaction.writes}
            done(Outcome(fallen=job.batch, lost=lost, reason="the disk is full"))

    async def close(self) -> None:
        return

    def _all(self) -> list[tuple[Job, Callable[[Outcome], None]]]:
        held, self.held = self.held, []
        return held


@pytest.mark.parametrize("refused", [
    pytest.param(False, id="the namespace goes, and what was to be in it is refused"),
    pytest.param(True, id="the disk refuses that it goes, and what was to be in it is made"),
])
async def test_who_comes_while_a_namespace_goes_is_answered_when_it_is_certain(refused: bool) -> None:
    disk, clock = Hesitant(), VirtualClock()
    kept = Store(disk, revision=1, history=History(0, Window()), objects=Objects())
    server = ApiServer(kept, clock=clock)
    await server.start()
    api = Api(server, kept, clock)
    await api.made(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    known = kept.get("/core/namespaces/elsewhere")
    assert known is not None
    disk.waits = True
    going = asyncio.ensure_future(kept.delete(known.key, known.revision))
    await asyncio.sleep(0)
    coming = asyncio.ensure_future(api.post(ELSEWHERE, config_map()))
    await clock.settle()

    assert not coming.done(), "it is not certain yet that the namespace is gone"
    if refused:
        disk.refuse()
    else:
        disk.waits = False
        disk.take()
    await asyncio.wait([going])
    assert (201 if refused else 404) == (await coming).code
    going.exception()
    await server.close()
    await kept.close()
