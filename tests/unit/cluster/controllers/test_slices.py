"""The EndpointSlices of a service: what is created, changed and deleted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cluster.controllers.backed import kept, service_here

from trainmaster.api.meta import Object, labels_of, metadata, name_of
from trainmaster.cluster.controllers.slices import MANAGED_BY, MANAGER, MOST_ENDPOINTS, SERVICE_NAME, Changes, changes

HTTP = {"name": "http", "containerPort": 8081, "protocol": "TCP"}


def applied(todo: Changes, existing: list[Object]) -> list[Object]:
    """What is there afterwards."""
    here = {name_of(one): one for one in existing}
    here |= {name_of(one): one for one in (*todo.create, *todo.update)}
    for one in todo.delete:
        del here[name_of(one)]
    return list(here.values())


def made(service: Object, *pods: Object) -> list[Object]:
    return applied(changes(service, pods, []), [])


def listed(slices: list[Object]) -> list[str]:
    return sorted(entry["targetRef"]["name"] for one in slices for entry in one["endpoints"])


def test_a_service_that_nobody_backs_has_one_empty_slice() -> None:
    [one] = made(service_here(labels={"a": "b"}))

    assert ("IPv4", [], []) == (one["addressType"], one["endpoints"], one["ports"])
    assert {"a": "b", SERVICE_NAME: "web", MANAGED_BY: MANAGER} == labels_of(one)
    [owner] = metadata(one)["ownerReferences"]
    assert ("Service", "web", "svc", True) == (owner["kind"], owner["name"], owner["uid"], owner["controller"])
    assert name_of(one).startswith("web-")
    assert Changes([], [], []) == changes(service_here(labels={"a": "b"}), [], [one])


@pytest.mark.parametrize(
    ("pod", "fields", "expected"),
    [
        pytest.param(kept(), {}, (True, True, False), id="ready"),
        pytest.param(kept(ready=False), {}, (False, False, False), id="not ready"),
        pytest.param(kept(deleted=True), {}, (False, True, True), id="on its way out, still serving"),
        pytest.param(kept(ready=False, deleted=True), {}, (False, False, True), id="on its way out"),
        pytest.param(kept(ready=False, deleted=True), {"publishNotReadyAddresses": True}, (True, False, True),
                     id="wanted whatever it says"),
    ],
)
def test_conditions(pod: Object, fields: Any, expected: tuple[bool, ...]) -> None:
    [one] = made(service_here(**fields), pod)

    assert expected == tuple(one["endpoints"][0]["conditions"][name] for name in ("ready", "serving", "terminating"))


def test_an_endpoint_says_where_it_leads() -> None:
    [one] = made(service_here(), kept(hostname="host", subdomain="web"))
    [entry] = one["endpoints"]

    assert (["10.88.0.2"], "host", "n") == (entry["addresses"], entry["hostname"], entry["nodeName"])
    assert {"kind": "Pod", "namespace": "default", "name": "p-1", "uid": "u-1"} == entry["targetRef"]
    assert [{"name": "", "port": 8080, "protocol": "TCP"}] == one["ports"]


@pytest.mark.parametrize(
    ("fields", "pods", "expected"),
    [
        pytest.param({"ports": [{"port": 80, "targetPort": "http"}]},
                     [kept(1, ports=[HTTP]), kept(2, ports=[{**HTTP, "containerPort": 9}])],
                     [("IPv4", [9], ["p-2"]), ("IPv4", [8081], ["p-1"])], id="one slice for each port of a name"),
        pytest.param({"ports": [{"port": 80, "targetPort": "http"}]}, [kept(1)], [("IPv4", [], ["p-1"])],
                     id="a pod without the port is listed without one"),
        pytest.param({"ports": [], "clusterIP": "None"}, [kept(1)], [("IPv4", [], ["p-1"])], id="no ports at all"),
        pytest.param({"ipFamilies": ["IPv4", "IPv6"]}, [kept(1)], [("IPv4", [8080], ["p-1"]), ("IPv6", [], [])],
                     id="two families: each has its own"),
        pytest.param({}, [kept(1, phase="Succeeded"), kept(2, ip="")], [("IPv4", [], [])],
                     id="those that are done or have no address are not listed"),
    ],
)
def test_groups(fields: Any, pods: list[Object], expected: list[Any]) -> None:
    found = [
        (one["addressType"], [port["port"] for port in one["ports"]], listed([one]))
        for one in made(service_here(**fields), *pods)
    ]

    assert expected == sorted(found)


def test_large_services_have_several_slices_and_one_pod_changes_one() -> None:
    pods = [kept(number) for number in range(250)]
    slices = made(service_here(), *pods)
    assert [50, 100, 100] == sorted(len(one["endpoints"]) for one in slices)

    todo = changes(service_here(), [*pods[:7], kept(7, ready=False), *pods[8:]], slices)
    assert (0, 1, 0) == (len(todo.create), len(todo.update), len(todo.delete))

    more = changes(service_here(), [*pods, *(kept(number) for number in range(300, 350))], slices)
    assert (0, 1, 0) == (len(more.create), len(more.update), len(more.delete)), "there is room for them"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(service_here(), service_here(labels={"a": "b"}), (0, 1, 0), id="labels follow the service"),
        pytest.param(service_here(), service_here(ports=[{"port": 9}]), (0, 1, 0), id="other ports, in the same slice"),
        pytest.param(service_here(), {**service_here(), "metadata": {**service_here()["metadata"], "uid": "again"}},
                     (1, 0, 1), id="a service made again has slices of its own"),
        pytest.param(service_here(), service_here(), (0, 0, 0), id="nothing changed, nothing to do"),
    ],
)
def test_changes_of_the_service(before: Object, after: Object, expected: tuple[int, ...]) -> None:
    todo = changes(after, [kept()], made(before, kept()))

    assert expected == (len(todo.create), len(todo.update), len(todo.delete))


def test_the_empty_slice_of_a_new_service_is_the_one_that_its_pods_come_to_and_leave() -> None:
    empty = made(service_here())
    full = applied(changes(service_here(), [kept()], empty), empty)
    left = applied(changes(service_here(), [], full), full)

    assert 1 == len({name_of(one) for one in (*empty, *full, *left)})
    assert [(0, 0), (1, 1), (0, 0)] == [(len(one["endpoints"]), len(one["ports"])) for one in (*empty, *full, *left)]


def test_a_creation_that_is_repeated_has_the_same_names() -> None:
    pods = [kept(number) for number in range(250)]
    names = [sorted(map(name_of, made(service_here(), *pods))) for _ in range(2)]

    assert names[0] == names[1]
    assert 3 == len(set(names[0]))


worlds = st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.sampled_from([8081, 9])), max_size=40)


@settings(max_examples=60)
@given(st.lists(worlds, min_size=1, max_size=5))
def test_whatever_comes_and_goes_everybody_is_listed_once(steps: list[list[tuple[int, bool, int]]]) -> None:
    """After each step: exactly the pods that are there, each once, no slice too full or needlessly empty, at rest."""
    service = service_here(ports=[{"port": 80, "targetPort": "http"}])
    slices: list[Object] = []
    for step in steps:
        pods = [
            kept(number, ready=ready, ports=[{**HTTP, "containerPort": port}])
            for number, (ready, port) in {number: (ready, port) for number, ready, port in step}.items()
        ]
        slices = applied(changes(service, pods, slices), slices)

        assert sorted(map(name_of, pods)) == listed(slices)
        assert all(0 < len(one["endpoints"]) <= MOST_ENDPOINTS for one in slices) or [[]] == [
            one["endpoints"] for one in slices
        ]
        assert Changes([], [], []) == changes(service, pods, slices)
