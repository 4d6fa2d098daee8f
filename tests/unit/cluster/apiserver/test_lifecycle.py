"""What a deletion is answered with. The rows were compared with a real kube-apiserver."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import NAMESPACES, PODS, SERVICES, Api, pod, service

from trainmaster.api.meta import Object

HELD: Object = {"name": "t", "finalizers": ["example.com/held"]}
AT_ONCE: Object = {"gracePeriodSeconds": 0}
TRIAL: Object = {"dryRun": ["All"]}
NAMESPACE: Object = {"metadata": {"name": "t"}}
BOUND = pod("t", nodeName="n")


def held(thing: Object) -> Object:
    return {**thing, "metadata": HELD}


@pytest.mark.parametrize(("place", "thing", "options", "seconds", "generation"), [
    pytest.param(PODS, pod("t"), None, 0, 2, id="a pod that no node has is told to have ended"),
    pytest.param(PODS, BOUND, AT_ONCE, 0, 2, id="a pod that goes at once is told to have ended"),
    pytest.param(PODS, BOUND, None, 30, 2, id="a pod gets its time"),
    pytest.param(PODS, BOUND, TRIAL, 30, 2, id="a trial says how a pod would end"),
    pytest.param(PODS, pod("t"), TRIAL, 0, 2, id="a trial says how a pod would go at once"),
    pytest.param(PODS, held(pod("t")), TRIAL, 0, 2, id="a trial says how a pod that is held would wait"),
    pytest.param(SERVICES, service("t"), None, None, None, id="a service that goes is told as it was"),
    pytest.param(SERVICES, held(service("t")), TRIAL, 0, None, id="a trial says how a service that is held would wait"),
])
async def test_the_answer(api: Api, place: str, thing: Object, options: Object | None, seconds: int | None,
                          generation: int | None) -> None:
    await api.made(place, thing)

    meta = (await api.delete(f"{place}/t", options)).json["metadata"]

    assert (seconds, generation, seconds is not None) == (
        meta.get("deletionGracePeriodSeconds"), meta.get("generation"), "deletionTimestamp" in meta)


async def test_who_watches_is_told_the_same(api: Api) -> None:
    made = await api.made(PODS, BOUND)
    async with api.watch(PODS, f"resourceVersion={made['metadata']['resourceVersion']}") as watch:
        answer = (await api.delete(f"{PODS}/t", AT_ONCE)).json

        event: Any = await watch.next()

    assert ("DELETED", answer["metadata"]["deletionTimestamp"]) == (
        event["type"], event["object"]["metadata"]["deletionTimestamp"])


async def test_a_trial_changes_nothing(api: Api) -> None:
    made = await api.made(PODS, BOUND)

    await api.delete(f"{PODS}/t", TRIAL)

    assert made == (await api.get(f"{PODS}/t")).json


async def test_a_namespace_has_no_time_to_end(api: Api) -> None:
    await api.made(NAMESPACES, NAMESPACE)

    meta = (await api.delete(f"{NAMESPACES}/t")).json["metadata"]

    assert "deletionTimestamp" in meta
    assert "deletionGracePeriodSeconds" not in meta


@pytest.mark.parametrize(("place", "thing", "said"), [
    pytest.param(SERVICES, service("t"), 'Operation cannot be fulfilled on Service "t": the UID in the precondition '
                 "(x) does not match the UID in record (UID). The object might have been deleted and then recreated",
                 id="a service"),
    pytest.param(NAMESPACES, NAMESPACE, 'Operation cannot be fulfilled on namespaces "t": Precondition failed: UID in '
                 "precondition: x, UID in object meta: UID", id="a namespace"),
])
async def test_another_one_was_meant(api: Api, place: str, thing: Object, said: str) -> None:
    made = await api.made(place, thing)

    answer = await api.delete(f"{place}/t", {"preconditions": {"uid": "x"}})

    assert (409, said) == (answer.code, answer.message.replace(made["metadata"]["uid"], "UID"))
