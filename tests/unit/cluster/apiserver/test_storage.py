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
