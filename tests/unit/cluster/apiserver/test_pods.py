"""Pods: what is filled in, what is refused, what may be changed."""

import copy

import pytest
from tests.unit.cluster.apiserver.api import PODS, STRATEGIC, Api, pod

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import pods

NO_RULE = "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
TROUBLES = [{"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")]


def defaulted(**spec: Json) -> Object:
    thing = pod(**spec)
    pods.begin(thing)
    pods.defaults(thing)
    return thing


def container(**fields: Json) -> Object:
    return {"name": "c", "image": "busybox:1", **fields}


def test_the_defaults_of_a_spec() -> None:
    spec = defaulted()["spec"]

    assert {
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler", "serviceAccountName": "default", "priority": 0,
        "enableServiceLinks": True, "securityContext": {}}.items() <= spec.items()


def test_the_defaults_of_a_container() -> None:
    probe = {"httpGet": {"port": 80}}
    variable = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    found = defaulted(containers=[container(ports=[{"containerPort": 80}], readinessProbe=probe, env=[variable])])
    first = found["spec"]["containers"][0]

    assert ("/dev/termination-log", "File") == (first["terminationMessagePath"], first["terminationMessagePolicy"])
    assert [{"containerPort": 80, "protocol": "TCP"}] == first["ports"]
    assert first["readinessProbe"] == {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                                       "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert first["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


@pytest.mark.parametrize(("image", "expected"), [
    pytest.param("busybox", "Always", id="no tag is a moving tag"),
    pytest.param("busybox:latest", "Always", id="latest moves"),
    pytest.param("busybox:1.36", "IfNotPresent", id="a fixed tag"),
    pytest.param("localhost:5000/busybox", "Always", id="the port of a registry is no tag"),
    pytest.param("localhost:5000/busybox:1", "IfNotPresent", id="a registry with a port and a tag"),
    pytest.param("busybox@sha256:0123", "IfNotPresent", id="a digest"),
])
def test_when_an_image_is_pulled(image: str, expected: str) -> None:
    assert expected == pods.pull_policy(image)


@pytest.mark.parametrize(("volume", "expected"), [
    pytest.param({"name": "v"}, {"name": "v", "emptyDir": {}}, id="no source is an empty directory"),
    pytest.param({"name": "v", "configMap": {"name": "m"}},
                 {"name": "v", "configMap": {"name": "m", "defaultMode": 420}}, id="files are readable"),
    pytest.param({"name": "v", "hostPath": {"path": "/x"}}, {"name": "v", "hostPath": {"path": "/x", "type": ""}},
                 id="a host path of any type"),
])
def test_volumes(volume: Object, expected: Object) -> None:
    assert [expected] == defaulted(volumes=[volume])["spec"]["volumes"]


def test_no_tolerations_of_lost_nodes_are_added() -> None:
    assert "tolerations" not in defaulted()["spec"]


@pytest.mark.parametrize(("resources", "expected"), [
    pytest.param({}, "BestEffort", id="asks for nothing"),
    pytest.param({"requests": {"nvidia.com/gpu": "1"}}, "BestEffort", id="only cpu and memory count"),
    pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="asks, without a limit"),
    pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="memory is not limited"),
    pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits are requests"),
    pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}},
                 "Guaranteed", id="the same amount written differently"),
    pytest.param({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}, "Burstable",
                 id="asks for less than the limit"),
])
def test_quality_of_service(resources: Object, expected: str) -> None:
    found = defaulted(containers=[container(resources=copy.deepcopy(resources))])

    assert (expected, "Pending") == (found["status"]["qosClass"], found["status"]["phase"])


