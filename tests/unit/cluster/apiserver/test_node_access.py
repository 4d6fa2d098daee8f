"""A node reads what its own pods need, and nothing of the others."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.cluster.apiserver.api import PODS, Api, pod, serving

from trainmaster.cluster.apiserver.auth import Identity, authenticated
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.kube.transport import Request

HERE = authenticated(Identity("system:node:here", ("system:nodes",)))
CORE = "/api/v1/namespaces/default"


def needy(name: str, node: str) -> dict[str, object]:
    pulls = [{"name": f"pull-{name}"}]
    return pod(name, nodeName=node, serviceAccountName=f"a-{name}", imagePullSecrets=pulls, volumes=[
        {"name": "s", "secret": {"secretName": f"s-{name}"}}, {"name": "c", "configMap": {"name": f"c-{name}"}},
        {"name": "d", "persistentVolumeClaim": {"claimName": f"d-{name}"}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": f"p-{name}"}}]}},
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}},
    ], containers=[{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": f"e-{name}"}}],
                    "env": [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": f"v-{name}", "key": "k"}}}]}])


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as made:
        for account in ("a-mine", "a-other"):
            await made.made(f"{CORE}/serviceaccounts", {"metadata": {"name": account}})
        await made.made(PODS, needy("mine", "here"))
        await made.made(PODS, needy("other", "there"))
        yield made


async def may(api: Api, method: str, path: str) -> bool:
    return (await InProcess(api.server, HERE).send(Request(method, path))).status != 403


NEEDS = ("secrets/s-", "secrets/pull-", "secrets/p-", "secrets/e-", "configmaps/c-", "configmaps/v-",
         "persistentvolumeclaims/d-")


@pytest.mark.parametrize("what", NEEDS)
async def test_what_a_pod_needs_goes_to_its_node_as_long_as_it_is_there(api: Api, what: str) -> None:
    assert await may(api, "GET", f"{CORE}/{what}mine")
    assert not await may(api, "GET", f"{CORE}/{what}other")
    assert not await may(api, "DELETE", f"{CORE}/{what}mine")

    await api.delete(f"{PODS}/mine", query="gracePeriodSeconds=0")
    assert not await may(api, "GET", f"{CORE}/{what}mine")


@pytest.mark.parametrize(("method", "path", "allowed"), [
    pytest.param("GET", f"{CORE}/secrets", False, id="a list of secrets"),
    pytest.param("GET", "/api/v1/namespaces/other/secrets/s-mine", False, id="the same name elsewhere"),
    pytest.param("GET", "/api/v1/nodes/here", True, id="itself"),
    pytest.param("GET", "/api/v1/nodes/there", False, id="another node"),
    pytest.param("PUT", "/api/v1/nodes/here/status", True, id="its own status"),
    pytest.param("PUT", "/api/v1/nodes/there/status", False, id="the status of another"),
    pytest.param("DELETE", "/api/v1/nodes/here", False, id="removing itself"),
    pytest.param("PUT", f"{PODS}/mine/status", True, id="the status of its pod"),
    pytest.param("PUT", f"{PODS}/other/status", False, id="the status of a pod elsewhere"),
    pytest.param("DELETE", f"{PODS}/mine", True, id="the end of its pod"),
    pytest.param("DELETE", f"{PODS}/other", False, id="the end of a pod elsewhere"),
    pytest.param("PUT", f"{PODS}/mine", False, id="the spec of its pod"),
    pytest.param("POST", PODS, False, id="a new pod"),
    pytest.param("GET", "/api/v1/pods", True, id="all pods, whose names it answers"),
    pytest.param("POST", f"{CORE}/serviceaccounts/a-other/token", False, id="a token of another account"),
    pytest.param("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/here", True, id="its lease"),
    pytest.param("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/there", False,
                 id="the lease of another"),
    pytest.param("GET", "/api", True, id="discovery"),
    pytest.param("GET", "/metrics", False, id="metrics"),
])
async def test_what_a_node_may_do(api: Api, method: str, path: str, allowed: bool) -> None:
    assert allowed == await may(api, method, path)


BOUND = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(("account", "bound", "audiences", "why"), [
    pytest.param("mine", {**BOUND, "name": "mine"}, [], "", id="a token for its pod"),
    pytest.param("mine", {**BOUND, "name": "mine"}, ["vault"], "", id="one for whom the pod talks to"),
    pytest.param("mine", {**BOUND, "name": "mine"}, ["bank"], 'audience "bank" not found in pod spec volume, '
                 "system:node:here is not authorized to request tokens for this audience", id="one for somebody else"),
    pytest.param("mine", {**BOUND, "name": "mine"}, ["vault", "bank"], "node may only request 0 or 1 audiences",
                 id="one for several"),
    pytest.param("mine", None, [], "node requested token not bound to a pod", id="bound to nothing"),
    pytest.param("mine", {"apiVersion": "v1", "kind": "Node", "name": "here", "uid": "1"}, [],
                 "node requested token not bound to a pod", id="bound to the node itself"),
    pytest.param("mine", {**BOUND, "name": "mine", "uid": ""}, [],
                 "node requested token with a pod binding without a uid", id="a pod by name only"),
    pytest.param("mine", {**BOUND, "name": "mine", "uid": "1"}, [], "the UID in the bound object reference (1) does "
                 "not match the UID in record. The object might have been deleted and then recreated",
                 id="a pod of before"),
    pytest.param("mine", {**BOUND, "name": "other"}, [],
                 "node requested token bound to a pod scheduled on a different node", id="a pod elsewhere"),
])
async def test_tokens_a_node_gets(
        api: Api, account: str, bound: dict[str, str] | None, audiences: list[str], why: str) -> None:
    if bound is not None and "uid" not in bound:
        bound = {**bound, "uid": (await api.get(f"{PODS}/{bound['name']}")).json["metadata"]["uid"]}
    api.transport = InProcess(api.server, HERE)
    answer = await api.post(f"{CORE}/serviceaccounts/a-{account}/token",
                            {"spec": {"boundObjectRef": bound, "audiences": audiences}})

    assert (403, f'serviceaccounts "a-{account}" is forbidden: {why}') == (answer.code, answer.message) if why else \
        answer.code == 201


@pytest.mark.parametrize(("name", "code"), [pytest.param("here", 201, id="itself"),
                                            pytest.param("there", 403, id="another")])
async def test_a_node_makes_only_itself_and_its_lease(api: Api, name: str, code: int) -> None:
    api.transport = InProcess(api.server, HERE)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

    assert code == (await api.post("/api/v1/nodes", {"metadata": {"name": name}})).code
    assert code == (await api.post(leases, {"metadata": {"name": name}})).code
