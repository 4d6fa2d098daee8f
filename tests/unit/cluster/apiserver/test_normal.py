"""The form in which objects are stored: zeros, empty lists, canonical quantities, nulls in lists."""

from copy import deepcopy

import pytest

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, normal


@pytest.mark.parametrize(("text", "expected"), [
    ("0.5", "500m"), ("1000m", "1"), ("100000m", "100"), ("1000", "1k"), ("1500M", "1500M"), ("512", "512"),
    ("1.5Gi", "1536Mi"), ("1024Mi", "1Gi"), ("1000Ki", "1000Ki"), ("0.1Gi", "107374182400m"), ("0Gi", "0"), ("0", "0"),
    ("0.5Ki", "512"), ("1e3", "1e3"), ("12e6", "12e6"), ("1e-3", "1e-3"), ("1E", "1E"), ("1Ei", "1Ei"), ("-5", "-5"),
    ("-0.5", "-500m"), ("123456789012", "123456789012"), (2, "2"), (0.5, "500m"), ("lots", "lots"), (True, True),
])
def test_quantities_have_one_text(text: Json, expected: Json) -> None:
    assert expected == normal.canonical(text)


_TEMPLATE: Object = {"metadata": {}, "spec": {"containers": None}}


@pytest.mark.parametrize(("kind", "sent", "spec", "status"), [
    pytest.param("Deployment", {"paused": False, "minReadySeconds": 0},
                 {"selector": None, "strategy": {}, "template": _TEMPLATE}, {}, id="a zero that says nothing goes"),
    pytest.param("Deployment", {"replicas": 0},
                 {"replicas": 0, "selector": None, "strategy": {}, "template": _TEMPLATE}, {},
                 id="a zero stays where leaving it out means something else"),
    pytest.param("ReplicaSet", {}, {"selector": None, "template": _TEMPLATE}, {"replicas": 0},
                 id="counts are always told"),
])
def test_zeros(kind: str, sent: Object, spec: Object, status: Object) -> None:
    thing: Object = {"spec": sent}
    normal.settle("apps/v1", kind)(thing, None)

    assert {"metadata": {}, "spec": spec, "status": status} == thing


def test_empty_lists_fall_away() -> None:
    thing: Object = {"metadata": {"name": "p", "labels": {}}, "spec": {"containers": [
        {"name": "c", "args": [], "env": [{"name": "A", "value": ""}], "tty": False}], "volumes": []}}
    normal.settle("v1", "Pod")(thing, None)

    assert {"name": "p"} == thing["metadata"]
    assert [{"name": "c", "env": [{"name": "A"}], "resources": {}}] == thing["spec"]["containers"]
    assert "volumes" not in thing["spec"]


def test_twice_is_once() -> None:
    thing: Object = {"metadata": {}, "spec": {"hard": {"cpu": "0.5"}}}
    settle = normal.settle("v1", "ResourceQuota")
    settle(thing, None)
    once = repr(thing)
    settle(thing, None)

    assert once == repr(thing)


@pytest.mark.parametrize("sent", [
    pytest.param({"metadata": {"name": "p", "labels": {}}, "spec": {"containers": [{"name": "c", "args": []}]}},
                 id="a change in two places"),
    pytest.param({"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"nodeName": "", "containers": [
        {"name": "c", "resources": {"limits": {"cpu": "0.5"}}}]}}, id="a quantity, and a zero that was not there"),
    pytest.param({"metadata": {"name": "p"}, "spec": {"containers": None, "volumes": [{"name": "v"}]}},
                 id="a list that is null now"),
    pytest.param({"metadata": {"name": "p"}}, id="a part that is gone"),
])
def test_what_is_as_before_is_not_looked_at_again_and_comes_out_the_same(sent: Object) -> None:
    old: Object = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {}}], "volumes": [
        {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}, "status": {}}
    settle, whole, quick = normal.settle("v1", "Pod"), deepcopy(sent), deepcopy(sent)
    settle(old, None)
    settle(whole, None)
    settle(quick, old)

    assert whole == quick


@pytest.mark.parametrize(("spec", "expected"), [
    pytest.param({"containers": [None]}, {"containers": [{}]}, id="an object"),
    pytest.param({"containers": [{"args": [None, "x"]}]}, {"containers": [{"args": ["", "x"]}]}, id="text, deeper"),
    pytest.param({"nodeName": None}, {"nodeName": None}, id="a field is not an item"),
    pytest.param({"unknown": [None]}, {"unknown": [None]}, id="a field nobody knows"),
])
def test_a_null_in_a_list_is_a_zero(spec: Object, expected: Object) -> None:
    pod = builtin.shape_of("v1", "Pod")
    assert pod is not None

    assert {"spec": expected} == normal.without_holes({"spec": spec}, pod)