@pytest.mark.parametrize(("spec", "expected"), [
    pytest.param({"containers": []}, "spec.containers: Required value", id="no containers"),
    pytest.param({"containers": [container(name="")]}, "spec.containers[0].name: Required value", id="no name"),
    pytest.param({"containers": [container(), container()]}, 'spec.containers[1].name: Duplicate value: "c"',
                 id="the same name twice"),
    pytest.param({"initContainers": [container()]}, 'spec.initContainers[0].name: Duplicate value: "c"',
                 id="the same name as an init container"),
    pytest.param({"containers": [container(name="A")]},
                 "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case "
                 "alphanumeric characters or '-', and must start and end with an alphanumeric character " + NO_RULE,
                 id="a name in capitals"),
    pytest.param({"containers": [container(image="")]}, "spec.containers[0].image: Required value", id="no image"),
    pytest.param({"restartPolicy": "Sometimes"}, 'spec.restartPolicy: Unsupported value: "Sometimes": supported '
                 'values: "Always", "OnFailure", "Never"', id="an unknown restart policy"),
    pytest.param({"containers": [container(env=[{"name": "a=b"}])]},
                 "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must "
                 "consist only of printable ASCII characters other than '='", id="a variable name with an equals sign"),
    pytest.param({"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/x"}])]},
                 'spec.containers[0].volumeMounts[0].name: Not found: "v"', id="a mount of a volume that is not there"),
    pytest.param({"containers": [container(ports=[{"containerPort": 70000}])]},
                 "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
                 "inclusive",
                 id="a port beyond all ports"),
    pytest.param({"containers": [container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]},
                 'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit '
                 "of 1",
                 id="asks for more than its limit"),
    pytest.param({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and "
                 "2147483647, inclusive", id="a deadline of nothing"),
    pytest.param({"hostname": "a.b"}, "spec.hostname: Invalid value: \"a.b\": must not contain dots",
                 id="a host name with a dot"),
])
async def test_pods_that_are_refused(api: Api, spec: Object, expected: str) -> None:
    answer = await api.post(PODS, pod(**spec))

    assert (422, f'Pod "p" is invalid: {expected}') == (answer.code, answer.message)


@pytest.mark.parametrize(("spec", "said"), [
    pytest.param({"containers": "all"}, "spec.containers must be a list, not string", id="containers as text"),
    pytest.param({"containers": [1]}, "spec.containers[0] must be an object, not integer", id="a container as number"),
    pytest.param({"nodeName": 7}, "spec.nodeName must be text, not integer", id="a node as a number"),
    pytest.param({"hostNetwork": "yes"}, "spec.hostNetwork must be true or false, not string", id="a flag as text"),
    pytest.param({"containers": [container(resources={"limits": {"cpu": "lots"}})]},
                 "spec.containers[0].resources.limits.cpu must be a quantity such as 500m or 2Gi, "
                 "not string", id="an amount that is none"),
    pytest.param({"containers": [container(resources={"limits": {"cpu": "1e99999"}})]},
                 "spec.containers[0].resources.limits.cpu must be a quantity such as 500m or 2Gi, "
                 "not string", id="an amount nobody could count"),
])
async def test_types_that_do_not_fit(api: Api, spec: Object, said: str) -> None:
    answer = await api.post(PODS, pod(**spec))

    assert (400, f'Pod in version "v1" cannot be handled as a Pod: {said}') == (answer.code, answer.message)


@pytest.mark.parametrize(("change", "code"), [
    pytest.param({"spec": {"containers": [{"name": "c", "image": "other:2"}]}}, 200, id="the image may change"),
    pytest.param({"spec": {"activeDeadlineSeconds": 5}}, 200, id="a deadline may be set"),
    pytest.param({"spec": {"containers": [{"name": "c", "command": ["x"]}]}}, 422, id="the command may not"),
    pytest.param({"spec": {"nodeName": "n"}}, 422, id="nor the node, except by a binding"),
    pytest.param({"spec": {"tolerations": [*TROUBLES, {"key": "k", "operator": "Exists"}]}}, 200,
                 id="tolerations may be added"),
])
async def test_updates_of_a_spec(api: Api, change: Json, code: int) -> None:
    await api.made(PODS, pod())
    answer = await api.patch(f"{PODS}/p", change, "application/strategic-merge-patch+json")

    assert code == answer.code, answer.body


