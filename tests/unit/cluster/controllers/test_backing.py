"""Which pods back a service, at which ports, and what its Endpoints say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.controllers.backed import WEB, kept, running, service_here

from trainmaster.api.meta import Key, Object
from trainmaster.cluster.controllers.backing import (
    MANAGED_BY,
    MANAGER,
    MOST_ADDRESSES,
    OVER_CAPACITY,
    Port,
    Selectors,
    counts,
    endpoints,
    is_backed,
    pod_kept,
    ports,
    same_endpoints,
    unchanged,
)

HTTP = {"name": "http", "containerPort": 8081, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("pod", "counted", "counted_while_ending"),
    [
        pytest.param(kept(), True, True, id="it runs and has an address"),
        pytest.param(kept(ready=False), True, True, id="it is not ready: it counts, and is listed as such"),
        pytest.param(kept(ip=""), False, False, id="it has no address yet"),
        pytest.param(kept(phase="Succeeded"), False, False, id="it is done"),
        pytest.param(kept(phase="Failed"), False, False, id="it has failed"),
        pytest.param(kept(phase="Pending"), True, True, id="it is pending with an address: its containers start"),
        pytest.param(kept(deleted=True), False, True, id="it is on its way out"),
    ],
)
def test_which_pods_count(pod: Object, counted: bool, counted_while_ending: bool) -> None:
    assert (counted, counted_while_ending) == (counts(pod, ending=False), counts(pod, ending=True))


@pytest.mark.parametrize(
    ("wanted", "pod", "expected"),
    [
        pytest.param([{"port": 80, "targetPort": 8080}], kept(), (Port("", "TCP", 8080),), id="a number"),
        pytest.param([{"port": 80}], kept(), (Port("", "TCP", 80),), id="none: the port of the service"),
        pytest.param([{"port": 80, "targetPort": "http"}], kept(ports=[HTTP]), (Port("", "TCP", 8081),), id="a name"),
        pytest.param([{"port": 80, "targetPort": "http"}], kept(), (), id="a name that the pod does not have"),
        pytest.param([{"port": 80, "targetPort": "http", "protocol": "UDP"}], kept(ports=[HTTP]), (),
                     id="a name that it has for another protocol"),
        pytest.param([{"name": "a", "port": 1, "targetPort": "http", "appProtocol": "grpc"}, {"name": "b", "port": 81}],
                     kept(ports=[HTTP]), (Port("a", "TCP", 8081, "grpc"), Port("b", "TCP", 81)), id="several"),
        pytest.param([{"port": 80, "targetPort": "http"}],
                     kept(initContainers=[{"name": "s", "ports": [HTTP], "restartPolicy": "Always"}]),
                     (Port("", "TCP", 8081),), id="a name in a sidecar"),
        pytest.param([{"port": 80, "targetPort": "http"}], kept(initContainers=[{"name": "i", "ports": [HTTP]}]), (),
                     id="a name in an init container, which is over by then"),
    ],
)
def test_ports(wanted: list[Object], pod: Object, expected: tuple[Port, ...]) -> None:
    assert expected == ports(service_here(ports=wanted), pod)


def said(service: Object, *pods: Object) -> list[tuple[list[str], list[str], list[int]]]:
    """Subsets in few words: ready addresses, others, ports."""
    return [
        (
            [each["ip"] for each in subset.get("addresses") or ()],
            [each["ip"] for each in subset.get("notReadyAddresses") or ()],
            [each["port"] for each in subset.get("ports") or ()],
        )
        for subset in endpoints(service, pods, None)["subsets"]
    ]


NAMED = [{"port": 80, "targetPort": "http"}]


@pytest.mark.parametrize(
    ("service", "pods", "expected"),
    [
        pytest.param(service_here(), [], [], id="nobody: no subset"),
        pytest.param(service_here(), [kept(2), kept(1)], [(["10.88.0.2", "10.88.0.3"], [], [8080])],
                     id="pods with the same ports are together, in the order of their addresses"),
        pytest.param(service_here(), [kept(1), kept(2, ready=False)], [(["10.88.0.2"], ["10.88.0.3"], [8080])],
                     id="those that are not ready are listed apart"),
        pytest.param(service_here(publishNotReadyAddresses=True), [kept(1, ready=False), kept(2, deleted=True)],
                     [(["10.88.0.2", "10.88.0.3"], [], [8080])], id="unless the service wants them anyway"),
        pytest.param(service_here(), [kept(1, deleted=True)], [], id="one on its way out is not listed"),
        pytest.param(service_here(ports=NAMED),
                     [kept(1, ports=[HTTP]), kept(2, ports=[{**HTTP, "containerPort": 9}]), kept(3)],
                     [(["10.88.0.3"], [], [9]), (["10.88.0.2"], [], [8081])],
                     id="each port that a name stands for is a subset; a pod without it is in none"),
        pytest.param(service_here(ports=[], clusterIP="None"), [kept(1)], [(["10.88.0.2"], [], [])],
                     id="headless and without ports: addresses alone"),
        pytest.param(service_here(ipFamilies=["IPv6"]), [kept(1), kept(2, ip="fd00::2")], [(["fd00::2"], [], [8080])],
                     id="a pod without an address of the family is not listed"),
    ],
)
def test_subsets(service: Object, pods: list[Object], expected: list[Any]) -> None:
    assert expected == said(service, *pods)


def test_an_address_says_where_it_leads() -> None:
    pod = kept(hostname="host", subdomain="web")
    [subset] = endpoints(service_here(), [pod], None)["subsets"]

    assert [{
        "ip": "10.88.0.2", "hostname": "host", "nodeName": "n",
        "targetRef": {"kind": "Pod", "namespace": "default", "name": "p-1", "uid": "u-1"},
    }] == subset["addresses"]
    assert [{"port": 8080, "protocol": "TCP"}] == subset["ports"]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        pytest.param({"labels": {"a": "b"}}, {"a": "b"}, id="those of the service"),
        pytest.param({"clusterIP": "None"}, {"service.kubernetes.io/headless": ""}, id="headless says so"),
        pytest.param({"labels": {"service.kubernetes.io/headless": ""}}, {}, id="... and only headless"),
    ],
)
def test_labels(fields: Any, labels: dict[str, str]) -> None:
    assert {**labels, MANAGED_BY: MANAGER} == endpoints(service_here(**fields), [], None)["metadata"]["labels"]


def test_too_many_are_cut_off_ready_ones_first() -> None:
    pods = [kept(number, ready=number % 3 != 0) for number in range(MOST_ADDRESSES + 500)]
    made = endpoints(service_here(), pods, None)
    [subset] = made["subsets"]
    few = endpoints(service_here(), pods[:10], made)

    assert "truncated" == made["metadata"]["annotations"][OVER_CAPACITY]
    assert (MOST_ADDRESSES, 0) == (len(subset["addresses"]), len(subset.get("notReadyAddresses") or ()))
    assert "annotations" not in few["metadata"], "and it is not said for ever"


def test_what_others_wrote_on_it_stays() -> None:
    found = {"metadata": {"name": "web", "namespace": "default", "resourceVersion": "7", "annotations": {"a": "b"}}}
    made = endpoints(service_here(), [kept()], found)

    assert ("7", {"a": "b"}) == (made["metadata"]["resourceVersion"], made["metadata"]["annotations"])
    assert not same_endpoints(made, found)
    assert same_endpoints(made, endpoints(service_here(), [kept()], made))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, True, id="it has a selector"),
        pytest.param({"selector": {}}, False, id="it has none: somebody else fills it"),
        pytest.param({"type": "ExternalName"}, False, id="it is a name for something outside"),
    ],
)
def test_which_services_are_looked_after(fields: Any, expected: bool) -> None:
    assert expected == is_backed(service_here(**fields))


def test_a_change_of_something_else_is_no_change() -> None:
    before, after = running(), running()
    after["metadata"] |= {"resourceVersion": "9", "annotations": {"a": "b"}}
    after["status"]["containerStatuses"] = [{"restartCount": 3}]

    assert unchanged(pod_kept(before), pod_kept(after))
    assert not unchanged(pod_kept(before), pod_kept(running(ready=False)))


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 5), labels), max_size=20), labels)
def test_services_are_found_by_the_labels_of_a_pod(steps: list[tuple[int, dict[str, str]]], on: dict[str, str]) -> None:
    """Whatever is put and dropped: exactly those whose selector is not empty and holds."""
    found, known = Selectors(), dict[Key, dict[str, str]]()
    for number, selector in steps:
        key = Key("ns", f"s-{number}")
        if selector:
            known[key] = selector
            found.put(key, selector)
        else:
            known.pop(key, None)
            found.drop(key)

    assert sorted(key for key, selector in known.items() if selector.items() <= on.items()) == sorted(
        found.selecting("ns", on)
    )
    assert [] == found.selecting("elsewhere", on)


def test_one_of_a_thousand_services_is_found_without_looking_at_the_others() -> None:
    found = Selectors()
    for number in range(1000):
        found.put(Key("ns", f"s-{number}"), {**WEB, "index": str(number)})

    assert [Key("ns", "s-7")] == found.selecting("ns", {**WEB, "index": "7"})
    assert 2 >= max(len(there) for there in found._by_label.values())
