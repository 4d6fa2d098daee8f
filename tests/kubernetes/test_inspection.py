"""Unknown fields and wrong types: what the real kube-apiserver complains about is what we find in the same body."""

import json
import re
from collections.abc import AsyncIterator

import orjson
import pytest
from tests.kubernetes.control_plane import ControlPlane

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, inspection
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Request, Response, Transport

pytestmark = pytest.mark.kubernetes

CONTAINER = {"name": "main", "image": "x"}
ANY = {"type": "object"}


@pytest.fixture
async def wire(control_plane: ControlPlane) -> AsyncIterator[Transport]:
    carrier = transport(load(control_plane.kubeconfig()))
    try:
        yield carrier
    finally:
        await carrier.close()


async def judged(wire: Transport, thing: Object) -> Response:
    """What the real server says to a strict create that stores nothing."""
    found = (each.resource for each in builtin.served()[thing["apiVersion"]] if each.resource.kind == thing["kind"])
    place = next(found)
    path = place.path("default" if place.namespaced else "")
    query = (("dryRun", "All"), ("fieldValidation", "Strict"))
    headers = {"content-type": "application/json"}
    return await wire.send(Request("POST", path, query, headers, json.dumps(thing).encode()))


def pod(**spec: Json) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"},
            "spec": {"containers": [CONTAINER], **spec}}