async def test_null_is_the_same_as_not_sent(api: Api) -> None:
    body = pod(nodeName=None, initContainers=None)
    body["metadata"]["creationTimestamp"] = None
    found = await api.made(PODS, body)

    assert not {"nodeName", "initContainers"} & found["spec"].keys()


class TestBinding:
    @pytest.mark.parametrize("path", [f"{PODS}/p/binding", "/api/v1/namespaces/default/bindings"])
    async def test_it_sets_the_node_once(self, api: Api, path: str) -> None:
        await api.made(PODS, pod())
        body = {"kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        first, second = await api.post(path, body), await api.post(path, body)
        found = (await api.get(f"{PODS}/p")).json

        assert (201, "Success", "n") == (first.code, first.json["status"], found["spec"]["nodeName"])
        assert 1 == found["metadata"]["generation"], "a binding is no new generation"
        assert [("PodScheduled", "True")] == [(each["type"], each["status"]) for each in found["status"]["conditions"]]
        assert (409, 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"') == (
            second.code, second.message)

    @pytest.mark.parametrize(("body", "code"), [
        pytest.param({"target": {"kind": "Pod", "name": "n"}}, 400, id="a target that is no node"),
        pytest.param({"target": {}}, 400, id="no node"),
        pytest.param({}, 400, id="nothing"),
        pytest.param({"metadata": {"uid": "other"}, "target": {"name": "n"}}, 409, id="another pod of that name"),
        pytest.param({"metadata": {"name": "q"}, "target": {"name": "n"}}, 400, id="another name"),
    ])
    async def test_bindings_that_are_refused(self, api: Api, body: Json, code: int) -> None:
        await api.made(PODS, pod())

        assert code == (await api.post(f"{PODS}/p/binding", body)).code

    async def test_a_pod_that_is_ending_is_not_bound(self, api: Api) -> None:
        body = pod()
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await api.made(PODS, body)
        await api.delete(f"{PODS}/p")

        assert 409 == (await api.post(f"{PODS}/p/binding", {"target": {"name": "n"}})).code


async def test_an_eviction_is_a_deletion(api: Api) -> None:
    await api.made(PODS, pod())
    answer = await api.post(f"{PODS}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction",
                                                   "metadata": {"name": "p", "namespace": "default"}})

    assert (201, 404) == (answer.code, (await api.get(f"{PODS}/p")).code)


@pytest.mark.parametrize(("body", "query"), [
    pytest.param({}, "dryRun=All", id="said in the query"),
    pytest.param({"deleteOptions": {"dryRun": ["All"]}}, "", id="said in the body"),
])
async def test_an_eviction_that_is_only_tried_evicts_nobody(api: Api, body: Object, query: str) -> None:
    await api.made(PODS, pod())
    answer = await api.post(f"{PODS}/p/eviction", {"metadata": {"name": "p"}, **body}, query=query)

    assert (201, 200) == (answer.code, (await api.get(f"{PODS}/p")).code)


class TestEphemeralContainers:
    PATH = f"{PODS}/p/ephemeralcontainers"

    async def test_they_are_added_and_nothing_else_is_changed(self, api: Api) -> None:
        await api.made(PODS, pod())
        added = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "x"}], "nodeName": "n"}}
        answer = await api.patch(self.PATH, added)

        assert 200 == answer.code, answer.body
        assert ["debug"] == [each["name"] for each in answer.json["spec"]["ephemeralContainers"]]
        assert "nodeName" not in answer.json["spec"]
        assert 2 == answer.json["metadata"]["generation"]
        assert answer.json == (await api.get(self.PATH)).json

    @pytest.mark.parametrize(("change", "said"), [
        pytest.param([], "may not be removed", id="none goes"),
        pytest.param([{"name": "debug", "image": "y"}], "may not be changed", id="none changes"),
        pytest.param([{"name": "debug", "image": "x"}, {"name": "more"}], "image: Required value",
                     id="all need an image"),
    ])
    async def test_refused(self, api: Api, change: Json, said: str) -> None:
        await api.made(PODS, pod())
        await api.patch(self.PATH, {"spec": {"ephemeralContainers": [{"name": "debug", "image": "x"}]}})
        answer = await api.patch(self.PATH, {"spec": {"ephemeralContainers": change}})

        assert (422, True) == (answer.code, said in answer.message), answer.body


