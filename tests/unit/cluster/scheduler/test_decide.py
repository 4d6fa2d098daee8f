"""Where pods go, and what is said of those that go nowhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Key, Object
from trainmaster.cluster.scheduler.decide import decide, requests


def node(name: str, cpu: str = "4", memory: str = "8Gi", pods: str = "110", ready: bool = True, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": pods},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name: str, cpu: str = "", on: str = "", phase: str = "Pending", **spec: Any) -> Object:
    container: Object = {"name": "main", "resources": {"requests": {"cpu": cpu}} if cpu else {}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        pytest.param([node("a")], [pod("x")], {"x": "a"}, id="a pod that fits is bound"),
        pytest.param([node("a")], [pod("x", on="a")], {}, id="a bound pod is left alone"),
        pytest.param([node("a")], [pod("x", phase="Failed")], {}, id="an ended pod is left alone"),
        pytest.param([node("a")], [pod("x", schedulerName="volcano")], {},
                     id="a pod of another scheduler is left alone"),
        pytest.param([node("a"), node("b")], [pod("x", "1"), pod("y", "1")], {"x": "a", "y": "b"},
                     id="the least loaded node is taken, the first by name among equals"),
        pytest.param([node("a", cpu="1")], [pod("x", "1"), pod("y", "1")], {"x": "a"},
                     id="what was just placed takes room"),
        pytest.param([node("a", cpu="1")], [pod("done", "1", on="a", phase="Succeeded"), pod("x", "1")], {"x": "a"},
                     id="an ended pod takes no room"),
        pytest.param([node("a", ready=False), node("b")], [pod("x")], {"x": "b"},
                     id="a node that is not ready is not taken"),
        pytest.param([node("a", unschedulable=True), node("b")], [pod("x")], {"x": "b"},
                     id="a cordoned node is not taken"),
        pytest.param([node("a"), node("b")], [pod("x", nodeSelector={"kubernetes.io/hostname": "b"})], {"x": "b"},
                     id="the node selector is obeyed"),
    ],
)
def test_bindings(nodes: list[Object], pods: list[Object], expected: dict[str, str]) -> None:
    assert expected == {binding.pod.name: binding.node for binding in decide(nodes, pods).bindings}


@pytest.mark.parametrize(
    ("nodes", "wanted", "expected"),
    [
        pytest.param([], pod("x"), "no nodes available to schedule pods", id="no node at all"),
        pytest.param([node("a", cpu="1"), node("b", cpu="1")], pod("x", "2"),
                     "0/2 nodes are available: 2 Insufficient cpu.", id="reasons are counted over the nodes"),
        pytest.param([node("a", cpu="1"), node("b", unschedulable=True)], pod("x", "2"),
                     "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
                     id="several reasons"),
        pytest.param([node("a", pods="0")], pod("x"), "0/1 nodes are available: 1 Too many pods.", id="the pod count"),
    ],
)
def test_messages(nodes: list[Object], wanted: Object, expected: str) -> None:
    (waiting,) = decide(nodes, [wanted]).waiting

    assert (Key("default", "x"), expected) == (waiting.pod, waiting.message)


def test_a_pod_needs_its_containers_together_or_its_hungriest_init_container() -> None:
    def container(cpu: str) -> Object:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}}

    small = {"spec": {"containers": [container("1"), container("2")], "initContainers": [container("2")]}}
    large = {"spec": {"containers": [container("1"), container("2")], "initContainers": [container("5")]}}

    assert [3, 5] == [requests(small)["cpu"], requests(large)["cpu"]]


def test_a_limit_without_a_request_is_the_request() -> None:
    limited = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}

    assert 1 == requests(limited)["nvidia.com/gpu"]


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), max_size=20),
)
def test_no_node_is_ever_given_more_than_it_offers(capacities: list[int], wishes: list[int]) -> None:
    nodes = [node(f"n{i}", cpu=str(cpus)) for i, cpus in enumerate(capacities)]
    pods = [pod(f"p{i}", str(cpus)) for i, cpus in enumerate(wishes)]

    decision = decide(nodes, pods)

    for i, cpus in enumerate(capacities):
        assert cpus >= sum(wishes[int(b.pod.name[1:])] for b in decision.bindings if b.node == f"n{i}")
    assert len(pods) == len(decision.bindings) + len(decision.waiting), "every pod is placed or told why not"
    assert decision == decide(nodes, pods), "the same snapshot gives the same decision"
