"""Strategic merge: lists merged as the types say, and the directives."""

import copy

import pytest

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import builtin, strategic
from trainmaster.cluster.apiserver.failures import Failure

POD, META, CONTAINER = "api.core.v1.PodSpec", "apimachinery.pkg.apis.meta.v1.ObjectMeta", "api.core.v1.Container"
STATUS, SERVICE = "api.core.v1.PodStatus", "api.core.v1.ServiceSpec"
DEPLOYMENT = "api.apps.v1.DeploymentSpec"

A, B = {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "2"}
C = {"name": "c", "image": "3"}
TWO = {"containers": [A, B]}


@pytest.mark.parametrize(("type_name", "target", "patch", "expected"), [
    pytest.param(POD, TWO, {"containers": [{"name": "b", "image": "3"}]},
                 {"containers": [A, {"name": "b", "image": "3"}]}, id="items meet by their key"),
    pytest.param(POD, TWO, {"containers": [C]}, {"containers": [C, A, B]}, id="a new key goes before the others"),
    pytest.param(POD, TWO, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [B]},
                 id="an item is deleted by directive"),
    pytest.param(POD, TWO, {"containers": [{"$patch": "replace"}, {"name": "z"}]}, {"containers": [{"name": "z"}]},
                 id="the list is replaced by directive"),
    pytest.param(POD, TWO, {"containers": [{"name": "b", "$patch": "replace"}]}, {"containers": []},
                 id="also when the directive sits in an item"),
    pytest.param(POD, {"containers": [A]}, {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
                 {"containers": [{**A, "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}]},
                 id="lists inside items too"),
    pytest.param(CONTAINER, {"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}, id="plain lists are replaced"),
    pytest.param(POD, {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]},
                 id="lists of objects without a merge key are replaced"),
    pytest.param(META, {"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["b", "a"]},
                 id="finalizers are a set"),
    pytest.param(META, {"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]},
                 {"finalizers": ["b"]}, id="a value is taken out of a set"),
    pytest.param(META, {"labels": {"b": "1"}}, {"labels": {"$patch": "replace", "c": "2"}}, {"labels": {"c": "2"}},
                 id="a map is replaced"),
    pytest.param(META, {"labels": {"b": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}, id="a map is emptied"),
    pytest.param(META, {}, {"labels": {"$patch": "replace", "c": "2"}, "annotations": {"a": "1"}},
                 {"annotations": {"a": "1"}}, id="a directive that meets nothing takes its object along"),
    pytest.param(META, {"labels": {"b": "1", "c": "2"}}, {"labels": {"b": None}}, {"labels": {"c": "2"}},
                 id="null deletes a key"),
    pytest.param(DEPLOYMENT, {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
                 {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}, {"strategy": {"type": "Recreate"}},
                 id="other keys fall away"),
    pytest.param(POD, {"volumes": [{"name": "v", "emptyDir": {}}]},
                 {"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]},
                 {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, id="also in an item of a list"),
    pytest.param(SERVICE, {"ports": [{"port": 80, "protocol": "TCP"}]}, {"ports": [{"port": 81}]},
                 {"ports": [{"port": 81}, {"port": 80, "protocol": "TCP"}]}, id="ports of a service go by port"),
    pytest.param(CONTAINER, {"ports": [{"containerPort": 80, "name": "a"}]},
                 {"ports": [{"containerPort": 80, "name": "b"}]}, {"ports": [{"containerPort": 80, "name": "b"}]},
                 id="ports of a container go by containerPort"),
    pytest.param(STATUS, {"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]},
                 {"conditions": [{"type": "Ready", "status": "True"}]},
                 {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}]}, id="conditions go by type"),
    pytest.param(POD, {"nodeName": "a"}, {"noSuchField": [1], "other": {"x": None, "y": 1}},
                 {"nodeName": "a", "noSuchField": [1], "other": {"y": 1}}, id="what no type knows is plain JSON"),
])
def test_merging(type_name: str, target: Json, patch: Json, expected: Json) -> None:
    assert expected == strategic.merged(copy.deepcopy(target), copy.deepcopy(patch), builtin.type_named(type_name))


@pytest.mark.parametrize(("before", "order", "patch", "after"), [
    pytest.param("ab", "ba", "", "ba", id="the named ones in the named order"),
    pytest.param("abc", "ca", "", "bca", id="one that the client does not know stays before what it was before"),
    pytest.param("abx", "ba", "", "bax", id="or behind"),
    pytest.param("ax", "na", "n", "nax", id="a new one goes before those the client does not know"),
    pytest.param("", "ba", "ba", "ba", id="all new"),
])
def test_order(before: str, order: str, patch: str, after: str) -> None:
    target = {"containers": [{"name": sign} for sign in before]}
    sent = {"$setElementOrder/containers": [{"name": sign} for sign in order],
            "containers": [{"name": sign} for sign in patch]}
    found = strategic.merged(target, sent, builtin.type_named(POD))

    assert after == "".join(item["name"] for item in found["containers"])


@pytest.mark.parametrize(("patch", "code", "said"), [
    pytest.param({"containers": [{"image": "x"}]}, 500, "map: map[image:x] does not contain declared merge key: name",
                 id="no merge key"),
    pytest.param({"containers": ["x"]}, 500, "list element types are not identical", id="an item that is no object"),
    pytest.param({"$patch": "explode"}, 500, "unknown patch type: explode in map: map[$patch:explode]",
                 id="an unknown directive"),
    pytest.param({"$retainKeys": ["a"], "b": 1}, 400, "invalid patch format of retainKeys",
                 id="a key that is not retained"),
    pytest.param({"$setElementOrder/containers": "a"}, 500, "expected a []interface {}, but received a string",
                 id="an order that is no list"),
    pytest.param({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}, 500,
                 "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
                 id="an order without the item"),
    pytest.param({"$deleteFromPrimitiveList/args": 7}, 400, "primitive list", id="values to take out that are no list"),
])
def test_refused(patch: Json, code: int, said: str) -> None:
    """Codes and words are those of the real server, which did not foresee some of these."""
    with pytest.raises(Failure) as raised:
        strategic.merged({"containers": [{"name": "a"}]}, patch, builtin.type_named(POD))

    assert (code, True) == (raised.value.code, said in raised.value.message), raised.value.message
