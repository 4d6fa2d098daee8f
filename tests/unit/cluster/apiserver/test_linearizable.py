"""Reads and writes of eight clients at once are those of one at a time, also when the server comes and goes.

The checker comes first: a checker that cannot fail shows nothing.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.faults.apiserver_clients import CLIENTS, Client, History, now
from tests.faults.apiserver_history import Listed, Operation, problems
from tests.faults.seeds import seeded

from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

LOST = 0


def op(verb: str, began: int, ended: int, code: int, value: str = "", revision: int = 0, expected: int = 0,
       key: str = "k") -> Operation:
    return Operation(0, verb, key, began, ended, code, value, revision, expected)


MADE = op("create", 0, 1, 201, "x", 5)
CHANGED = op("update", 2, 3, 200, "y", 6, expected=5)


@pytest.mark.parametrize("history", [
    pytest.param([MADE, CHANGED, op("get", 4, 5, 200, "y", 6)], id="one after the other"),
    pytest.param([MADE, op("update", 2, 9, 200, "y", 6, 5), op("get", 3, 4, 200, "x", 5), op("get", 5, 6, 200, "y", 6)],
                 id="a read during a write may see either"),
    pytest.param([MADE, op("update", 2, 9, LOST, "y", expected=5), op("get", 10, 11, 200, "x", 5)],
                 id="a write without an answer did not happen"),
    pytest.param([MADE, op("update", 2, 9, LOST, "y", expected=5), op("get", 10, 11, 200, "y", 6)],
                 id="a write without an answer happened"),
    pytest.param([MADE, op("update", 2, 9, LOST, "y", expected=5), op("update", 10, 11, 409, "z", expected=5)],
                 id="a write that nobody saw made another fail"),
    pytest.param([MADE, op("delete", 2, 9, LOST), op("get", 3, 4, 404), op("create", 5, 6, 201, "z", 8)],
                 id="a deletion without an answer was seen"),
    pytest.param([MADE, op("update", 2, 8, 200, "y", 6, 5), op("update", 2, 8, 409, "z", expected=5)],
                 id="of two changes at once one fails"),
    pytest.param([MADE, op("delete", 2, 3, 200), op("get", 4, 5, 404), op("create", 6, 7, 201, "z", 8)],
                 id="made, deleted, made again"),
])
def test_what_can_have_happened(history: list[Operation]) -> None:
    assert [] == problems(history)


@pytest.mark.parametrize("history", [
    pytest.param([MADE, op("get", 2, 3, 404)], id="an acknowledged creation is lost"),
    pytest.param([MADE, CHANGED, op("get", 4, 5, 200, "x", 5)], id="an acknowledged change is lost"),
    pytest.param([MADE, op("update", 2, 9, 200, "y", 6, 5), op("get", 3, 4, 200, "y", 6), op("get", 5, 6, 200, "x", 5)],
                 id="a second read sees less than the first"),
    pytest.param([MADE, CHANGED, op("update", 4, 5, 200, "z", 7, expected=5)], id="two changes of the same state"),
    pytest.param([MADE, op("create", 2, 3, 201, "y", 6)], id="made twice"),
    pytest.param([MADE, op("delete", 2, 3, 200), op("delete", 4, 5, 200)], id="deleted twice"),
    pytest.param([MADE, op("delete", 2, 3, 200), op("get", 4, 5, 200, "x", 5)], id="back from the dead"),
    pytest.param([MADE, op("update", 2, 3, 409, "y", expected=5)], id="a conflict with nobody"),
    pytest.param([op("create", 0, 1, 409, "x")], id="it exists, says the answer, and it does not"),
    pytest.param([MADE, op("delete", 2, 3, 404)], id="it is not there, says the answer, and it is"),
    pytest.param([MADE, op("update", 2, 9, 200, "y", 6, 5), op("update", 3, 4, 409, "z", expected=5),
                  op("get", 5, 6, 200, "x", 5)], id="a conflict with a write that is seen only later"),
    pytest.param([MADE, op("update", 2, 4, LOST, "y", expected=5), op("get", 5, 6, 200, "x", 5),
                  op("get", 7, 8, 200, "y", 6)], id="a dead server writes"),
    pytest.param([MADE, op("update", 2, 9, LOST, "y", expected=4), op("get", 10, 11, 200, "y", 6)],
                 id="a write that must fail happened"),
    pytest.param([MADE, op("get", 2, 3, 200, "x", 6)], id="a read with a revision that nobody wrote"),
    pytest.param([MADE, op("create", 2, 3, 201, "y", 5, key="j")], id="a revision is used again"),
    pytest.param([MADE, op("create", 2, 3, 201, "y", 4, key="j")], id="revisions go back"),
])
def test_what_cannot_have_happened(history: list[Operation]) -> None:
    assert problems(history)


@pytest.mark.parametrize(("listed", "fine"), [
    pytest.param(Listed(4, 5, 6, {"k": ("y", 6)}), True, id="all of it"),
    pytest.param(Listed(4, 5, 9, {"k": ("y", 6)}), True, id="at a later revision"),
    pytest.param(Listed(2, 5, 5, {"k": ("x", 5)}), True, id="during the change, before it"),
    pytest.param(Listed(2, 5, 6, {"k": ("x", 5)}), False, id="its revision is after the change, its content before"),
    pytest.param(Listed(2, 5, 5, {"k": ("y", 6)}), False, id="something newer than the list"),
    pytest.param(Listed(4, 5, 5, {"k": ("x", 5)}), False, id="older than what was known"),
    pytest.param(Listed(4, 5, 6, {}), False, id="something is missing"),
])
def test_lists(listed: Listed, fine: bool) -> None:
    assert fine is not bool(problems([MADE, CHANGED], [listed]))


def test_a_long_history_is_judged_quickly_and_one_wrong_answer_in_it_is_found() -> None:
    chance = random.Random(4)
    history, state, moment = [], ("", 0), 0
    for number in range(1, 3000):
        moment += 10
        late = moment + chance.randrange(60)      # answers overlap with the next operations
        history.append(op("update", moment, late, 200, f"v{number}", number, state[1]) if state[0]
                       else op("create", moment, late, 201, f"v{number}", number))
        state = (f"v{number}", number)
    assert [] == problems(history)

    wrong = op("get", moment - 15_000, moment - 14_990, 200, "v1", 1)
    assert problems([*history, wrong])


async def one_life(path: Path, history: History, clients: Sequence[Client], chance: random.Random) -> None:
    """Serve until a moment that the clients do not choose, with their requests on the way; nobody answers those."""
    async with embedded(VirtualClock(), path) as cluster:
        transport = InProcess(cluster.server, Identity("tests", ("system:masters",)))
        working = [asyncio.ensure_future(client.work(transport, 10_000)) for client in clients]
        enough = len(history._life) + chance.randrange(150, 400)
        while len(history._life) < enough:        # noqa: ASYNC110  the next turn of the loop is what is waited for
            await asyncio.sleep(0)
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    history.died(now())


async def test_eight_clients_over_many_lives_of_a_server(tmp_path: Path) -> None:
    chance = seeded()
    history = History()
    clients = [Client(number, history, random.Random(chance.random())) for number in range(CLIENTS)]
    for _ in range(6):
        await one_life(tmp_path / "cluster.db", history, clients, chance)

    assert len(history.acknowledged) > 100
    assert [] == problems(history.operations, history.lists)
