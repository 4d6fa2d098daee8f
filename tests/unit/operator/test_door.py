"""Jobs at the door: what the API server is told to refuse, in whose words, and what it is told to let through."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.unit.engine.stories import tfjob

from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Object
from trainmaster.api.schema import definitions
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError
from trainmaster.operator import door
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

MANIFEST = Path(__file__).parents[3] / "deploy" / "operator" / "webhook.yaml"
UPSTREAM = {"jaxjob", "paddlejob", "pytorchjob", "tfjob", "xgboostjob"}


def job(**changes: Any) -> Object:
    """A good job with changes at dotted paths; None takes away."""
    thing = deepcopy(tfjob(roles={"Worker": (1, "Never")}))
    for path, value in changes.items():
        *way, last = path.split("__")
        inner: Any = thing
        for part in way:
            inner = inner[int(part)] if isinstance(inner, list) else inner[part]
        if value is None:
            inner.pop(last)
        else:
            inner[last] = value
    return thing


def asked(thing: Object | None, before: Object | None = None) -> Object:
    return door.judged({"uid": "u", "object": thing, "oldObject": before})


CONTAINERS = "spec__tfReplicaSpecs__Worker__template__spec__containers"


@pytest.mark.parametrize(("thing", "said"), [
    pytest.param(job(), "", id="a good job"),
    pytest.param(job(metadata__name="1st"), 'metadata.name: Invalid value: "1st": should match: a DNS-1035 label',
                 id="a name that cannot be that of a service"),
    pytest.param(job(**{f"{CONTAINERS}__0__image": None}), "spec.tfReplicaSpecs[Worker].template.spec.containers[0]."
                 "image: Required value: must be required", id="no image"),
    pytest.param(job(**{f"{CONTAINERS}__0__name": "main"}), "spec.tfReplicaSpecs[Worker].template.spec.containers: "
                 "Required value: must have at least one container with name tensorflow", id="another container"),
    pytest.param(job(spec__runPolicy={"managedBy": "me"}), 'spec.runPolicy.managedBy: Unsupported value: "me": '
                 'supported values: "kueue.x-k8s.io/multikueue", "kubeflow.org/training-operator"', id="who runs it"),
    pytest.param({**job(), "spec": {}}, "spec.tfReplicaSpecs: Required value: must be required", id="no replicas"),
    pytest.param(job(**{f"{CONTAINERS}__0__image": None, f"{CONTAINERS}__0__name": "main"}), "[spec.tfReplicaSpecs"
                 "[Worker].template.spec.containers[0].image: Required value: must be required, ", id="all at once"),
])
def test_a_creation(thing: Object, said: str) -> None:
    answer = asked(thing)

    assert (not said, "u") == (answer["allowed"], answer["uid"])
    assert answer.get("status", {"message": ""})["message"].startswith(said)
    assert answer["allowed"] or (403, "Forbidden") == (answer["status"]["code"], answer["status"]["reason"])


BROKEN = job(**{f"{CONTAINERS}__0__image": None})


@pytest.mark.parametrize(("thing", "before", "expected"), [
    pytest.param(job(spec__runPolicy={"managedBy": "kubeflow.org/training-operator"}),
                 job(spec__runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}), False, id="who runs it stays"),
    pytest.param({**BROKEN, "metadata": {"name": "mnist", "labels": {"a": "b"}}}, BROKEN, True,
                 id="a broken job from before can be labelled, and let go"),
    pytest.param(BROKEN, job(), False, id="a good job cannot be broken"),
    pytest.param(None, job(), True, id="a deletion"),
    pytest.param({"kind": "Pod", "metadata": {"name": "1"}}, None, True, id="something else"),
])
def test_what_is_let_through(thing: Object | None, before: Object | None, expected: bool) -> None:
    assert expected is asked(thing, before)["allowed"]


def test_an_old_way_of_writing_is_warned_about() -> None:
    thing = {"kind": "PyTorchJob", "metadata": {"name": "a"}, "spec": {"elasticPolicy": {"nProcPerNode": 2}}}

    assert ["spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"] == asked(thing)["warnings"]


def test_the_configuration_is_that_of_upstream_and_covers_all_our_kinds() -> None:
    found = door.configuration("kubeflow", "training-operator", b"PEM")
    entries = {each["name"]: each for each in found["webhooks"]}

    assert "validator.training-operator.kubeflow.org" == found["metadata"]["name"]
    assert {f"validator.{kind.singular}.training-operator.kubeflow.org" for kind in KINDS} == entries.keys()
    assert {kind.singular for kind in KINDS} >= UPSTREAM
    assert {"clientConfig": {"service": {"name": "training-operator", "namespace": "kubeflow",
                                         "path": "/validate-kubeflow-org-v1-tfjob", "port": 443}, "caBundle": "UEVN"},
            "rules": [{"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                       "resources": ["tfjobs"]}],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            } == {field: value for field, value in entries[
                "validator.tfjob.training-operator.kubeflow.org"].items() if field != "name"}


def test_the_manifest_is_what_is_written_from_the_code() -> None:
    assert door.text() == MANIFEST.read_text(), "python -m trainmaster.operator.door > deploy/operator/webhook.yaml"


async def test_the_embedded_server_refuses_in_the_words_of_upstreams_webhook() -> None:
    judge = (door.configuration("", ""), lambda request, _look: door.judged(request))
    async with embedded(VirtualClock(), judges=[judge]) as cluster:
        await cluster.install(definitions())
        client: Client = cluster.client()
        await client.create(KINDS[0].resource, {**job(), "metadata": {"name": "fine", "namespace": "default"}})
        with pytest.raises(ApiError) as refused:
            await client.create(KINDS[0].resource, {**BROKEN, "metadata": {"name": "bad", "namespace": "default"}})

    assert 403 == refused.value.code
    assert ('admission webhook "validator.tfjob.training-operator.kubeflow.org" denied the request: spec.tfReplicaSpecs'
            "[Worker].template.spec.containers[0].image: Required value: must be required") in str(refused.value)
    assert orjson.dumps(BROKEN)      # the judge left it as it was
