"""Patches as functions: JSON patch, merge patch, strategic merge."""

import copy

import pytest

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import patching
from trainmaster.cluster.apiserver.failures import Failure

TWO = {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "2"}]}


@pytest.mark.parametrize(("target", "patch", "expected"), [
    pytest.param({"a": 1, "b": 2}, {"b": None, "c": 3}, {"a": 1, "c": 3}, id="null removes, new is added"),
    pytest.param({"a": {"b": 1}}, {"a": {"c": {"d": None, "e": 1}}}, {"a": {"b": 1, "c": {"e": 1}}},
                 id="nulls in something new are dropped too"),
    pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
    pytest.param({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="an object replaces what is none"),
])
def test_merge_patch(target: Json, patch: Json, expected: Json) -> None:
    assert expected == patching.merge_patch(target, patch)


@pytest.mark.parametrize(("target", "patch", "expected"), [
    pytest.param(TWO, {"containers": [{"name": "b", "image": "3"}]},
                 {"containers": [TWO["containers"][0], {"name": "b", "image": "3"}]}, id="items meet by their key"),
    pytest.param(TWO, {"containers": [{"name": "c", "image": "3"}]},
                 {"containers": [*TWO["containers"], {"name": "c", "image": "3"}]}, id="a new key is appended"),
    pytest.param(TWO, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [TWO["containers"][1]]},
                 id="an item is deleted by directive"),
    pytest.param(TWO, {"containers": [{"$patch": "replace"}, {"name": "z"}]}, {"containers": [{"name": "z"}]},
                 id="the list is replaced by directive"),
    pytest.param({"containers": TWO["containers"][:1]},
                 {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
                 {"containers": [{"name": "a", "image": "1",
                                  "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]},
                 id="lists inside items too"),
    pytest.param({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}, id="plain lists are replaced"),
    pytest.param({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]},
                 id="lists of objects without a merge key are replaced"),
    pytest.param({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]},
                 id="finalizers are a set"),
    pytest.param({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]},
                 id="a value is taken out of a set"),
    pytest.param({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="an object is replaced"),
    pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {}, id="an object is deleted"),
    pytest.param({"s": {"type": "A", "a": 1}}, {"s": {"$retainKeys": ["type", "b"], "type": "B", "b": 2}},
                 {"s": {"type": "B", "b": 2}}, id="other keys fall away"),
    pytest.param(TWO, {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
                 {"containers": [TWO["containers"][1], TWO["containers"][0]]}, id="the order is set"),
    pytest.param({"ports": [{"port": 80, "protocol": "TCP"}]}, {"ports": [{"port": 81}]},
                 {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 81}]}, id="ports of a service go by port"),
    pytest.param({"ports": [{"containerPort": 80, "name": "a"}]}, {"ports": [{"containerPort": 80, "name": "b"}]},
                 {"ports": [{"containerPort": 80, "name": "b"}]}, id="ports of a container go by containerPort"),
    pytest.param({"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]},
                 {"conditions": [{"type": "Ready", "status": "True"}]},
                 {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}]}, id="conditions go by type"),
])
def test_strategic_merge(target: Json, patch: Json, expected: Json) -> None:
    assert expected == patching.strategic_patch(copy.deepcopy(target), patch)


def test_an_item_without_its_merge_key_is_refused() -> None:
    with pytest.raises(Failure) as raised:
        patching.strategic_patch({"containers": [{"name": "a"}]}, {"containers": [{"image": "x"}]})

    assert (400, True) == (raised.value.code, "merge key: name" in raised.value.message)


@pytest.mark.parametrize(("target", "patch", "expected"), [
    pytest.param({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}, id="add"),
    pytest.param({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}, id="append"),
    pytest.param({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}, id="replace"),
    pytest.param({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}, id="move"),
    pytest.param({"a~b/c": 1}, [{"op": "remove", "path": "/a~0b~1c"}], {}, id="escaped"),
    pytest.param({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}, id="test that holds"),
])
def test_json_patch(target: Json, patch: Json, expected: Json) -> None:
    assert expected == patching.json_patch(target, patch)


@pytest.mark.parametrize(("patch", "code"), [
    pytest.param([{"op": "copy", "from": "", "path": "/a"}] * 40, 413, id="copies that double each time"),
    pytest.param([{"op": "test", "path": "", "value": {}}] * 10_001, 413, id="too many operations"),
    pytest.param([{"op": "replace", "path": "", "value": 1}], 422, id="nothing left of the object"),
    pytest.param([{"op": "add", "path": "no slash", "value": 1}], 422, id="a pointer without a slash"),
    pytest.param([{"op": "add", "path": "/a"}], 400, id="no value"),
    pytest.param([{"op": "add", "path": 7, "value": 1}], 400, id="a path that is a number"),
    pytest.param([7], 400, id="an operation that is a number"),
    pytest.param([{"op": "add", "path": "/l/x", "value": 1}], 422, id="a list index that is a word"),
    pytest.param([{"op": "remove", "path": "/l/99999999999999999999"}], 422, id="a list index far out"),
])
def test_hostile_json_patches(patch: Json, code: int) -> None:
    with pytest.raises(Failure) as raised:
        patching.json_patch({"x": "y" * 100_000, "l": [1]}, patch)

    assert code == raised.value.code
