"""Where the addresses of services lead."""

from collections.abc import Callable
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.network.forwarding import Door, Forward, has_door, is_behind_door, opens_door, plan

NODE = "10.88.0.1"
READY, ENDING = {"ready": True}, {"ready": False, "serving": True, "terminating": True}


def service(*ports: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "web", "namespace": "train"},
            "spec": {"clusterIP": "10.96.0.9", "ports": list(ports or ({"port": 80},)), **spec}}


def endpoint_slice(*endpoints: tuple[str, Object], port: int = 8080, name: str = "", of: str = "web",
                   **more: Any) -> Object:
    return {
        "metadata": {"name": "web-x", "namespace": "train", "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4", "ports": [{"name": name, "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": conditions} for address, conditions in endpoints], **more,
    }


def behind(*backends: tuple[str, int], affinity: int = 0) -> Forward:
    return Forward(backends, affinity)


@pytest.mark.parametrize(("expected", "thing", "slices"), [
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind(("10.88.0.2", 8080), ("10.88.0.3", 8080))}, service(),
                 [endpoint_slice(("10.88.0.3", READY), ("10.88.0.2", {}))],
                 id="to every ready pod, at the pods' port; who does not say is ready"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind()}, service(), [], id="to nobody when there is nobody"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind(("10.88.0.2", 8080))}, service(),
                 [endpoint_slice(("10.88.0.2", READY), ("10.88.0.3", ENDING), ("10.88.0.4", {"ready": False}))],
                 id="not to who is ending or not ready"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind(("10.88.0.3", 8080))}, service(),
                 [endpoint_slice(("10.88.0.3", ENDING), ("10.88.0.4", {"ready": False}))],
                 id="to who is ending, if all are"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind(("10.88.0.2", 8080), ("10.88.0.3", 9090))}, service(),
                 [endpoint_slice(("10.88.0.2", READY)), endpoint_slice(("10.88.0.3", READY), port=9090)],
                 id="pods may differ in the port of a name"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind(("10.88.0.2", 8080)), Door("10.96.0.9", 53, "UDP"): behind()},
                 service({"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}),
                 [endpoint_slice(("10.88.0.2", READY), name="http")], id="ports are told apart by name"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind(("10.88.0.2", 8080), affinity=60)},
                 service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 60}}),
                 [endpoint_slice(("10.88.0.2", READY))], id="clients stay if the service says so"),
    pytest.param({}, service(clusterIP="None"), [endpoint_slice(("10.88.0.2", READY))], id="a headless one has none"),
    pytest.param({}, service(type="ExternalName", clusterIP=""), [], id="nor an external one"),
    pytest.param({}, service({"port": 9, "protocol": "SCTP"}), [], id="nor a protocol that nobody speaks"),
    pytest.param({Door("10.96.0.9", 80, "TCP"): behind()}, service(),
                 [endpoint_slice(("fd00::2", READY), addressType="IPv6"),
                  endpoint_slice(("10.88.0.2", READY), of="db")],
                 id="endpoints of another family or service do not count"),
])
def test_doors_inside(expected: dict[Door, Forward], thing: Object, slices: list[Object]) -> None:
    assert expected == plan([thing], slices, [], NODE).inside


@pytest.mark.parametrize(("expected", "concerns", "thing"), [
    pytest.param(True, has_door, service(), id="a service with an address"),
    pytest.param(False, has_door, service(clusterIP="None"), id="but not that of a replica"),
    pytest.param(True, is_behind_door, endpoint_slice(("10.88.0.2", READY)), id="what is behind an address"),
    pytest.param(False, is_behind_door, {"metadata": {"labels": {"service.kubernetes.io/headless": ""}}},
                 id="but not behind a mere name"),
    pytest.param(True, opens_door, {"spec": {"containers": [{"ports": [{"containerPort": 1, "hostPort": 2}]}]}},
                 id="a pod with a port of the machine"),
    pytest.param(True, opens_door, {"spec": {"hostNetwork": True}}, id="or in its network"),
    pytest.param(False, opens_door, {"spec": {"containers": [{"ports": [{"containerPort": 1}]}, {}]}},
                 id="but not any other pod"),
])
def test_only_what_can_change_a_door_asks_for_a_plan(
    expected: bool, concerns: Callable[[Object], bool], thing: Object
) -> None:
    assert expected is concerns(thing)


def test_a_node_port_is_a_door_on_the_machine_and_on_the_node() -> None:
    thing = service({"port": 80, "nodePort": 30080}, type="NodePort")

    found = plan([thing], [endpoint_slice(("10.88.0.2", READY))], [], NODE)

    assert {Door("127.0.0.1", 30080, "TCP"): behind(("10.88.0.2", 8080))} == found.outside
    assert behind(("10.88.0.2", 8080)) == found.inside[Door(NODE, 30080, "TCP")]
    assert thing == found.askers[Door("127.0.0.1", 30080, "TCP")]


def pod(phase: str = "Running", **spec: Any) -> Object:
    ports = [{"containerPort": 8080, "hostPort": 9000}, {"containerPort": 1}]
    return {"metadata": {"name": "a", "namespace": "train"}, "status": {"podIP": "10.88.0.5", "phase": phase},
            "spec": {"containers": [{"name": "main", "ports": ports}], **spec}}


@pytest.mark.parametrize(("expected", "thing"), [
    pytest.param({Door("127.0.0.1", 9000, "TCP"): behind(("10.88.0.5", 8080))}, pod(), id="a host port leads there"),
    pytest.param({}, pod("Succeeded"), id="until that has ended"),
    pytest.param({}, pod(hostNetwork=True), id="a pod in the host's network has it already"),
    pytest.param({}, {**pod(), "status": {}}, id="a pod without an address cannot be reached"),
])
def test_host_ports(expected: dict[Door, Forward], thing: Object) -> None:
    assert expected == plan([], [], [thing], NODE).outside
