"""Which writes fall when the disk refuses a batch, and which may still go into the reserve."""

import asyncio

import pytest

from trainmaster.cluster.store.pending import Transaction, Write, salvage
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
