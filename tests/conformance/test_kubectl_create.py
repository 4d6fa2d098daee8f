"""What kubectl writes as protobuf, and what it finds out about manifests before it sends them."""

import base64
import json
import re

import pytest
from tests.conformance.conftest import Kubectl

MANIFESTS = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one}
  data: {a: "1"}
- apiVersion: v1
  kind: Secret
  metadata: {name: two}
  stringData: {b: "2"}
"""
TYPO = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartpolicy: Never
  containers: [{name: main, image: 'busybox:1', imagePullPolicies: Always}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: main, image: 'busybox:1'}, {name: side, image: 'busybox:1'}]}
"""


@pytest.mark.parametrize(("arguments", "said"), [
    pytest.param("create namespace team", "namespace/team created", id="a namespace"),
    pytest.param("create configmap settings --from-literal=a=1", "configmap/settings created", id="a config map"),
    pytest.param("create secret generic keys --from-literal=a=1", "secret/keys created", id="a secret"),
    pytest.param("create serviceaccount robot", "serviceaccount/robot created", id="a service account"),
    pytest.param("create service clusterip web --tcp=80:8080", "service/web created", id="a service"),
])
async def test_create_without_a_manifest(kubectl: Kubectl, arguments: str, said: str) -> None:
    assert f"{said}\n" == await kubectl.output(*arguments.split())


async def test_what_was_sent_as_protobuf_is_what_is_stored(kubectl: Kubectl) -> None:
    await kubectl.output("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=zwölf")
    await kubectl.output("create", "secret", "generic", "keys", "--from-literal=a=1")
    await kubectl.output("create", "service", "clusterip", "web", "--tcp=80:8080")
    settings = json.loads(await kubectl.output("get", "configmap", "settings", "-o", "json"))
    keys = json.loads(await kubectl.output("get", "secret", "keys", "-o", "json"))
    web = json.loads(await kubectl.output("get", "service", "web", "-o", "json"))

    assert {"a": "1", "b": "zwölf"} == settings["data"]
    assert ({"a": base64.b64encode(b"1").decode()}, "Opaque") == (keys["data"], keys["type"])
    assert [{"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}] == web["spec"]["ports"]


async def test_a_list_of_manifests(kubectl: Kubectl) -> None:
    assert "configmap/one created\nsecret/two created\n" == await kubectl.output("create", "-f", "-", given=MANIFESTS)
    wrong = MANIFESTS.replace("data: {a:", "date: {a:").replace("one", "three")
    done = await kubectl("create", "-f", "-", given=wrong)
    assert 1 == done.code
    assert 'unknown field "date"' in done.err


async def test_explain_knows_the_fields_of_built_in_kinds(kubectl: Kubectl) -> None:
    said = await kubectl.output("explain", "pod.spec.containers")

    assert re.search(r"(FIELD|RESOURCE): containers <\[\](Container|Object)>", said)
    assert "imagePullPolicy" in said


async def test_strict_validation_of_a_built_in_kind(kubectl: Kubectl) -> None:
    done = await kubectl("create", "-f", "-", given=TYPO)

    assert 1 == done.code
    if kubectl.old:
        assert 'unknown field "imagePullPolicies" in io.k8s.api.core.v1.Container' in done.err
        return
    assert ('Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
            '"spec.containers[0].imagePullPolicies", unknown field "spec.restartpolicy"') in done.err
    warned = await kubectl("create", "--validate=warn", "-f", "-", given=TYPO)
    assert (0, "pod/p created\n") == (warned.code, warned.out)
    assert 'Warning: unknown field "spec.restartpolicy"' in warned.err


async def test_a_strategic_patch_merges_by_name(kubectl: Kubectl) -> None:
    await kubectl.output("create", "-f", "-", given=POD)
    await kubectl.output("set", "image", "pod/p", "side=busybox:2")
    images = await kubectl.output("get", "pod", "p", "-o", "jsonpath={.spec.containers[*].image}")

    assert "busybox:1 busybox:2" == images
