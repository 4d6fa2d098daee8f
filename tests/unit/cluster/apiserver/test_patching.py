"""Patches as functions: JSON patch, merge patch; and what makes a patch readable."""

import pytest

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import builtin, patching
from trainmaster.cluster.apiserver.failures import Failure


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
    pytest.param([{"op": "copy", "path": "/a/b"}], 422, id="no source and no target"),
    pytest.param([{"op": "remove", "path": "/z"}], 422, id="what is not there is removed"),
    pytest.param([{"op": "test", "path": "/z", "value": 1}], 422, id="what is not there is something"),
    pytest.param([{"op": "replace", "path": "/z/y", "value": 1}], 422, id="a field of what is not there"),
    pytest.param({"op": "add"}, 400, id="one operation without a list"),
    pytest.param([{"op": "add", "path": 7, "value": 1}], 400, id="a path that is a number"),
    pytest.param([7], 400, id="an operation that is a number"),
    pytest.param([{"op": "add", "path": "/l/x", "value": 1}], 422, id="a list index that is a word"),
    pytest.param([{"op": "remove", "path": "/l/99999999999999999999"}], 422, id="a list index far out"),
])
def test_hostile_json_patches(patch: Json, code: int) -> None:
    with pytest.raises(Failure) as raised:
        patching.json_patch({"x": "y" * 100_000, "l": [1]}, patch)

    assert code == raised.value.code


@pytest.mark.parametrize(("media", "custom", "code"), [
    pytest.param("application/json-patch+json", True, 0, id="a JSON patch of a custom object"),
    pytest.param("application/strategic-merge-patch+json", False, 0, id="a strategic one of a built-in object"),
    pytest.param("application/strategic-merge-patch+json", True, 415, id="but not of a custom one"),
    pytest.param("application/json", False, 415, id="no patch at all"),
])
def test_which_patches_are_taken(media: str, custom: bool, code: int) -> None:
    type_ = None if custom else builtin.shape_of("v1", "Pod")
    try:
        patching.read(b"{}", media, type_)
        found = 0
    except Failure as failure:
        found = failure.code

    assert code == found


def test_a_patch_can_be_applied_again() -> None:
    """The first result is changed by whoever asked for it; the second must not see that."""
    patch = patching.read(b'[{"op":"add","path":"/l","value":[]},{"op":"add","path":"/l/-","value":1}]',
                          patching.JSON_PATCH, None)
    patch.applied({})["l"].append(2)

    assert patch.applied({}) == {"l": [1]}


@pytest.mark.parametrize(("patch", "expected"), [
    pytest.param([{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}, id="a replacement adds"),
    pytest.param([{"op": "test", "path": "/b", "value": None}], {"a": 1}, id="a test finds null"),
    pytest.param([{"op": "copy", "from": "/b", "path": "/c"}], {"a": 1, "c": None}, id="a copy is null"),
    pytest.param([{"op": "add", "path": "/b"}], {"a": 1, "b": None}, id="no value is null"),
])
def test_json_patches_do_not_mind_what_is_not_there(patch: Json, expected: Json) -> None:
    assert expected == patching.json_patch({"a": 1}, patch)
