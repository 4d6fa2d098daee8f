"""Evictions ask the disruption budget of a pod, and nobody is evicted twice on one allowance."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import PODS, Api

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.evicting import REFUSED, SEVERAL, Verdict, paid, verdict
from trainmaster.cluster.apiserver.failures import Failure

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(name: str = "p", phase: str = "Running", *, ready: bool = True) -> Object:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": name, "labels": {"app": "x"}}, "status": {"phase": phase, "conditions": conditions}}


def budget(allowed: int = 1, *, generation: int = 1, spec: Object | None = None, **status: Any) -> Object:
    counted = {"currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "observedGeneration": 1}
    return {"metadata": {"name": "b", "generation": generation}, "spec": spec or {},
            "status": {**counted, "disruptionsAllowed": allowed, **status}}


@pytest.mark.parametrize(("found", "budgets", "expected"), [
    pytest.param(pod(), [], Verdict(), id="no budget: goes"),
    pytest.param(pod(), [budget()], Verdict(payer="b"), id="a budget pays"),
    pytest.param(pod(phase="Failed"), [budget(0)], Verdict(), id="one that ended disturbs nobody"),
    pytest.param(pod(phase="Pending"), [budget(0)], Verdict(as_it_is=True), id="one that waits, while it does"),
    pytest.param(pod(ready=False), [budget(0)], Verdict(as_it_is=True, guarded="b"), id="unready, and enough others"),
    pytest.param(pod(ready=False), [budget(0, currentHealthy=0)], Verdict(payer="b"), id="unready, and too few others"),
    pytest.param(pod(ready=False), [budget(0, currentHealthy=0, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"})],
                 Verdict(as_it_is=True, guarded="b"), id="unready, and the budget says always"),
])
def test_who_pays(found: Object, budgets: list[Object], expected: Verdict) -> None:
    assert expected == verdict(found, budgets)


@pytest.mark.parametrize(("found", "code", "cause"), [
    pytest.param(budget(0, currentHealthy=1), 429, "The disruption budget b needs 1 healthy pods and has 1 currently",
                 id="too few are healthy"),
    pytest.param(budget(1, generation=2), 429, "The disruption budget b is still being processed by the server.",
                 id="it has changed and is not counted yet"),
    pytest.param(budget(0), 429, "The disruption budget b does not allow evicting pods currently", id="just no"),
    pytest.param(budget(0, conditions=[{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed",
                                        "message": "why"}]),
                 429, "The disruption budget b does not allow evicting pods currently because it failed sync: why",
                 id="nobody could count"),
    pytest.param(budget(-1), 403, "pdb disruptions allowed is negative", id="a number that is none"),
    pytest.param(budget(1, disruptedPods=dict.fromkeys(map(str, range(2001)), "")), 403, "DisruptedPods map too big",
                 id="nobody confirms evictions"),
])
def test_a_budget_that_does_not_pay_says_why(found: Object, code: int, cause: str) -> None:
    with pytest.raises(Failure) as refusal:
        paid(found, "p", NOON)

    answer = refusal.value.status()
    assert code == answer["code"]
    if code == 429:
        assert REFUSED == answer["message"]
        assert [{"reason": "DisruptionBudget", "message": cause}] == answer["details"]["causes"]
    else:
        assert cause in answer["message"]


def test_a_budget_that_pays_notes_whom_and_that_nothing_is_left() -> None:
    left = paid(budget(1), "p", NOON)["status"]

    assert (0, {"p": "2026-01-01T12:00:00Z"}) == (left["disruptionsAllowed"], left["disruptedPods"])
    assert ("False", "InsufficientPods") == (left["conditions"][0]["status"], left["conditions"][0]["reason"])


async def scene(api: Api, *budgets: str, allowed: int = 1) -> None:
    for name in ("one", "two"):
        spec = {"containers": [{"name": "main", "image": "x"}], "nodeName": "n"}
        await api.post(PODS, {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec})
        await api.patch(f"{PODS}/{name}/status", {"status": pod()["status"]})
    for name in budgets:
        wanted: Object = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        await api.post(BUDGETS, {"metadata": {"name": name}, "spec": wanted})
        await api.patch(f"{BUDGETS}/{name}/status", {"status": budget(allowed)["status"]})


def eviction(name: str) -> Object:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


async def test_two_evictions_at_once_share_no_allowance(api: Api) -> None:
    await scene(api, "b")
    answers = await asyncio.gather(*(api.post(f"{PODS}/{name}/eviction", eviction(name)) for name in ("one", "two")))

    assert [201, 429] == sorted(answer.code for answer in answers)
    refused = next(answer for answer in answers if answer.code == 429)
    assert REFUSED == refused.message
    found = (await api.get(f"{BUDGETS}/b")).json
    assert 0 == found["status"]["disruptionsAllowed"]
    gone = next(iter(found["status"]["disruptedPods"]))
    ending = (await api.get(f"{PODS}/{gone}")).json
    assert "deletionTimestamp" in ending["metadata"]
    assert "EvictionByEvictionAPI" == ending["status"]["conditions"][-1]["reason"]
    assert "kube-apiserver" in {each["manager"] for each in found["metadata"]["managedFields"]}


async def test_an_eviction_that_is_only_tried_pays_nothing_and_is_refused_all_the_same(api: Api) -> None:
    await scene(api, "b")
    tried = await api.post(f"{PODS}/one/eviction", eviction("one"), query="dryRun=All")
    await api.patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 0, "currentHealthy": 1}})
    refused = await api.post(f"{PODS}/one/eviction", eviction("one"), query="dryRun=All")

    assert (201, 429) == (tried.code, refused.code)
    assert "disruptedPods" not in (await api.get(f"{BUDGETS}/b")).json["status"]


async def test_two_budgets_for_one_pod_are_too_many(api: Api) -> None:
    await scene(api, "b", "c")
    answer = await api.post(f"{PODS}/one/eviction", eviction("one"))

    assert (500, SEVERAL) == (answer.code, answer.message)


async def test_a_condition_of_the_client_holds_for_evictions(api: Api) -> None:
    await scene(api, "b")
    wanted = {**eviction("one"), "deleteOptions": {"preconditions": {"resourceVersion": "1"}}}
    answer = await api.post(f"{PODS}/one/eviction", wanted)

    assert 409 == answer.code
