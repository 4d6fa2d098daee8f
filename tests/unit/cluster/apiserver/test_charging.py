"""Quotas are charged in the write that they pay for: by one request, by many at once, by those that fail."""

import asyncio
from typing import Any

from tests.unit.cluster.apiserver.api import MAPS, PODS, SERVICES, Api, config_map, pod, service

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


async def limited(api: Api, **hard: str) -> None:
    await api.made(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    counted = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    assert 200 == (await api.patch(f"{QUOTAS}/q/status", {"status": counted})).code


async def used(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"{QUOTAS}/q")).json["status"]["used"]
    return found


async def test_a_creation_beyond_the_quota_is_refused_and_not_charged(api: Api) -> None:
    await limited(api, configmaps="1")
    codes = [(await api.post(MAPS, config_map(name))).code for name in ("a", "a", "b")]
    answer = await api.post(MAPS, config_map("c"))

    assert [201, 403, 403] == codes     # the second one would be there already, but admission comes first
    said = "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
    assert f'configmaps "c" is forbidden: {said}' == answer.message
    assert {"configmaps": "1"} == await used(api)


async def test_what_exists_already_is_not_charged(api: Api) -> None:
    await limited(api, configmaps="2")
    codes = [(await api.post(MAPS, config_map("a"))).code for _ in range(2)]

    assert ([201, 409], {"configmaps": "1"}) == (codes, await used(api))


async def test_creations_at_once_take_no_more_than_there_is(api: Api) -> None:
    await limited(api, pods="7")
    answers = await asyncio.gather(*(api.post(PODS, pod(f"p-{number}")) for number in range(20)))

    assert 7 == sum(answer.code == 201 for answer in answers)
    assert 13 == sum(answer.code == 403 for answer in answers)
    assert {"pods": "7"} == await used(api)


async def test_a_dry_run_is_refused_but_not_charged(api: Api) -> None:
    await limited(api, configmaps="1")
    first = await api.post(MAPS, config_map("a"), "dryRun=All")
    await api.made(MAPS, config_map("a"))
    second = await api.post(MAPS, config_map("b"), "dryRun=All")

    assert (201, 403, {"configmaps": "1"}) == (first.code, second.code, await used(api))


async def test_a_service_that_comes_to_use_more_is_charged_then(api: Api) -> None:
    await limited(api, **{"services.nodeports": "1", "services": "2"})
    await api.made(SERVICES, service("a"))
    await api.made(SERVICES, service("b", type="NodePort"))
    refused = await api.patch(f"{SERVICES}/a", {"spec": {"type": "NodePort"}})

    assert (403, {"services": "2", "services.nodeports": "1"}) == (refused.code, await used(api))
    assert "ClusterIP" == (await api.get(f"{SERVICES}/a")).json["spec"]["type"]


async def test_other_namespaces_are_not_concerned(api: Api) -> None:
    await limited(api, configmaps="0")

    assert 201 == (await api.post("/api/v1/namespaces/kube-public/configmaps", config_map("a"))).code