def deployment(**spec: Json) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generateName": "d-"},
            "spec": {"selector": {"matchLabels": {"a": "b"}},
                     "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}, **spec}}


def definition(**schema: Json) -> Object:
    names = {"plural": "odds", "singular": "odd", "kind": "Odd"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {**ANY, **schema}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "odds.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}}


def config_map(**more: Json) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, **more}


@pytest.mark.parametrize("thing", [
    pytest.param(pod(foo=1, bar={"x": 1}), id="in the spec"),
    pytest.param(pod(containers=[CONTAINER, {**CONTAINER, "name": "b", "bar": 1}]), id="in an item of a list"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "unknown": 1, "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "odd": 1}]}}, id="in the metadata"),
    pytest.param({**pod(), "extra": None}, id="at the top, even with null"),
    pytest.param(pod(Containers=[]), id="letter case matters"),
    pytest.param(pod(volumes=[{"name": "v", "emptyDir": {"odd": 1}, "odd": 2}]), id="in a part that Go inlines"),
    pytest.param(deployment(template={"metadata": {"labels": {"a": "b"}},
                                      "spec": {"containers": [CONTAINER], "foo": 1}}), id="deep in a template"),
    pytest.param(deployment(strategy={"rollingUpdate": {"maxSurge": 1, "odd": 1}}), id="beside an int-or-string"),
    pytest.param(definition(properties={"a": {"type": "string", "odd": 1}}), id="in a map of objects"),
    pytest.param(definition(properties={"a": {"type": "array", "items": {"type": "string", "odd": 1}}}),
                 id="in the items of a schema, where Go does not look"),
    pytest.param(definition(properties={"a": {"type": "object", "additionalProperties": {"type": "string", "odd": 1}}}),
                 id="in the additional properties of a schema, where Go does not look"),
    pytest.param(definition(properties={"a": {"type": "string", "default": {"odd": 1}}}, odd=1), id="not in any JSON"),
    pytest.param(config_map(data={"anything": "goes"}), id="not in a map"),
])
async def test_the_same_fields_are_unknown(thing: Object, wire: Transport) -> None:
    shape = builtin.shape_of(thing["apiVersion"], thing["kind"])
    assert shape is not None
    message = orjson.loads((await judged(wire, thing)).body).get("message", "")

    assert re.findall(r'unknown field "([^"]+)"', message) == list(inspection.inspect(thing, shape).unknown)


@pytest.mark.parametrize("thing", [
    pytest.param(pod(), id="nothing is wrong"),
    pytest.param(pod(priority=None, nodeSelector=None, tolerations=[None]), id="null is nothing, also in a list"),
    pytest.param(pod(nodeName=5), id="a number for text"),
    pytest.param(pod(hostNetwork="true"), id="text for true"),
    pytest.param(pod(terminationGracePeriodSeconds="30"), id="text for a number"),
    pytest.param(pod(terminationGracePeriodSeconds=1.5), id="half a number"),
    pytest.param(pod(terminationGracePeriodSeconds=1 << 63), id="more than 64 bits"),
    pytest.param(pod(priority=1 << 31), id="more than 32 bits"),
    pytest.param(pod(containers={}), id="an object for a list"),
    pytest.param(pod(containers=["main"]), id="text for an object"),
    pytest.param(pod(nodeSelector=[]), id="a list for a map"),
    pytest.param(pod(nodeSelector={"a": 1}), id="a number in a map of text"),
    pytest.param(pod(containers=[{**CONTAINER, "resources": {"limits": {"cpu": 1}}}]), id="a plain number as quantity"),
    pytest.param(pod(containers=[{**CONTAINER, "resources": {"limits": {"cpu": 0.5}}}]), id="half a cpu as number"),
    pytest.param(pod(containers=[{**CONTAINER, "resources": {"limits": {"cpu": "1.5Gi"}}}]), id="a quantity"),
    pytest.param(pod(containers=[{**CONTAINER, "resources": {"limits": {"cpu": "1 Gi"}}}]), id="not a quantity"),
    pytest.param(pod(containers=[{**CONTAINER, "resources": {"limits": {"cpu": ""}}}]), id="an empty quantity"),
    pytest.param(pod(containers=[{**CONTAINER, "resources": {"limits": {"cpu": True}}}]), id="true for a quantity"),
    pytest.param(pod(containers=[{**CONTAINER, "livenessProbe": {"tcpSocket": {"port": True}}}]), id="true for a port"),
    pytest.param(pod(containers=[{**CONTAINER, "livenessProbe": {"tcpSocket": {"port": 1 << 31}}}]), id="a huge port"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "creationTimestamp": "2024-01-01T00:00:00Z"}},
                 id="a moment"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "creationTimestamp": "2024-01-01T00:00:00.5+02:00"}},
                 id="a moment elsewhere"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "creationTimestamp": "2024-02-30T00:00:00Z"}},
                 id="not a moment"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "creationTimestamp": ""}}, id="no moment as text"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "creationTimestamp": "2024-01-01t00:00:00z"}},
                 id="a moment in small letters"),
    pytest.param({**pod(), "metadata": {"generateName": "p-", "creationTimestamp": 5}}, id="a number for a moment"),
    pytest.param({**pod(), "metadata": []}, id="a list for the metadata"),
    pytest.param({**pod(), "spec": "none"}, id="text for the spec"),
    pytest.param(config_map(binaryData={"a": "AA=="}), id="bytes"),
    pytest.param(config_map(binaryData={"a": "AA"}), id="bytes without padding"),
    pytest.param(config_map(binaryData={"a": "A A="}), id="not bytes"),
    pytest.param(config_map(binaryData={"a": "A\nA=="}), id="bytes over two lines"),
    pytest.param(config_map(binaryData={"a": None}, data={"b": None}), id="null in maps"),
    pytest.param(config_map(immutable=0), id="zero for false"),
    pytest.param({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"generateName": "l-"},
                  "spec": {"renewTime": "2024-01-01T00:00:00.123456Z"}}, id="a precise moment"),
    pytest.param({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"generateName": "l-"},
                  "spec": {"renewTime": "2024-01-01T00:00:00Z"}}, id="a precise moment without decimals"),
    pytest.param({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"generateName": "l-"},
                  "spec": {"renewTime": "2024-01-01T00:00:00.123Z"}}, id="a precise moment with three decimals"),
    pytest.param(definition(properties={"a": {"type": "number", "minimum": "1"}}), id="text for a limit"),
    pytest.param(definition(properties={"a": {"type": "number", "minimum": 1}}), id="a whole number for a limit"),
    pytest.param(definition(properties={"a": {"type": "object", "additionalProperties": 1}}),
                 id="a number for a schema or true"),
    pytest.param(definition(properties={"a": {"type": "array", "items": {"type": 5}}}), id="a number inside items"),
    pytest.param(definition(properties={"a": {"type": "array", "items": ANY, "x-kubernetes-list-type": 1}}),
                 id="a number for an extension"),
    pytest.param({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": "u", "extra": {"k": "v"}, "nonResourceAttributes": {"path": "/", "verb": "get"}}},
                 id="text for a list of text in a map"),
])
async def test_the_same_bodies_cannot_be_read(thing: Object, wire: Transport) -> None:
    """A body that Go cannot decode is a 400; one that breaks a rule is something else, and not our question here."""
    shape = builtin.shape_of(thing["apiVersion"], thing["kind"])
    assert shape is not None
    answer = await judged(wire, thing)

    assert (answer.status == 400) == bool(inspection.inspect(thing, shape).faults), answer.body
