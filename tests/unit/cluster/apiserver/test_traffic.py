"""Too many requests at once are refused, and what was done is counted."""

import asyncio
from contextlib import nullcontext

import pytest
from tests.unit.cluster.apiserver.api import MAPS, PODS, config_map, serving

from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.traffic import Traffic, text


async def test_beyond_the_bound_clients_are_told_to_come_back() -> None:
    async with serving(most_requests=4) as api:
        answers = await asyncio.gather(*(api.post(MAPS, config_map(f"m{number}")) for number in range(10)))
        refused = next(answer for answer in answers if answer.code != 201)

        assert ([201] * 4, [429] * 6) == ([each.code for each in answers if each.code == 201],
                                          [each.code for each in answers if each.code != 201])
        assert ("TooManyRequests", "1") == (refused.json["reason"], refused.headers["Retry-After"])
        assert {"retryAfterSeconds": 1} == refused.json["details"]
        assert 200 == (await api.get(f"{MAPS}/m0")).code


async def test_open_watches_do_not_count() -> None:
    async with serving(most_requests=1) as api, api.watch(PODS), api.watch(PODS):
        assert 201 == (await api.post(MAPS, config_map())).code
        assert "trainmaster_apiserver_watches 2\n" in (await api.get("/metrics")).body.decode()


@pytest.mark.parametrize(("path", "let_in"), [
    pytest.param("/readyz", True, id="who asks for its health"),
    pytest.param("/livez/ping", True, id="in any detail"),
    pytest.param("/metrics", True, id="or for its metrics"),
    pytest.param("/api/v1/pods", False, id="but nobody else"),
])
def test_who_is_let_into_a_full_server(path: str, let_in: bool) -> None:
    traffic = Traffic(most=1)
    traffic.enter("/api")
    with nullcontext() if let_in else pytest.raises(Failure, match="Too many requests"):
        traffic.enter(path)

    assert (2 if let_in else 1) == traffic.under_way


def test_a_slot_is_given_back_whatever_happens() -> None:
    traffic = Traffic()
    with pytest.raises(ZeroDivisionError), traffic.slot("/api"):
        _ = 1 / 0

    assert 0 == traffic.under_way


async def test_requests_are_counted_by_what_they_were() -> None:
    async with serving() as api:
        await api.post(MAPS, config_map())
        await api.get(f"{MAPS}/m")
        await api.get(f"{MAPS}/none")
        await api.get(f"{PODS}/p/made-up")
        answer = await api.get("/metrics")
        said = answer.body.decode().splitlines()

    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    for verb, code in (("create", 201), ("get", 200), ("get", 404)):
        assert (f'apiserver_request_total{{verb="{verb}",group="",version="v1",resource="configmaps",subresource="",'
                f'code="{code}"}} 1') in said
    assert not any("made-up" in line for line in said), "labels are bounded by what is served"
    assert f"trainmaster_store_revision {api.store.revision}" in said


def test_the_text_ends_in_a_line() -> None:
    assert text(Traffic(), watches=0, revision=1, oldest=1).endswith("trainmaster_store_oldest_revision 1\n")
