"""Every rule of the built-in kinds: what breaks it, and what whoever broke it is told."""

import pytest
from tests.unit.cluster.apiserver.api import Api
from tests.unit.cluster.apiserver.refusals_table import Row, comparable, rows

from trainmaster.api.meta import name_of


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.family}: {row.when}") for row in rows()])
async def test_it_is_said_in_the_words_of_kubernetes(api: Api, row: Row) -> None:
    place = row.resource
    if row.status is not None:
        await api.made(place.path(row.namespace), row.thing)
        path = f"{place.path(row.namespace, name_of(row.thing))}/status"
        if row.first is not None:
            assert (await api.patch(path, {"status": row.first})).code == 200
        answer = await api.patch(path, {"status": row.status})
    elif row.change is None:
        answer = await api.post(place.path(row.namespace), row.thing)
    else:
        await api.made(place.path(row.namespace), row.thing)
        answer = await api.patch(place.path(row.namespace, name_of(row.thing)), row.change)

    assert row.said == comparable(answer.code, answer.json.get("message", ""))
