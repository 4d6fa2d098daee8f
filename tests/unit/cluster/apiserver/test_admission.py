"""What other objects say to a new one: priorities, limits, node ports; and scalers through both versions."""

from collections.abc import Awaitable, Callable

import pytest
from tests.unit.cluster.apiserver.api import PODS, SERVICES, TABLE, Api, pod, service, serving

from trainmaster.api.meta import Json, Object

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RANGES = "/api/v1/namespaces/default/limitranges"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


class TestPriorities:
    @pytest.mark.parametrize(("name", "expected"), [
        pytest.param("high", (100, "Never"), id="that of its class"),
        pytest.param("system-node-critical", (2000001000, "PreemptLowerPriority"), id="that of a class of the system"),
        pytest.param("", (7, "PreemptLowerPriority"), id="that of the class for all"),
    ])
    async def test_a_pod_has(self, api: Api, name: str, expected: tuple[int, str]) -> None:
        await api.made(CLASSES, {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"})
        await api.made(CLASSES, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
        spec = (await api.made(PODS, pod(priorityClassName=name)))["spec"]

        assert expected == (spec["priority"], spec["preemptionPolicy"])
        assert (name or "usual") == spec["priorityClassName"]


def limits(**item: Json) -> Object:
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **item}]}}


def using(**amounts: Json) -> Object:
    return pod(containers=[{"name": "c", "image": "x", "resources": amounts}])


class TestLimits:
    async def test_what_is_left_out_is_filled_in(self, api: Api) -> None:
        await api.made(RANGES, limits(default={"cpu": "2"}, defaultRequest={"cpu": "1", "memory": "1Gi"}))
        found = await api.made(PODS, using(requests={"memory": "2Gi"}))

        assert {"requests": {"memory": "2Gi", "cpu": "1"}, "limits": {"cpu": "2"}} == \
            found["spec"]["containers"][0]["resources"]
        assert "LimitRanger plugin set: cpu request for container c; cpu limit for container c" == \
            found["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
        assert "Burstable" == found["status"]["qosClass"]

    @pytest.mark.parametrize(("bounds", "amounts", "said"), [
        pytest.param({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}},
                     "maximum cpu usage per Container is 1, but limit is 2", id="too much"),
        pytest.param({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}},
                     "minimum cpu usage per Container is 1, but request is 500m", id="too little"),
        pytest.param({"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
                     "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
                     id="too far apart"),
    ])
    async def test_bounds(self, api: Api, bounds: Json, amounts: Json, said: str) -> None:
        await api.made(RANGES, limits(**bounds))
        answer = await api.post(PODS, using(**amounts))

        assert (403, f'pods "p" is forbidden: {said}') == (answer.code, answer.message)

    async def test_bounds_of_a_claim(self, api: Api) -> None:
        await api.made(RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}})
        answer = await api.post("/api/v1/namespaces/default/persistentvolumeclaims", {
            "metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                "resources": {"requests": {"storage": "2Gi"}}}})

        said = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
        assert (403, f'persistentvolumeclaims "c" is forbidden: {said}') == (answer.code, answer.message)


class TestNodePorts:
    async def test_each_port_gets_one(self, api: Api) -> None:
        ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}]
        found = await api.made(SERVICES, service(type="NodePort", ports=ports))

        assert [30000, 30001] == [port["nodePort"] for port in found["spec"]["ports"]]

    @pytest.mark.parametrize(("port", "said"), [
        pytest.param(80, "provided port is not in the valid range. The range of valid ports is 30000-32767",
                     id="out of range"),
        pytest.param(30500, "provided port is already allocated", id="taken"),
    ])
    async def test_refused(self, api: Api, port: int, said: str) -> None:
        await api.made(SERVICES, service("a", type="NodePort", ports=[{"port": 1, "nodePort": 30500}]))
        answer = await api.post(SERVICES, service("b", type="NodePort", ports=[{"port": 1, "nodePort": port}]))

        assert (422, f'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: {port}: {said}') == (
            answer.code, answer.message)
        assert 201 == (await api.post(SERVICES, service("c", clusterIP="10.96.0.3"))).code, "no address stays taken"

    async def test_an_update_keeps_it_and_another_type_gives_it_back(self, api: Api) -> None:
        await api.made(SERVICES, service(type="NodePort"))
        kept = (await api.put(f"{SERVICES}/s", service(type="NodePort", selector={"a": "b"}))).json
        plain = (await api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})).json
        again = await api.post(SERVICES, service("t", type="NodePort", ports=[{"port": 1, "nodePort": 30000}]))

        assert 30000 == kept["spec"]["ports"][0]["nodePort"]
        assert "nodePort" not in plain["spec"]["ports"][0]
        assert 201 == again.code

    async def test_those_in_use_are_known_after_a_restart(self) -> None:
        async with serving() as api:
            await api.made(SERVICES, service("a", type="NodePort"))
            await api.server.start()

            assert 30001 == (await api.made(SERVICES, service("b", type="NodePort")))["spec"]["ports"][0]["nodePort"]


