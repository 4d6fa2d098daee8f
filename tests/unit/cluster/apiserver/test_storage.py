"""Claims that ask for more or less than they did, and where they come from; refusals are in refusals/storage.yaml."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import Api

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
NO = ("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
      "resize")


def claim(storage: str = "2Gi", **more: Any) -> Any:
    return {"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **more}}


@pytest.mark.parametrize(("given", "wanted", "code", "why"), [
    pytest.param({"allowVolumeExpansion": True}, "3Gi", 200, "", id="more, where the class lets it"),
    pytest.param({}, "3Gi", 403, NO, id="more, where the class does not"),
    pytest.param(None, "3Gi", 403, NO, id="more, without a class"),
    pytest.param({}, "1Gi", 200, "", id="less, as long as it has no more"),
    pytest.param({}, "1Mi", 422, "field can not be less than status.capacity", id="less than it has"),
])
async def test_a_bound_claim_asks_for(api: Api, given: Any, wanted: str, code: int, why: str) -> None:
    if given is not None:
        await api.made(CLASSES, {"metadata": {"name": "s"}, "provisioner": "a.io/b", **given})
    await api.made(CLAIMS, claim(storageClassName="" if given is None else "s"))
    await api.patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
    answer = await api.patch(f"{CLAIMS}/c", {"spec": {"resources": {"requests": {"storage": wanted}}}})

    assert (code, True) == (answer.code, not why or why in answer.message)


@pytest.mark.parametrize(("source", "kept"), [
    pytest.param({"kind": "PersistentVolumeClaim", "name": "x"}, True, id="another claim"),
    pytest.param({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}, True, id="a snapshot"),
    pytest.param({"kind": "Pod", "name": "x"}, False, id="what can be none is left out"),
])
async def test_where_a_claim_comes_from(api: Api, source: Any, kept: bool) -> None:
    made = await api.made(CLAIMS, claim(dataSource=source))

    assert kept == ("dataSource" in made["spec"])


@pytest.mark.parametrize(("said", "also"), [
    pytest.param("dataSource", "dataSourceRef", id="in the old field"),
    pytest.param("dataSourceRef", "dataSource", id="in its successor"),
])
async def test_what_a_claim_is_filled_with_is_in_both_fields(api: Api, said: str, also: str) -> None:
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}
    filled: dict[str, Any] = {said: source}
    made, again = await api.made(CLAIMS, claim(**filled)), await api.put(f"{CLAIMS}/c", claim(**filled))

    assert (source, source) == (made["spec"][said], made["spec"][also])
    assert (200, source) == (again.code, again.json["spec"][also])


async def test_a_client_that_knows_the_old_field_only_keeps_a_newer_source(api: Api) -> None:
    source = {"apiGroup": "example.com", "kind": "Backup", "name": "x"}
    await api.made(CLAIMS, claim(dataSourceRef=source))
    again = await api.put(f"{CLAIMS}/c", claim(dataSource=source))

    assert (200, source) == (again.code, again.json["spec"]["dataSourceRef"])


async def test_a_claim_that_names_another_one_is_put_as_it_was(api: Api) -> None:
    await api.made(CLAIMS, claim(dataSource={"kind": "PersistentVolumeClaim", "name": "x"}))

    assert 200 == (await api.put(f"{CLAIMS}/c", claim(dataSource={"kind": "PersistentVolumeClaim", "name": "x"}))).code
