"""Specifications that came before: nobody can tell from an answer that one did."""

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cluster.apiserver.api import PODS, Answer, Api, pod, serving

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import lifecycle
from trainmaster.cluster.apiserver.familiar import LONGEST, LONGEST_SORT, MOST, Familiar, Familiars
from trainmaster.cluster.apiserver.fieldsets import Change
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.kinds import BUILT_IN
from trainmaster.testing.clock import VirtualClock

POD = next(kind for kind in BUILT_IN if kind.resource.plural == "pods")
MAP = next(kind for kind in BUILT_IN if kind.resource.plural == "configmaps")
_RANDOM = re.compile(rb'"(uid|resourceVersion|name)":"(?:[0-9a-f-]{36}|[0-9]+|n[0-9]+|kube-api-access-[a-z0-9]{5})"')
_NAME = re.compile(rb"\bn[0-9]+\b")
Parts: TypeAlias = dict[str, Json]


def parts(**choices: list[Json]) -> st.SearchStrategy[Parts]:
    """Any of the fields, each with one of its values."""
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


CONTAINERS = parts(
    command=[["python", "train.py"], [], None], image=["a/b:1", "a/b", "", 7], imagePullPolicy=["Always", "Perhaps"],
    env=[[{"name": "A", "value": "1"}, {"name": "B"}], [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
         [{"name": ""}], [{"name": "A"}, {"name": "A", "value": ""}], [None]],
    resources=[{"limits": {"cpu": "1000m", "memory": "1Gi"}}, {"limits": {"cpu": 1}}, {"requests": {"cpu": "many"}},
               {}],
    ports=[[{"containerPort": 80}], [{"containerPort": 0}], [{"containerPort": 80, "name": "UP"}]],
    volumeMounts=[[{"name": "v", "mountPath": "/v"}], [{"name": "nowhere", "mountPath": "/v"}]],
    livenessProbe=[{"httpGet": {"port": 80}}, {}], stdin=[True, False, "no"], unheard=["of"],
)
SPECS = st.builds(
    lambda spec, containers: {
        **spec, "containers": [{"name": f"c{at}", "image": "a/b:1", **each} for at, each in enumerate(containers)]},
    parts(
        restartPolicy=["Never", "OnFailure", "Sometimes"], nodeName=["", "a-node"], priority=[0, 5],
        volumes=[[{"name": "v"}], [{"name": "v", "emptyDir": {"sizeLimit": "1e3"}}], []], hostNetwork=[True],
        serviceAccountName=["default", "nobody"], terminationGracePeriodSeconds=[0, 30, -1], ephemeralContainers=[[]],
        nodeSelector=[{"a": "b"}, {"-": "b"}], tolerations=[[{"key": "k", "operator": "Exists"}]],
        unheardOf=[{"deep": [1, 2.0, None]}],
    ),
    st.lists(CONTAINERS, min_size=1, max_size=2),
)
METADATA = parts(
    labels=[{"a": "b"}, {"a": "?"}, {}, {"a": 1}], annotations=[{"a/b": "c"}, {"?": ""}], finalizers=[["a/b"], ["?"]],
    ownerReferences=[[{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}], [{"name": "o"}]],
    managedFields=[[], [{"manager": "m"}]], creationTimestamp=[None, "2020-01-01T00:00:00Z"], unheardOf=[1],
    namespace=["default", "other"],
)


def told(answer: Answer) -> tuple[int, bytes, list[str]]:
    """An answer without what is different every time."""
    return answer.code, _NAME.sub(b"NAME", _RANDOM.sub(rb'"\1":""', answer.body)), answer.warnings


@settings(max_examples=150, deadline=None)
@given(metadata=METADATA, spec=SPECS, query=st.sampled_from(["", "fieldValidation=Strict", "fieldValidation=Warn",
                                                             "dryRun=All", "fieldManager=me"]))
def test_a_familiar_specification_is_answered_as_it_was_the_first_time(
    metadata: Parts, spec: Parts, query: str, on_a_server: Callable[..., list[Answer]]
) -> None:
    first, *others = on_a_server(metadata, spec, query)

    assert [told(first)] * 3 == [told(each) for each in others]


@pytest.fixture(scope="module")
def on_a_server() -> Iterator[Callable[..., list[Answer]]]:
    """Sends the same four times, to a server that never saw the like."""
    numbers = count()

    async def sent(metadata: Parts, spec: Parts, query: str) -> list[Answer]:
        spec = {**spec, "schedulerName": f"new-{next(numbers)}"}
        return [await state.post(PODS, {"metadata": {"name": f"n{next(numbers)}", **metadata}, "spec": spec}, query)
                for _ in range(4)]

    loop = asyncio.new_event_loop()
    entered = serving()
    state: Api = loop.run_until_complete(entered.__aenter__())
    yield lambda *what: loop.run_until_complete(sent(*what))
    loop.run_until_complete(entered.__aexit__(None, None, None))
    loop.close()


SORTS: list[Parts] = [
    {}, {"labels": {"a": "1"}}, {"labels": {"a": "2"}}, {"labels": {"b": "1"}}, {"annotations": {"a": "1"}},
    {"labels": {"a": "1"}, "annotations": {"a": "1"}}, {"finalizers": ["example.com/a"]},
    {"finalizers": ["example.com/b"]}, *({"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": uid, **more}]}
        for uid in ("1", "2") for more in ({}, {"controller": True}))]


