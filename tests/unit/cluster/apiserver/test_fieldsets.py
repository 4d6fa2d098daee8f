"""Sets of fields behave as sets of paths do, and are written as Kubernetes writes them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import fieldsets
from trainmaster.cluster.apiserver.fieldsets import FieldSet

Path = tuple[str, ...]

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.frozensets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=8)


def tree(paths: frozenset[Path]) -> FieldSet:
    found: FieldSet = {}
    for path in paths:
        found = fieldsets.union(found, fieldsets.only(path))
    return found


def members(one: FieldSet, before: Path = ()) -> Iterator[Path]:
    for key, below in one.items():
        if key != fieldsets.SELF:
            if fieldsets.is_member(below):
                yield (*before, key)
            yield from members(below, (*before, key))


def as_paths(one: FieldSet) -> frozenset[Path]:
    return frozenset(members(one))


@given(PATHS)
def test_a_set_holds_what_was_put_into_it(paths: frozenset[Path]) -> None:
    assert paths == as_paths(tree(paths))


@given(PATHS, PATHS)
def test_operations_are_those_of_sets_of_paths(one: frozenset[Path], other: frozenset[Path]) -> None:
    left, right = tree(one), tree(other)
    kept = {path for path in one if not any(path[:size] in other for size in range(1, len(path) + 1))}

    assert one | other == as_paths(fieldsets.union(left, right))
    assert one & other == as_paths(fieldsets.intersection(left, right))
    assert one - other == as_paths(fieldsets.difference(left, right))
    assert kept == as_paths(fieldsets.pruned(left, right))
    assert (one, other) == (as_paths(left), as_paths(right)), "sets are never changed"


@given(PATHS, PATHS)
def test_a_set_has_one_form(one: frozenset[Path], other: frozenset[Path]) -> None:
    assert tree(one | other) == fieldsets.union(tree(one), tree(other))
    assert tree(one - other) == fieldsets.difference(tree(one), tree(other))
    assert tree(one & other) == fieldsets.intersection(tree(one), tree(other))
    assert tree(one) == fieldsets.read(tree(one))


@pytest.mark.parametrize(("sent", "expected"), [
    pytest.param(None, {}, id="nothing is the empty set"),
    pytest.param({"f:a": {".": {}}}, {"f:a": {}}, id="a path that says it is a member, and has nothing below it"),
    pytest.param({'k:{"b":1, "a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}, id="the keys of an item are put in order"),
    pytest.param({"x:new": {"f:a": {}}}, {}, id="a kind of step that nobody knows yet is left out"),
])
def test_what_a_client_sends_is_read(sent: Json, expected: FieldSet) -> None:
    assert expected == fieldsets.read(sent)


@pytest.mark.parametrize("sent", [
    pytest.param(["f:a"], id="a list"),
    pytest.param({"f:a": 1}, id="a number below a path"),
    pytest.param({"spec": {}}, id="no colon"),
    pytest.param({"k:nonsense": {}}, id="keys that are not JSON"),
    pytest.param({"k:1": {}}, id="keys that are no object"),
])
def test_what_is_no_set_is_told(sent: Json) -> None:
    with pytest.raises(fieldsets.Malformed):
        fieldsets.read(sent)


def test_paths_are_printed_members_first_and_items_in_order() -> None:
    ports: FieldSet = {"f:ports": {key: {".": {}, "f:name": {}} for key in (
        'k:{"port":443,"protocol":"TCP"}', 'k:{"port":80,"protocol":"TCP"}')}}

    found = fieldsets.paths({"f:spec": {**ports, "f:type": {}}, "f:data": {}, "f:set": {'v:"b"': {}, 'v:"a"': {}}})

    assert list(found) == [
        ".data", '.set[="a"]', '.set[="b"]', ".spec.type", '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=443,protocol="TCP"]', '.spec.ports[port=80,protocol="TCP"].name',
        '.spec.ports[port=443,protocol="TCP"].name']
