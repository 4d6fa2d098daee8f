"""Which claim is behind a volume of a pod."""

import pytest

from trainmaster.api.claims import claims_of, foreign
from trainmaster.api.meta import Object


def pod(*volumes: Object) -> Object:
    return {"metadata": {"namespace": "train", "name": "p", "uid": "1"}, "spec": {"volumes": list(volumes)}}


@pytest.mark.parametrize(("expected", "found"), [
    pytest.param(["data"], pod({"name": "v", "persistentVolumeClaim": {"claimName": "data"}}), id="one that it names"),
    pytest.param(["p-v"], pod({"name": "v", "ephemeral": {}}), id="one that is made for it, named after both"),
    pytest.param([], pod({"name": "v", "emptyDir": {}}), id="a volume that needs none"),
    pytest.param([], {"metadata": {"name": "p"}, "spec": {"volumes": None}}, id="no volume"),
    pytest.param(["b", "p-v"], pod({"name": "w", "persistentVolumeClaim": {"claimName": "b"}},
                                   {"name": "x", "configMap": {"name": "c"}}, {"name": "v", "ephemeral": {}}),
                 id="of several, in their order"),
])
def test_the_claims_of_a_pod(expected: list[str], found: Object) -> None:
    assert expected == claims_of(found)


@pytest.mark.parametrize(("owners", "ours"), [
    pytest.param([{"uid": "1", "controller": True}], True, id="its controller is the pod"),
    pytest.param([{"uid": "2", "controller": True}], False, id="its controller was an earlier pod of that name"),
    pytest.param([{"uid": "1"}], False, id="the pod is an owner, but not its controller"),
    pytest.param([], False, id="somebody made it by hand"),
])
def test_a_claim_of_the_right_name_may_be_somebody_elses(owners: list[Object], ours: bool) -> None:
    claim = {"metadata": {"namespace": "train", "name": "p-v", "ownerReferences": owners}}
    refusal = "PVC train/p-v was not created for pod train/p (pod is not owner)"

    assert ("" if ours else refusal) == foreign(pod(), claim)