async def test_who_owns_a_familiar_pod_follows_from_its_own_metadata(api: Api) -> None:
    async def owned(number: int, scheduler: str, metadata: Parts) -> Parts:
        named = {"metadata": {"name": f"p{number}", **metadata}}
        made = await api.made(PODS, {**pod("p", schedulerName=scheduler), **named})
        [entry] = made["metadata"]["managedFields"]
        found: Parts = entry["fieldsV1"]
        return found

    numbers = count()
    first = [await owned(next(numbers), f"new-{at}", metadata) for at, metadata in enumerate(SORTS)]
    for _ in range(3):
        assert first == [await owned(next(numbers), "familiar", metadata) for metadata in SORTS]


@pytest.mark.parametrize(("size", "worked_out"), [
    pytest.param(10, 1, id="short metadata, once"), pytest.param(LONGEST_SORT + 1, 3, id="long ones, each time")])
def test_what_a_client_can_make_long_is_not_remembered(size: int, worked_out: int) -> None:
    familiar, times = Familiar(b"{}", {}), []

    def compare() -> Change:
        times.append(size)
        return Change({}, {})

    for _ in range(3):
        familiar.change({"annotations": {"a" * size: ""}}, compare)

    assert len(times) == worked_out


async def test_what_becomes_of_one_pod_does_not_touch_the_next_of_the_same_specification(api: Api) -> None:
    mounts = []
    for number in range(4):
        made = await api.made(PODS, pod(f"p{number}", nodeSelector={"a": "b"}))
        more = [*made["spec"]["tolerations"], {"key": f"k{number}", "operator": "Exists"}]
        assert 200 == (await api.patch(f"{PODS}/p{number}", {"spec": {"tolerations": more}})).code
        await api.patch(f"{PODS}/p{number}/status", {"status": {"phase": "Running"}})
        found = (await api.get(f"{PODS}/p{number}")).json
        mounts.append(found["spec"]["volumes"][0]["name"])
        assert [f"k{number}"] == [each["key"] for each in found["spec"]["tolerations"][2:]]
        assert "Pending" == (await api.made(PODS, pod(f"q{number}", nodeSelector={"a": "b"})))["status"]["phase"]

    assert len(set(mounts)) == 4, "each has a volume of its own"


def seen(familiars: Familiars, node: str, times: int) -> Object:
    """The specification of a pod, after so many of it were created."""
    for _ in range(times):
        sent, body = familiars.sent(POD, pod(nodeName=node)), pod(nodeName=node)
        familiars.saw(sent, POD, lifecycle.created(POD, body, "default", "p", now=VirtualClock().now(), uid="1"))
    return pod(nodeName=node)


def test_once_is_not_familiar_and_what_is_longest_unseen_is_forgotten_first() -> None:
    familiars = Familiars()
    first, *others = [seen(familiars, f"n-{number}", 2) for number in range(MOST)]

    def known(body: Json) -> bool:
        return familiars.find(familiars.sent(POD, body)) is not None

    assert all(known(body) for body in (*others, first))
    assert not known(seen(familiars, "once", 1))
    assert (False, True, True) == (known(others[0]), known(others[1]), known(first))


@pytest.mark.parametrize(("kind", "body"), [
    pytest.param(MAP, {"spec": {}}, id="a kind whose objects depend on more than their spec"),
    pytest.param(POD, [], id="a body that is no object"),
    pytest.param(POD, {"metadata": {}}, id="an object without a spec"),
    pytest.param(POD, {"spec": "all"}, id="a spec that is none"),
    pytest.param(POD, {"spec": {"nodeName": "x" * LONGEST}}, id="a very long one"),
])
def test_what_is_not_remembered(kind: Kind, body: Json) -> None:
    assert Familiars().sent(kind, body) is None
