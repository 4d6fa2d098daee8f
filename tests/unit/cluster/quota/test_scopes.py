"""Which objects a quota is about."""

import pytest

from trainmaster.api.core import CLAIMS, CONFIG_MAPS, PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.quota.scopes import covers

NEAR_OTHERS = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t"}]}}
ABROAD = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 1, "podAffinityTerm": {"topologyKey": "t", "namespaceSelector": {}}}]}}


def scoped(*names: str) -> Object:
    return {"spec": {"scopes": list(names)}}


def selecting(scope: str, operator: str, *values: str) -> Object:
    term: Object = {"scopeName": scope, "operator": operator, **({"values": list(values)} if values else {})}
    return {"spec": {"scopeSelector": {"matchExpressions": [term]}}}


def pod(quality: str = "Burstable", **spec: object) -> Object:
    return {"spec": spec, "status": {"qosClass": quality}}


@pytest.mark.parametrize(("quota", "thing", "expected"), [
    pytest.param({"spec": {}}, pod(), True, id="without a scope it is about everything"),
    pytest.param(scoped("Terminating"), pod(activeDeadlineSeconds=0), True, id="a pod with a deadline, even of zero"),
    pytest.param(scoped("Terminating"), pod(), False, id="a pod without one"),
    pytest.param(scoped("NotTerminating"), pod(), True, id="a pod that may stay"),
    pytest.param(scoped("NotTerminating"), pod(activeDeadlineSeconds=9), False, id="a pod that may not"),
    pytest.param(scoped("BestEffort"), pod("BestEffort"), True, id="a pod that asks for nothing"),
    pytest.param(scoped("BestEffort"), pod(), False, id="a pod that asks for something"),
    pytest.param(scoped("NotBestEffort"), pod("BestEffort"), False, id="a pod that asks for nothing, turned round"),
    pytest.param(scoped("NotBestEffort", "Terminating"), pod(), False, id="all scopes must fit"),
    pytest.param(scoped("PriorityClass"), pod(priorityClassName="high"), True, id="a pod with any priority class"),
    pytest.param(scoped("PriorityClass"), pod(), False, id="a pod without one has none to speak of"),
    pytest.param(selecting("PriorityClass", "In", "high"), pod(priorityClassName="high"), True, id="a class by name"),
    pytest.param(selecting("PriorityClass", "In", "high"), pod(priorityClassName="low"), False, id="another class"),
    pytest.param(selecting("PriorityClass", "NotIn", "high"), pod(), True, id="no class is not that one"),
    pytest.param(selecting("PriorityClass", "DoesNotExist"), pod(), True, id="no class at all"),
    pytest.param(scoped("CrossNamespacePodAffinity"), pod(affinity=ABROAD), True, id="a pod that looks abroad"),
    pytest.param(scoped("CrossNamespacePodAffinity"), pod(affinity=NEAR_OTHERS), False, id="one that stays at home"),
    pytest.param(scoped("CrossNamespacePodAffinity"), pod(), False, id="one that wants nobody near"),
    pytest.param(scoped("Unheard"), pod(), False, id="a scope that nobody knows has nothing in it"),
])
def test_pods_in_scope(quota: Object, thing: Object, expected: bool) -> None:
    assert expected is covers(quota, PODS, thing)


@pytest.mark.parametrize(("quota", "resource", "thing", "expected"), [
    pytest.param(scoped("Terminating"), CONFIG_MAPS, {}, False, id="scopes speak of pods alone"),
    pytest.param(scoped("NotTerminating"), CLAIMS, {}, False, id="also those that everything else would fit"),
    pytest.param(scoped("Terminating"), Resource("other.org", "v1", "pods", "Pod"),
                 {"spec": {"activeDeadlineSeconds": 1}}, False, id="and not of what others call a pod"),
    pytest.param({"spec": {}}, CONFIG_MAPS, {}, True, id="without a scope it is about these, too"),
    pytest.param(selecting("VolumeAttributesClass", "In", "gold"), CLAIMS,
                 {"spec": {"volumeAttributesClassName": "gold"}}, True, id="but one speaks of claims"),
    pytest.param(selecting("VolumeAttributesClass", "In", "gold"), CLAIMS, {"spec": {}}, False, id="of another class"),
    pytest.param(selecting("VolumeAttributesClass", "Exists"), PODS, pod(), False, id="and not of pods"),
])
def test_other_objects_in_scope(quota: Object, resource: Resource, thing: Object, expected: bool) -> None:
    assert expected is covers(quota, resource, thing)
