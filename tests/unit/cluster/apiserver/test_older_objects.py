"""Objects that an older server took, with fewer rules or defaults: they can still be written, and go."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import lifecycle
from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.kinds import BUILT_IN

META: Object = {"name": "t", "namespace": "default", "uid": "u", "resourceVersion": "1", "finalizers": ["a.b/c"]}
WRONG: Object = {"name": "main", "image": "x", "envFrom": [{"configMapRef": {"name": "X_y"}}],
                 "securityContext": {"runAsUser": -1}}
BARE: Object = {"name": "main", "image": "x", "livenessProbe": {"exec": {"command": ["a"]}, "timeoutSeconds": 0}}


def stored(kind: str, container: Object, **more: Any) -> Object:
    labels = {"a": "b"}
    spec = {"selector": {"matchLabels": labels}, **more, "template": {
        "metadata": {"labels": labels}, "spec": {"restartPolicy": "Never" if kind == "Job" else "Always",
                                                 "containers": [container]}}}
    api = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": api, "kind": kind, "metadata": dict(META), "spec": spec}


def changed(old: Object, **meta: Any) -> Object:
    found = next(kind for kind in BUILT_IN if kind.resource.kind == old["kind"])
    return lifecycle.amended(found, old, {**old, "metadata": {**old["metadata"], **meta}}, "", conditional=False)


@pytest.mark.parametrize("old", [
    pytest.param(stored("Deployment", WRONG), id="a deployment with a template that is refused today"),
    pytest.param(stored("Job", WRONG), id="a job with a template that is refused today"),
    pytest.param(stored("Job", BARE), id="a job whose template has fewer defaults than it would get today"),
])
def test_it_can_lose_its_finalizers(old: Object) -> None:
    assert not changed(old, finalizers=[])["metadata"].get("finalizers")


def test_what_is_newly_wrong_is_refused_alone() -> None:
    old = stored("Deployment", WRONG)

    with pytest.raises(Failure) as refused:
        changed({**old, "metadata": dict(META)}, labels={"a": "-"})

    assert 'metadata.labels: Invalid value: "-"' in refused.value.message
    assert "X_y" not in refused.value.message


def test_what_is_fixed_stays_fixed() -> None:
    found = next(kind for kind in BUILT_IN if kind.resource.kind == "Job")
    old = stored("Job", WRONG)

    with pytest.raises(Failure) as refused:
        lifecycle.amended(found, old, stored("Job", {**WRONG, "image": "y"}), "", conditional=False)

    assert "field is immutable" in refused.value.message
