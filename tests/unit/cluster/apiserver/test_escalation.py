"""Nobody gives what they do not have."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import Api, serving

from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.inprocess import InProcess

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
GROUP = "rbac.authorization.k8s.io"


def rule(resources: list[str], *verbs: str, group: str = "") -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def binding(role: str, kind: str = "ClusterRole", name: str = "b") -> dict[str, Any]:
    return {"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role, "apiGroup": GROUP},
            "subjects": [{"kind": "User", "name": "ben", "apiGroup": GROUP}]}


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """The maker may write roles and bindings of all sorts, and read pods; the trusted may give what they have not."""
    async with serving() as made:
        writes = rule(["roles", "clusterroles", "rolebindings", "clusterrolebindings"], "create", "patch", group=GROUP)
        for name, more in (("maker", rule(["pods"], "get", "list")),
                           ("trusted", rule(["roles", "clusterroles"], "escalate", "bind", group=GROUP))):
            await made.made(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [writes, more]})
            subjects = [{"kind": "User", "name": name, "apiGroup": GROUP}]
            await made.made(f"{RBAC}/clusterrolebindings", {**binding(name, name=name), "subjects": subjects})
        await made.made(ROLES, {"metadata": {"name": "there"}, "rules": [rule(["pods"], "get")]})
        await made.made(ROLES, {"metadata": {"name": "wide"}, "rules": [rule(["secrets"], "get")]})
        yield made


CASES = [
    pytest.param("POST", ROLES, {"metadata": {"name": "r"}, "rules": [rule(["pods"], "get")]}, "",
                 id="a role with what one has"),
    pytest.param("POST", ROLES, {"metadata": {"name": "r"}, "rules": [rule(["pods", "secrets"], "get", "delete")]},
                 'roles.rbac.authorization.k8s.io "r" is forbidden: user "maker" (groups=["system:authenticated"]) is '
                 "attempting to grant RBAC permissions not currently held:\n"
                 '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
                 '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}', id="a role with more"),
    pytest.param("PATCH", f"{ROLES}/there", {"rules": [rule(["secrets"], "get")]}, "not currently held",
                 id="a role that gets more"),
    pytest.param("PATCH", f"{ROLES}/wide", {"metadata": {"labels": {"a": "b"}}}, "", id="a label on such a role"),
    pytest.param("POST", f"{RBAC}/clusterroles",
                 {"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {}}]}},
                 "must have cluster-admin privileges to use the aggregationRule", id="a role that gathers"),
    pytest.param("POST", BINDINGS, binding("there", "Role"), "", id="a binding of a role with what one has"),
    pytest.param("POST", BINDINGS, binding("wide", "Role"), "not currently held", id="of one with more"),
    pytest.param("POST", BINDINGS, binding("cluster-admin"), "not currently held", id="of the one with everything"),
    pytest.param("POST", BINDINGS, binding("nosuch"), 'rolebindings.rbac.authorization.k8s.io "nosuch" not found',
                 id="of none"),
]


async def said(api: Api, who: str, method: str, path: str, body: dict[str, Any]) -> str:
    api.transport = InProcess(api.server, Identity(who))
    answer = await (api.patch(path, body) if method == "PATCH" else api.post(path, body))
    return answer.message if answer.code >= 400 else ""


@pytest.mark.parametrize(("method", "path", "body", "refusal"), CASES)
async def test_giving(api: Api, method: str, path: str, body: dict[str, Any], refusal: str) -> None:
    found = await said(api, "maker", method, path, body)

    assert bool(found) == bool(refusal)
    assert refusal in found


@pytest.mark.parametrize(("method", "path", "body", "refusal"), CASES)
async def test_the_trusted_may_give_it_all(
    api: Api, method: str, path: str, body: dict[str, Any], refusal: str
) -> None:
    assert "" == await said(api, "trusted", method, path, body), refusal