@pytest.mark.parametrize(("own", "expected"), [
    pytest.param([], TROUBLES, id="nothing said"),
    pytest.param([{"operator": "Exists"}], [{"operator": "Exists"}], id="everything tolerated"),
    pytest.param([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
                 [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}, TROUBLES[1]],
                 id="one of them for ever"),
    pytest.param([{"key": "x", "operator": "Exists"}], [{"key": "x", "operator": "Exists"}, *TROUBLES], id="others"),
])
async def test_a_pod_stays_for_a_while_on_a_node_in_trouble(api: Api, own: Json, expected: Json) -> None:
    assert expected == (await api.made(PODS, pod(tolerations=own)))["spec"]["tolerations"]


async def test_a_toleration_of_all_pods_that_is_left_out_comes_back_and_ones_own_may_not_go(api: Api) -> None:
    made = await api.made(PODS, pod())
    more = {"key": "x", "operator": "Exists"}
    added = await api.put(f"{PODS}/p", made | {"spec": made["spec"] | {"tolerations": [more]}})
    taken = await api.put(f"{PODS}/p", added.json | {"spec": made["spec"]})

    assert (200, [more, *TROUBLES]) == (added.code, added.json["spec"]["tolerations"])
    assert (422, True) == (taken.code, "existing toleration can not be modified" in taken.message)


NO_PLACE = "Forbidden: cannot be set for an Ephemeral Container"
FIRST = "spec.ephemeralContainers[0]"


@pytest.mark.parametrize(("given", "said"), [
    pytest.param({"ports": [{"containerPort": 1}]}, f"{FIRST}.ports: {NO_PLACE}", id="ports"),
    pytest.param({"livenessProbe": {"exec": {"command": ["a"]}}}, f"{FIRST}.livenessProbe: {NO_PLACE}", id="a probe"),
    pytest.param({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}, f"{FIRST}.lifecycle: {NO_PLACE}", id="hooks"),
    pytest.param({"resources": {"limits": {"cpu": "1"}}}, f"{FIRST}.resources: {NO_PLACE}", id="resources"),
    pytest.param({"restartPolicy": "Always"}, f"{FIRST}.restartPolicy: {NO_PLACE}", id="restarts"),
    pytest.param({"volumeMounts": [{"name": "n", "mountPath": "/x", "subPath": "a"}]},
                 f'[{FIRST}.volumeMounts[0].name: Not found: "n", {FIRST}.volumeMounts[0].subPath: {NO_PLACE}]',
                 id="a part of a volume that is not there"),
    pytest.param({"name": "c"}, f'{FIRST}.name: Duplicate value: "c"', id="the name of another"),
    pytest.param({"name": ""}, f"{FIRST}.name: Required value", id="no name"),
    pytest.param({"image": ""}, f"{FIRST}.image: Required value", id="no image"),
    pytest.param({"targetContainerName": "x"}, f'{FIRST}.targetContainerName: Not found: "x"', id="no such target"),
    pytest.param({"env": [{"name": ""}]}, f"{FIRST}.env[0].name: Required value", id="a variable without a name"),
])
async def test_ephemeral_containers_that_are_refused(api: Api, given: Object, said: str) -> None:
    await api.made(PODS, pod())
    patch = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", **given}]}}
    answer = await api.patch(f"{PODS}/p/ephemeralcontainers", patch, STRATEGIC)

    assert (422, f'Pod "p" is invalid: {said}') == (answer.code, answer.message)
