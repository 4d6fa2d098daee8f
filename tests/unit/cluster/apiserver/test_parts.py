"""Scales that are refused, in the words of a real server."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import Api

SETS = "/apis/apps/v1/namespaces/default/replicasets"
LABELS = {"a": "b"}


def scale(name: str, replicas: int) -> Any:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(("sent", "code", "said"), [
    pytest.param(scale("r", -1), 422, 'Scale.autoscaling "r" is invalid: spec.replicas: Invalid value: -1: must be '
                 "greater than or equal to 0", id="less than nothing"),
    pytest.param(scale("z", 1), 400, "the name of the object (z) does not match the name on the URL (r)",
                 id="of another name"),
    pytest.param(scale("r", 2), 200, None, id="a scale that is taken"),
])
async def test_a_scale(api: Api, sent: Any, code: int, said: str | None) -> None:
    await api.made(SETS, {"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": LABELS}, "template": {
        "metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}})
    answer = await api.put(f"{SETS}/r/scale", sent)

    assert (code, said) == (answer.code, answer.json.get("message"))
