"""Questions that are objects, as `kubectl auth` asks them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import TABLE, Answer, Api, serving

from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.inprocess import InProcess

AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ANN = Identity("ann")


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as made:
        await made.made(f"{RBAC}/namespaces/default/rolebindings", {
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "name": "ann"}]})
        yield made


async def asked(api: Api, path: str, spec: dict[str, Any], who: Identity | None = None) -> Answer:
    if who is not None:
        api.transport = InProcess(api.server, who)
    return await api.post(path, {"spec": spec})


PODS = {"verb": "list", "resource": "pods", "namespace": "default"}
YES = {"allowed": True, "reason": 'RBAC: allowed by RoleBinding "b/default" of ClusterRole "view" to User "ann"'}


@pytest.mark.parametrize(("spec", "status"), [
    pytest.param({"resourceAttributes": PODS}, YES, id="yes, and why"),
    pytest.param({"resourceAttributes": {**PODS, "namespace": "other"}}, {"allowed": False}, id="no"),
    pytest.param({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, {"allowed": False}, id="not the path"),
    pytest.param({"nonResourceAttributes": {"verb": "get", "path": "/api"}}, {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group '
                  '"system:authenticated"'}, id="another path"),
])
async def test_may_i_and_may_they(api: Api, spec: dict[str, Any], status: dict[str, Any]) -> None:
    them = {**spec, "user": "ann", "groups": ["system:authenticated"]}
    assert status == (await asked(api, f"{AUTHORIZATION}/subjectaccessreviews", them)).json["status"]
    if spec.get("resourceAttributes") == PODS:
        local = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
        assert status == (await asked(api, local, them)).json["status"]
    mine = await asked(api, f"{AUTHORIZATION}/selfsubjectaccessreviews", spec, ANN)
    assert (201, status) == (mine.code, mine.json["status"])


@pytest.mark.parametrize(("path", "spec", "code", "message"), [
    pytest.param("subjectaccessreviews", {}, 422, "at least one of user or group must be specified", id="nobody"),
    pytest.param("subjectaccessreviews", {"user": "x"}, 422, "exactly one of nonResourceAttributes", id="nothing"),
    pytest.param("namespaces/default/localsubjectaccessreviews",
                 {"user": "x", "resourceAttributes": {"namespace": "y"}}, 422, "must match metadata.namespace",
                 id="about another namespace than its own"),
    pytest.param("selfsubjectrulesreviews", {}, 400, "no namespace on request", id="rules of no namespace"),
])
async def test_questions_that_are_none(api: Api, path: str, spec: dict[str, Any], code: int, message: str) -> None:
    answer = await asked(api, f"{AUTHORIZATION}/{path}", spec)

    assert code == answer.code
    assert message in answer.message


async def test_what_may_i(api: Api) -> None:
    answer = await asked(api, f"{AUTHORIZATION}/selfsubjectrulesreviews", {"namespace": "default"}, ANN)
    status = answer.json["status"]

    assert not status["incomplete"]
    assert any("pods" in rule["resources"] for rule in status["resourceRules"])
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])


async def test_who_am_i(api: Api) -> None:
    who = Identity("ann", ("a", "system:authenticated"), "7", (("scopes", ("x",)),))
    status = (await asked(api, f"{AUTHENTICATION}/selfsubjectreviews", {}, who)).json["status"]

    assert status == {"userInfo": {"username": "ann", "uid": "7", "groups": ["a", "system:authenticated"],
                                   "extra": {"scopes": ["x"]}}}


async def test_they_are_answered_and_nothing_else(api: Api) -> None:
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"

    assert 405 == (await api.get(path)).code
    assert 405 == (await api.delete(f"{path}/x")).code
    assert 406 == (await api.post(path, {"spec": {"resourceAttributes": {}}}, accept=TABLE.partition(",")[0])).code
