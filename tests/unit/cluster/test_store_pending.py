"""Which writes fall when the disk refuses a batch, and which may still go into the reserve."""

import asyncio

import pytest

from trainmaster.cluster.store.pending import Transaction, Write, fitted, salvage
from trainmaster.cluster.store.records import Record


def transaction(text: str) -> Transaction:
    """`+a` creates, `-a` deletes, `+a+b` does both in one transaction."""
    writes = []
    for sign, key in zip(text[::2], text[1::2], strict=True):
        record = Record(key, b"", 2, 2)
        writes.append(Write(key, 3, record, None) if sign == "-" else Write(key, 3, None, record))
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return Transaction(tuple(writes), "+" not in text, done)


@pytest.mark.parametrize(
    ("batch", "lost", "kept"),
    [
        pytest.param("-a -b", "", "-a -b", id="deletions are tried again"),
        pytest.param("+a -b", "", "-b", id="creations are not"),
        pytest.param("+a -a -b", "", "-b", id="nor is what was built on them"),
        pytest.param("-a +a -a", "", "-a", id="a deletion before them is, one after them is not"),
        pytest.param("-a+b -c", "", "-c", id="a transaction that also creates is refused whole"),
        pytest.param("-a-b -b", "", "-a-b -b", id="a transaction that only deletes is kept whole"),
        pytest.param("+a -a-b -b", "", "", id="what fell drags along everything built on it"),
        pytest.param("-a -b", "a", "-b", id="what fell earlier counts"),
        pytest.param("", "a", "", id="nothing is left of nothing"),
    ],
)
async def test_salvage(batch: str, lost: str, kept: str) -> None:
    transactions = [transaction(text) for text in batch.split()]
    texts = dict(zip(map(id, transactions), batch.split(), strict=True))

    survivors, fallen = salvage(transactions, set(lost))

    assert kept.split() == [texts[id(transaction)] for transaction in survivors]
    assert len(transactions) == len(survivors) + len(fallen)


def urgent(text: str) -> Transaction:
    """`-a5` deletes with a last state of so many pages, `~a3` is an update of so many; several are one transaction."""
    writes = []
    for sign, key, pages in zip(text[::3], text[1::3], text[2::3], strict=True):
        record, value = Record(key, b"", 2, 2), bytes(int(pages))
        writes.append(Write(key, 3, record, None, value) if sign == "-"
                      else Write(key, 3, record, Record(key, value, 3, 2)))
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return Transaction(tuple(writes), urgent=True, done=done)


@pytest.mark.parametrize(
    ("batch", "room", "kept", "bare"),
    [
        pytest.param("-a5 -b5", 12, "-a5 -b5", False, id="what fits is written as it is to be seen"),
        pytest.param("-a5 -b5", 11, "-a5 -b5", True, id="what does not goes without the last states"),
        pytest.param("-a5 -b5 -c5", 2, "-a5 -b5", True, id="as many as possible"),
        pytest.param("~a3 -b5", 4, "~a3", True, id="an update has to be written as it is"),
        pytest.param("~a9 -b5", 4, "-b5", True, id="one that is too large does not keep others from going"),
        pytest.param("~a9 -a1 -b1", 3, "-b1", True, id="but those that were built on it"),
        pytest.param("-a5-b5 -c5", 1, "-c5", True, id="a transaction fits whole or not at all"),
        pytest.param("-a5", 0, "", True, id="nothing goes where nothing is"),
    ],
)
async def test_what_fits(batch: str, room: int, kept: str, bare: bool) -> None:
    transactions = [urgent(text) for text in batch.split()]
    texts = dict(zip(map(id, transactions), batch.split(), strict=True))

    fit = fitted(transactions, room, lambda size: size, set())

    assert (kept.split(), bare) == ([texts[id(transaction)] for transaction in fit.kept], fit.bare)
    assert len(transactions) == len(fit.kept) + len(fit.fallen)
    assert sum(write.size for write in fit.writes) <= room
    assert [write.revision for write in fit.writes] == [3] * sum(len(each.writes) for each in fit.kept)
