"""What a write of a status makes of the object, besides refusing what is wrong (which is in the table of refusals)."""

import pytest
from tests.unit.cluster.apiserver.api import DEFINITIONS, NAMESPACES, PODS, SERVICES, Api, definition, pod, service

from trainmaster.api.meta import Json, Object, timestamp

NODES, VOLUMES = "/api/v1/nodes", "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NODE: Object = {"metadata": {"name": "t"}}
BALANCED = service("t", type="LoadBalancer")
VOLUME: Object = {"metadata": {"name": "t"}, "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                                                      "hostPath": {"path": "/x"}}}
CLAIM: Object = {"metadata": {"name": "t"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                     "resources": {"requests": {"storage": "1Gi"}}}}
DEPLOYMENT: Object = {"metadata": {"name": "t", "labels": {"was": "here"}}, "spec": {
    "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}}


@pytest.mark.parametrize(("place", "thing", "status", "field", "found"), [
    pytest.param(PODS, pod("t"), {"podIP": "10.0.0.1"}, "podIPs", [{"ip": "10.0.0.1"}],
                 id="a pod's address is the list of its addresses"),
    pytest.param(PODS, pod("t"), {"podIPs": [{"ip": "10.0.0.1"}]}, "podIP", "10.0.0.1",
                 id="the first of a pod's addresses is its address"),
    pytest.param(PODS, pod("t"), {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]}, "podIPs", [{"ip": "10.0.0.1"}],
                 id="of two answers about a pod's address, the one of old nodes is believed"),
    pytest.param(PODS, pod("t"), {"qosClass": None, "phase": "Running"}, "qosClass", "BestEffort",
                 id="a pod keeps its class of service"),
    pytest.param(NODES, NODE, {"capacity": {"cpu": "2"}}, "allocatable", {"cpu": "2"},
                 id="a node has all it has to give"),
    pytest.param(NODES, NODE, {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}, "allocatable", {"cpu": "1"},
                 id="a node that keeps some for itself has less to give"),
    pytest.param(NAMESPACES, NODE, {"phase": None}, "phase", "Active", id="a namespace is active"),
    pytest.param(VOLUMES, VOLUME, {"phase": None}, "phase", "Pending", id="a volume of no phase is pending"),
    pytest.param(CLAIMS, CLAIM, {"phase": None}, "phase", "Pending", id="a claim of no phase is pending"),
    pytest.param(SERVICES, BALANCED, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a.b"}]}},
                 "loadBalancer", {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a.b"}]},
                 id="packets for an address of a load balancer are sent to it"),
])
async def test_it_is_completed(api: Api, place: str, thing: Object, status: Object, field: str, found: Json) -> None:
    await api.made(place, thing)

    answer = await api.patch(f"{place}/t/status", {"status": status})

    assert answer.code == 200, answer.body
    assert found == answer.json["status"][field]


async def test_the_moment_of_a_volume_s_change_is_noted(api: Api) -> None:
    made = await api.made(VOLUMES, VOLUME)
    await api.clock.advance(5)

    same = (await api.patch(f"{VOLUMES}/t/status", {"status": {"message": "x"}})).json["status"]
    other = (await api.patch(f"{VOLUMES}/t/status", {"status": {"phase": "Available"}})).json["status"]
    told = (await api.patch(f"{VOLUMES}/t/status", {"status": {
        "phase": "Bound", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"}})).json["status"]

    assert [made["status"]["lastPhaseTransitionTime"], timestamp(api.clock.now()), "2026-01-01T00:00:00Z"] == [
        each["lastPhaseTransitionTime"] for each in (same, other, told)]


OWNER: Object = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
META: Object = {"labels": {"new": "l"}, "annotations": {"new": "a"}, "ownerReferences": [OWNER]}


@pytest.mark.parametrize(("place", "thing", "written"), [
    pytest.param(NODES, NODE, {"labels", "annotations", "ownerReferences"}, id="all of it, of most kinds"),
    pytest.param(PODS, pod("t"), {"labels", "annotations"}, id="not the owners of a pod"),
    pytest.param(DEPLOYMENTS, DEPLOYMENT, {"annotations", "ownerReferences"}, id="not the labels of a deployment"),
    pytest.param(DEFINITIONS, definition(), set(), id="nothing of a definition"),
])
async def test_metadata_comes_with_it(api: Api, place: str, thing: Object, written: set[str]) -> None:
    made = await api.made(place, thing)
    path = f"{place}/{made['metadata']['name']}/status"

    meta = (await api.patch(path, {"metadata": META})).json["metadata"]

    assert written == {field for field, value in META.items() if meta.get(field) == value}
    assert all(meta.get(field) == made["metadata"].get(field) for field in META if field not in written)
