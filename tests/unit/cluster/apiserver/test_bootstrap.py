"""The roles that every cluster has: made at the first start, put right at the next."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import Api, serving

from trainmaster.cluster.apiserver import bootstrap, rbac
from trainmaster.cluster.apiserver.server import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
BASIC = f"{RBAC}/clusterroles/system:basic-user"


async def restarted(api: Api) -> None:
    await ApiServer(api.store, clock=api.clock).start()


async def test_they_are_as_an_ordinary_creation_would_make_them() -> None:
    async with serving() as api:
        for plural, things in bootstrap.shipped().items():
            for thing in things:
                namespace = thing["metadata"].get("namespace")
                path = f"{RBAC}/namespaces/{namespace}/{plural}" if namespace else f"{RBAC}/{plural}"
                found = (await api.get(f"{path}/{thing['metadata']['name']}")).json
                renamed = {**thing, "metadata": {**thing["metadata"], "name": "copy"}}
                copy = (await api.post(path, renamed, query="dryRun=All")).json
                for meta in (found["metadata"], copy["metadata"]):
                    for field in ("name", "uid", "resourceVersion", "managedFields"):
                        meta.pop(field, None)

                assert copy == found


async def test_what_gathers_has_gathered() -> None:
    async with serving() as api:
        paths = {name: f"{RBAC}/clusterroles/{name}" for name in ("view", "edit", "admin")}
        rules = {name: (await api.get(path)).json["rules"] for name, path in paths.items()}

    assert len(rules["view"]) < len(rules["edit"]) < len(rules["admin"])


@pytest.mark.parametrize(("change", "same"), [
    pytest.param({"rules": []}, True, id="a rule that was taken away comes back"),
    pytest.param({"metadata": {"labels": None}}, True, id="so does a label"),
    pytest.param({"rules": [], "metadata": {"annotations": {bootstrap.AUTOUPDATE: "false"}}}, False,
                 id="not where somebody asked for it to stay away"),
])
async def test_at_a_start(change: dict[str, Any], same: bool) -> None:
    async with serving() as api:
        before = (await api.get(BASIC)).json
        await api.patch(BASIC, change)
        await restarted(api)
        after = (await api.get(BASIC)).json

    restored = not rbac.missing(rbac.rules_of(after), rbac.rules_of(before))
    assert same == (restored and before["metadata"].get("labels") == after["metadata"].get("labels"))


async def test_what_somebody_added_stays_and_a_second_start_writes_nothing() -> None:
    extra = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    async with serving() as api:
        rules = (await api.get(BASIC)).json["rules"]
        await api.patch(BASIC, {"rules": [*rules, extra]})
        revision = api.store.revision
        await restarted(api)

        assert revision == api.store.revision
        assert (await api.get(BASIC)).json["rules"] == [*rules, extra]