SCALER: Object = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {
    "apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}


class TestScalers:
    async def test_a_percentage_is_a_metric(self, api: Api) -> None:
        body = {**SCALER, "spec": {**SCALER["spec"], "targetCPUUtilizationPercentage": 50}}
        await api.made(SCALERS.format("v1"), body)
        found = (await api.get(f"{SCALERS.format('v2')}/h")).json

        assert [{"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Utilization", "averageUtilization": 50}}}] == found["spec"]["metrics"]

    async def test_what_the_old_version_cannot_say_survives_it(self, api: Api) -> None:
        metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "3"}}}
        body = {**SCALER, "spec": {**SCALER["spec"], "metrics": [metric], "behavior": {"scaleDown": {}}}}
        made = await api.made(SCALERS.format("v2"), body)
        old = (await api.get(f"{SCALERS.format('v1')}/h")).json
        old["spec"]["maxReplicas"] = 4
        answer = await api.put(f"{SCALERS.format('v1')}/h", old)
        found = (await api.get(f"{SCALERS.format('v2')}/h")).json

        assert 200 == answer.code, answer.body
        assert {**made["spec"], "maxReplicas": 4} == found["spec"]
        assert "annotations" not in found["metadata"]

    async def test_both_print_the_same(self, api: Api) -> None:
        await api.made(SCALERS.format("v2"), SCALER)
        rows = [(await api.get(SCALERS.format(version), accept=TABLE)).json["rows"][0]["cells"]
                for version in ("v1", "v2")]

        assert rows[0] == rows[1] == ["h", "Deployment/d", "cpu: <unknown>/80%", "1", 3, 0, "0s"]


def balanced(name: str, port: int = 0) -> Object:
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "allocateLoadBalancerNodePorts": False,
            "ports": [{"port": 80}], **({"healthCheckNodePort": port} if port else {})}
    return {"metadata": {"name": name}, "spec": spec}


async def taken(api: Api, port: int) -> bool:
    """Whether a port belongs to somebody: then nobody else gets it."""
    return (await api.post(SERVICES, balanced("probe", port), query="dryRun=All")).code != 201


async def delete_it(api: Api) -> None:
    await api.delete(f"{SERVICES}/s")


async def serve_all_nodes(api: Api) -> None:
    await api.patch(f"{SERVICES}/s", {"spec": {"externalTrafficPolicy": "Cluster"}})


async def serve_inside_only(api: Api) -> None:
    await api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})


@pytest.mark.parametrize("end", [
    pytest.param(delete_it, id="the service goes"),
    pytest.param(serve_all_nodes, id="the policy changes"),
    pytest.param(serve_inside_only, id="the type changes"),
])
async def test_the_port_of_a_health_check_is_free_again(api: Api, end: Callable[[Api], Awaitable[None]]) -> None:
    made = (await api.post(SERVICES, balanced("s"))).json["spec"]["healthCheckNodePort"]
    before = await taken(api, made)
    await end(api)

    assert (True, False) == (before, await taken(api, made))


async def test_a_service_that_is_not_made_takes_no_ports(api: Api) -> None:
    refused = {**balanced("s", 30900), "spec": {**balanced("s", 30900)["spec"], "type": "LoadBalancer",
                                                "ports": [{"port": 80, "nodePort": 30900}]}}
    answer = await api.post(SERVICES, refused)

    assert (500, False) == (answer.code, await taken(api, 30900))
