"""Pods of the default scheduler: where they go, and what is said of those that go nowhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Key, Object
from trainmaster.cluster.scheduler.amounts import requests
from trainmaster.cluster.scheduler.snapshot import read_budget
from trainmaster.testing.scheduling import bound, decided, evicted, gang, machine, members, single, snapshot

ZONE = "topology.kubernetes.io/zone"


def affinity(kind: str, topology: str = "kubernetes.io/hostname", **labels: str) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_affinity(key: str, operator: str, *values: str) -> Object:
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def spread(skew: int = 1, topology: str = ZONE, **more: Any) -> list[Object]:
    return [{"maxSkew": skew, "topologyKey": topology, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": "x"}}, **more}]


def port(number: int) -> Object:
    return {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": number}]}]}


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        pytest.param([machine("a")], [single("x")], {"x": "a"}, id="a pod that fits is bound"),
        pytest.param([machine("a")], [single("x", on="a")], {}, id="a bound pod is left alone"),
        pytest.param([machine("a")], [single("x", phase="Failed")], {}, id="an ended pod is left alone"),
        pytest.param([machine("a")], [single("x", deleted=True)], {}, id="a pod that is being deleted is left alone"),
        pytest.param([machine("a")], [single("x", schedulerName="somebody")], {},
                     id="a pod of another scheduler is left alone"),
        pytest.param([machine("a")], [single("x", schedulingGates=[{"name": "g"}])], {}, id="a gated pod waits"),
        pytest.param([machine("a", cpu=4), machine("b", cpu=4)],
                     [single("x", asks={"cpu": 1}), single("y", asks={"cpu": 1})], {"x": "a", "y": "b"},
                     id="services are spread, the first by name among equals"),
        pytest.param([machine("a", cpu=4), machine("b", cpu=4)],
                     [single("x", asks={"cpu": 1}, restartPolicy="Never"),
                      single("y", asks={"cpu": 1}, restartPolicy="Never")], {"x": "a", "y": "a"},
                     id="what runs to an end is packed"),
        pytest.param([machine("a", cpu=1)], [single("x", asks={"cpu": 1}), single("y", asks={"cpu": 1})], {"x": "a"},
                     id="what was just placed takes room"),
        pytest.param([machine("a", cpu=1)],
                     [single("done", asks={"cpu": 1}, on="a", phase="Succeeded"), single("x", asks={"cpu": 1})],
                     {"x": "a"}, id="an ended pod takes no room"),
        pytest.param([machine("a", cpu=1)],
                     [single("going", asks={"cpu": 1}, on="a", deleted=True), single("x", asks={"cpu": 1})],
                     {}, id="a pod on its way out still takes room"),
        pytest.param([machine("a", ready=False), machine("b")], [single("x")], {"x": "b"},
                     id="a node that is not ready is not taken"),
        pytest.param([machine("a", unschedulable=True), machine("b")], [single("x")], {"x": "b"},
                     id="a cordoned node is not taken"),
        pytest.param([machine("a"), machine("b")], [single("x", nodeSelector={"kubernetes.io/hostname": "b"})],
                     {"x": "b"}, id="the node selector is obeyed"),
        pytest.param([machine("a"), machine("b", labels={"disk": "ssd"})],
                     [single("x", affinity=node_affinity("disk", "In", "ssd", "nvme"))], {"x": "b"},
                     id="required node affinity is obeyed"),
        pytest.param([machine("a", labels={"n": "3"}), machine("b", labels={"n": "5"})],
                     [single("x", affinity=node_affinity("n", "Gt", "4"))], {"x": "b"}, id="affinity by number"),
        pytest.param([machine("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])],
                     [single("x", tolerations=[{"key": "k", "operator": "Exists"}])], {"x": "a"},
                     id="a tolerated taint is no obstacle"),
        pytest.param([machine("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), machine("b")],
                     [single("x")], {"x": "b"}, id="a soft taint is avoided"),
        pytest.param([machine("a"), machine("b")],
                     [single("db", on="b", phase="Running", labels={"app": "db"}),
                      single("x", affinity=affinity("podAffinity", app="db"))], {"x": "b"},
                     id="a pod goes near those it wants to be near"),
        pytest.param([machine("a"), machine("b")],
                     [single("x", labels={"app": "x"}, affinity=affinity("podAffinity", app="x")),
                      single("y", labels={"app": "x"}, affinity=affinity("podAffinity", app="x"))],
                     {"x": "a", "y": "a"}, id="the first of a flock has nobody to be near to"),
        pytest.param([machine("a"), machine("b")],
                     [single(n, labels={"app": "x"}, affinity=affinity("podAntiAffinity", app="x")) for n in "xyz"],
                     {"x": "a", "y": "b"}, id="pods that keep apart go to different nodes, the third waits"),
        pytest.param([machine("a"), machine("b")],
                     [single("hermit", on="a", phase="Running", affinity=affinity("podAntiAffinity", app="x")),
                      single("x", labels={"app": "x"})], {"x": "b"},
                     id="a running pod keeps others away"),
        pytest.param([machine("a", labels={ZONE: "1"}), machine("b", labels={ZONE: "2"})],
                     [single(n, labels={"app": "x"}, topologySpreadConstraints=spread(), asks={"cpu": 1},
                             restartPolicy="Never") for n in "wxyz"],
                     {"w": "a", "x": "b", "y": "a", "z": "b"}, id="zones are filled evenly"),
        pytest.param([machine("a")],
                     [single("hermit", on="a", phase="Running", affinity=affinity("podAntiAffinity", app="x")),
                      single("x", labels={"app": "x"}), single("y", labels={"app": "y"})], {"y": "a"},
                     id="and not those who ask for the same and whom it does not mean"),
        pytest.param([machine("a")],
                     [single("hermit", priority=5, affinity=affinity("podAntiAffinity", app="x")),
                      single("x", labels={"app": "x"})], {"hermit": "a"},
                     id="a pod that was just placed keeps others away"),
        pytest.param([machine("a", labels={ZONE: "1"}), machine("b", labels={ZONE: "2"})],
                     [single(n, labels={"app": "x"}, topologySpreadConstraints=spread(),
                             affinity=node_affinity(ZONE, "In", "1")) for n in "xy"],
                     {"x": "a", "y": "a"}, id="a zone that is not asked for need not be filled"),
        pytest.param([machine("a", labels={ZONE: "1"}), machine("b", labels={ZONE: "2"})],
                     [single(n, labels={"app": "x"}, topologySpreadConstraints=spread(nodeAffinityPolicy="Ignore"),
                             nodeSelector={ZONE: "1"}) for n in "xy"],
                     {"x": "a"}, id="unless the spread says that every zone counts"),
        pytest.param([machine("a", labels={ZONE: "1"}),
                      machine("b", labels={ZONE: "2"}, taints=[{"key": "k", "effect": "NoSchedule"}])],
                     [single(n, labels={"app": "x"}, topologySpreadConstraints=spread()) for n in "xy"],
                     {"x": "a"}, id="a zone with a taint counts"),
        pytest.param([machine("a", labels={ZONE: "1"}),
                      machine("b", labels={ZONE: "2"}, taints=[{"key": "k", "effect": "NoSchedule"}])],
                     [single(n, labels={"app": "x"}, topologySpreadConstraints=spread(nodeTaintsPolicy="Honor"))
                      for n in "xy"], {"x": "a", "y": "a"}, id="unless the spread says that taints count"),
        pytest.param([machine("a", labels={ZONE: "1", "rack": "r"}), machine("b", labels={ZONE: "2"})],
                     [single(n, labels={"app": "x"}, topologySpreadConstraints=spread() + spread(9, "rack"))
                      for n in "xy"], {"x": "a", "y": "a"}, id="nor one without the label of another spread"),
        pytest.param([machine("a", labels={ZONE: "1"}), machine("b", labels={ZONE: "2"}, cpu=1)],
                     [single("full", on="b", asks={"cpu": 1}),
                      single("going", on="a", deleted=True, labels={"app": "x"}),
                      single("x", labels={"app": "x"}, topologySpreadConstraints=spread(), asks={"cpu": 1})],
                     {"x": "a"}, id="pods on their way out do not count"),
        pytest.param([machine("a"), machine("b")], [single("x", **port(80)), single("y", **port(80))],
                     {"x": "a", "y": "b"}, id="a port of the host is had once"),
        pytest.param([machine("a", cpu=1)],
                     [single("low", asks={"cpu": 1}, priority=1), single("high", asks={"cpu": 1}, priority=5)],
                     {"high": "a"}, id="the more important pod goes first"),
    ],
)
def test_where_pods_go(nodes: list[Object], pods: list[Object], expected: dict[str, str]) -> None:
    assert expected == bound(decided(snapshot(nodes, pods)))


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        pytest.param([], [single("x")], "no nodes available to schedule pods", id="no node at all"),
        pytest.param([machine("a", cpu=1), machine("b", cpu=1)], [single("x", asks={"cpu": 2})],
                     "0/2 nodes are available: 2 Insufficient cpu.", id="reasons are counted over the nodes"),
        pytest.param([machine("a", cpu=1), machine("b", unschedulable=True)], [single("x", asks={"cpu": 2})],
                     "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
                     id="several reasons"),
        pytest.param([machine("a", pods=0)], [single("x")], "0/1 nodes are available: 1 Too many pods.",
                     id="the pod count"),
        pytest.param([machine("a")], [single("x", asks={"gpu": 1})],
                     "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", id="a resource that no node has"),
        pytest.param([machine("a", cpu=1, memory="1Gi")], [single("x", asks={"cpu": 2, "memory": "2Gi"})],
                     "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
                     id="everything that a node lacks is named"),
        pytest.param([machine("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])], [single("x")],
                     "0/1 nodes are available: 1 node(s) had taint {k: v}, that the pod didn't tolerate.",
                     id="a taint"),
        pytest.param([machine("a", ready=False)], [single("x")],
                     "0/1 nodes are available: 1 node(s) had taint {node.kubernetes.io/not-ready: }, that the pod "
                     "didn't tolerate.", id="a node that is not ready"),
        pytest.param([machine("a")], [single("x", nodeSelector={"disk": "ssd"})],
                     "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
                     id="the node selector"),
        pytest.param([machine("a")], [single("x", affinity=affinity("podAffinity", app="db"))],
                     "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.", id="nobody to be near to"),
        pytest.param([machine("a")],
                     [single("y", on="a", phase="Running", labels={"app": "x"}),
                      single("x", affinity=affinity("podAntiAffinity", app="x"))],
                     "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
                     id="nobody may be near"),
        pytest.param([machine("a")],
                     [single("y", on="a", phase="Running", affinity=affinity("podAntiAffinity", app="x")),
                      single("x", labels={"app": "x"})],
                     "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
                     id="kept away by others"),
        pytest.param([machine("a")], [single("y", on="a", phase="Running", **port(80)), single("x", **port(80))],
                     "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
                     id="a port of the host is taken"),
        pytest.param([machine("a")], [single("x", labels={"app": "x"}, topologySpreadConstraints=spread())],
                     "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing "
                     "required label).", id="a spread over labels that no node has"),
    ],
)
def test_messages(nodes: list[Object], pods: list[Object], expected: str) -> None:
    (waiting,) = decided(snapshot(nodes, pods)).waiting

    assert ("x", expected) == (waiting.pod.name, waiting.message)


@pytest.mark.parametrize(
    ("running", "newcomer", "expected"),
    [
        pytest.param([("low", 1, 1)], {"priority": 5}, ["low"], id="a less important pod makes room"),
        pytest.param([("same", 5, 1)], {"priority": 5}, [], id="an equal does not"),
        pytest.param([("low", 1, 1)], {"priority": 5, "preemptionPolicy": "Never"}, [],
                     id="a pod that sends nobody away waits"),
        pytest.param([("a", 1, 1), ("b", 2, 1)], {"priority": 5}, ["a"], id="only as many as needed, the lowest first"),
    ],
)
def test_preemption(running: list[tuple[str, int, int]], newcomer: dict[str, Any], expected: list[str]) -> None:
    nodes = [machine("n", cpu=len(running))]
    pods = [single(name, on="n", phase="Running", priority=priority, asks={"cpu": cpu})
            for name, priority, cpu in running]

    assert expected == evicted(decided(snapshot(nodes, [*pods, single("x", asks={"cpu": 1}, **newcomer)])))


def test_nobody_is_sent_away_for_a_pod_that_would_not_fit_even_then() -> None:
    nodes = [machine("n", cpu=2)]
    pods = [single("low", on="n", phase="Running", asks={"cpu": 1}), single("x", asks={"cpu": 3}, priority=5)]

    assert [] == evicted(decided(snapshot(nodes, pods)))


def test_nobody_more_is_sent_away_while_victims_are_on_their_way() -> None:
    nodes = [machine("n", cpu=2)]
    pods = [single("going", on="n", phase="Running", asks={"cpu": 1}, deleted=True),
            single("stays", on="n", phase="Running", asks={"cpu": 1}), single("x", asks={"cpu": 1}, priority=5)]

    assert [] == evicted(decided(snapshot(nodes, pods)))


def nominations(nodes: list[Object], pods: list[Object], *groups: Object) -> dict[str, str]:
    found = decided(snapshot(nodes, pods, groups)).nominations
    return {each.pod.name: each.node for each in found}


def nominated(name: str, node: str, **more: Any) -> Object:
    pod = single(name, asks={"cpu": 1}, **more)
    return {**pod, "status": {**pod["status"], "nominatedNodeName": node}}


LOW = [single(f"low-{node}", on=node, phase="Running", asks={"cpu": 1}) for node in "ab"]
GOING = [single(f"low-{node}", on=node, phase="Running", asks={"cpu": 1}, deleted=True) for node in "ab"]
FULL = [machine("a", cpu=1), machine("b", cpu=1)]


@pytest.mark.parametrize(("pods", "expected"), [
    pytest.param([*LOW, single("x", asks={"cpu": 1}, priority=5)], {"x": "a"}, id="where somebody goes for it"),
    pytest.param([*GOING, nominated("x", "b", priority=5)], {}, id="it is said once, and kept to while they go"),
    pytest.param([*LOW, nominated("x", "gone", priority=5)], {"x": "a"}, id="another node if that one is gone"),
    pytest.param([*LOW, nominated("x", "a")], {"x": ""}, id="none any more for one that sends nobody away"),
    pytest.param([*LOW, single("x", asks={"cpu": 1}, priority=5, preemptionPolicy="Never")], {},
                 id="none for one that waits by choice"),
])
def test_nominated_nodes(pods: list[Object], expected: dict[str, str]) -> None:
    assert expected == nominations(FULL, pods)


def test_a_pod_goes_to_the_node_on_which_room_was_made_for_it() -> None:
    assert {"x": "b"} == bound(decided(snapshot(FULL, [nominated("x", "b", priority=5)])))


@pytest.mark.parametrize(("importance", "expected"), [
    pytest.param(1, {"x"}, id="a gang that is less important waits"),
    pytest.param(9, {"g-w-0"}, id="one that is more important does not"),
])
def test_room_that_was_made_for_a_pod_is_not_for_gangs(importance: int, expected: set[str]) -> None:
    pods = [nominated("x", "a", priority=5), *members("g", "w", 1, asks={"cpu": 1})]
    groups = [gang("g", 1, priorityClassName="its")]

    found = bound(decided(snapshot([machine("a", cpu=1)], pods, groups, classes={"its": importance})))

    assert expected == found.keys()


def test_a_pod_needs_its_containers_together_or_its_hungriest_init_container() -> None:
    def container(cpu: str, **more: str) -> Object:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    two = [container("1"), container("2")]

    assert 3000 == requests({"spec": {"containers": two, "initContainers": [container("2")]}})["cpu"]
    assert 5000 == requests({"spec": {"containers": two, "initContainers": [container("5")]}})["cpu"]
    sidecar = container("1", restartPolicy="Always")
    assert 4000 == requests({"spec": {"containers": two, "initContainers": [sidecar]}})["cpu"]
    assert 6000 == requests({"spec": {"containers": two, "initContainers": [sidecar, container("5")]}})["cpu"]
    assert 3250 == requests({"spec": {"containers": two, "overhead": {"cpu": "250m"}}})["cpu"]


def test_a_limit_without_a_request_is_the_request() -> None:
    limited = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}

    assert 1000 == requests(limited)["nvidia.com/gpu"]


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), max_size=20),
)
def test_no_node_is_ever_given_more_than_it_offers(capacities: list[int], wishes: list[int]) -> None:
    nodes = [machine(f"n{i}", cpu=cpus) for i, cpus in enumerate(capacities)]
    pods = [single(f"p{i}", asks={"cpu": cpus}) for i, cpus in enumerate(wishes)]

    decision = decided(snapshot(nodes, pods))

    for i, cpus in enumerate(capacities):
        assert cpus >= sum(wishes[int(b.pod.name[1:])] for b in decision.bindings if b.node == f"n{i}")
    assert len(pods) == len(decision.bindings) + len(decision.waiting), "every pod is placed or told why not"
    assert decision == decided(snapshot(nodes, pods)), "the same snapshot gives the same decision"


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        pytest.param({"low-1": 0}, ["low-2"], id="one that a budget protects stays as long as another can go"),
        pytest.param({"low-1": 1}, ["low-1"], id="a budget with room protects nobody"),
        pytest.param({"low-1": 0, "low-2": 0}, ["low-1"], id="where all are protected a budget gives way, as upstream"),
    ],
)
def test_budgets_in_preemption(allowed: dict[str, int], expected: list[str]) -> None:
    running = [single(name, on="a", phase="Running", asks={"gpu": 1}, priority=1, labels={"app": name},
                      created=f"2026-01-01T11:0{5 - number}:00Z") for number, name in enumerate(("low-1", "low-2"))]
    there = snapshot([machine("a", gpu=2)], [*running, single("high", asks={"gpu": 1}, priority=5)])
    for name, left in allowed.items():
        budget = {"metadata": {"name": name, "namespace": "default"}, "status": {"disruptionsAllowed": left},
                  "spec": {"selector": {"matchLabels": {"app": name}}}}
        there.budgets[Key("default", name)] = read_budget(budget)

    assert expected == evicted(decided(there))


@pytest.mark.parametrize(
    ("spaces", "expected"),
    [
        pytest.param({"other": {"team": "a"}}, {}, id="the labels of the namespace are meant"),
        pytest.param({"other": {"team": "b"}}, {"x": "a"}, id="another namespace is not"),
        pytest.param({}, {"x": "a"}, id="nor one that nobody knows"),
    ],
)
def test_pods_of_namespaces_by_their_labels(spaces: dict[str, dict[str, str]], expected: dict[str, str]) -> None:
    away = affinity("podAntiAffinity", app="x")
    term = away["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    neighbour = single("neighbour", on="a", phase="Running", labels={"app": "x"})
    neighbour["metadata"]["namespace"] = "other"
    there = snapshot([machine("a")], [neighbour, single("x", affinity=away)])
    there.spaces.update(spaces)

    assert expected == bound(decided(there))
