"""What does not fit the type of an object, where it is, and what is left of it after pruning."""

import pytest

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, inspection
from trainmaster.cluster.apiserver.builtin import Type
from trainmaster.cluster.apiserver.inspection import MOST_FINDINGS, Findings


def shape(kind: str, api_version: str = "v1") -> Type:
    found = builtin.shape_of(api_version, kind)
    assert found is not None
    return found


POD = shape("Pod")
DEFINITION = shape("CustomResourceDefinition", "apiextensions.k8s.io/v1")


def pod(**spec: Json) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def definition(schema: Json) -> Object:
    return {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}


def at(path: str) -> str:
    return f"spec.versions[0].schema.openAPIV3Schema.{path}"


@pytest.mark.parametrize(("thing", "unknown"), [
    pytest.param(pod(containers=[{"name": "a"}]), [], id="all is known"),
    pytest.param({**pod(), "foo": 1}, ["foo"], id="at the top"),
    pytest.param(pod(foo=1, bar=2), ["spec.foo", "spec.bar"], id="in the order of the object"),
    pytest.param(pod(containers=[{}, {"bar": 1}]), ["spec.containers[1].bar"], id="in a list"),
    pytest.param(pod(containers=None, nodeSelector={"any": "thing"}), [], id="keys of maps are free"),
    pytest.param(pod(volumes=[{"emptyDir": {"foo": 1}}]), ["spec.volumes[0].emptyDir.foo"], id="where Go inlines"),
    pytest.param({"metadata": {"managedFields": [{"fieldsV1": {"f:spec": {}}}]}}, [], id="not in free JSON"),
])
def test_unknown_fields(thing: Object, unknown: list[str]) -> None:
    assert unknown == list(inspection.inspect(thing, POD).unknown)


@pytest.mark.parametrize(("schema", "unknown"), [
    pytest.param({"properties": {"a": {"odd": 1}}}, [at("properties.a.odd")], id="in a map of schemas"),
    pytest.param({"items": {"odd": 1}}, [], id="not in the items: Go does not look there"),
    pytest.param({"items": [{"odd": 1}]}, [], id="nor in a list of them"),
    pytest.param({"additionalProperties": {"odd": 1}}, [], id="nor in additional properties"),
    pytest.param({"default": {"odd": 1}, "enum": [{"odd": 1}]}, [], id="a default can be anything"),
])
def test_unknown_fields_of_schemas(schema: Object, unknown: list[str]) -> None:
    assert unknown == list(inspection.inspect(definition(schema), DEFINITION).unknown)


@pytest.mark.parametrize(("thing", "sentence"), [
    pytest.param([], "the object must be an object, not array", id="not even an object"),
    pytest.param({"spec": "x"}, "spec must be an object, not string", id="text for an object"),
    pytest.param(pod(containers={}), "spec.containers must be a list, not object", id="an object for a list"),
    pytest.param(pod(containers=["x"]), "spec.containers[0] must be an object, not string",
                 id="text in a list of objects"),
    pytest.param(pod(nodeSelector={"a": 1}), "spec.nodeSelector.a must be text, not integer", id="a number in a map"),
    pytest.param(pod(hostNetwork=1), "spec.hostNetwork must be true or false, not integer", id="a number for true"),
    pytest.param(pod(priority=True), "spec.priority must be a whole number of at most 32 bits, not boolean",
                 id="true for a number"),
    pytest.param(pod(priority=1 << 31), "spec.priority must be a whole number of at most 32 bits, not integer",
                 id="a number too big"),
    pytest.param(pod(containers=[{"resources": {"limits": {"cpu": "many"}}}]),
                 "spec.containers[0].resources.limits.cpu must be a quantity such as 500m or 2Gi, not string",
                 id="not a quantity"),
    pytest.param({"metadata": {"creationTimestamp": "now"}},
                 "metadata.creationTimestamp must be a moment such as 2006-01-02T15:04:05Z, not string",
                 id="not a moment"),
])
def test_wrong_types(thing: Json, sentence: str) -> None:
    assert [sentence] == [str(fault) for fault in inspection.inspect(thing, POD).faults]


@pytest.mark.parametrize("thing", [
    pytest.param({"spec": None, "metadata": None}, id="null for objects"),
    pytest.param(pod(containers=[None], nodeSelector={"a": None}), id="null in lists and maps"),
    pytest.param(pod(containers=[{"resources": {"limits": {"a": 1, "b": 0.5, "c": "1e3"}}}]),
                 id="numbers as quantities"),
    pytest.param(pod(containers=[{"livenessProbe": {"tcpSocket": {"port": "http"}, "httpGet": {"port": 80}}}]),
                 id="a port by name and by number"),
])
def test_right_types(thing: Object) -> None:
    assert Findings((), ()) == inspection.inspect(thing, POD)


@pytest.mark.parametrize(("schema", "sentences"), [
    pytest.param({"additionalProperties": True, "items": None}, [], id="true allows anything"),
    pytest.param({"additionalProperties": 1},
                 [f"{at('additionalProperties')} must be a schema, true or false, not integer"],
                 id="a number does not"),
    pytest.param({"items": {"maxLength": "x"}},
                 [f"{at('items.maxLength')} must be a whole number of at most 64 bits, not string"], id="inside items"),
    pytest.param({"dependencies": {"a": ["b", 1]}}, [f"{at('dependencies.a[1]')} must be text, not integer"],
                 id="names that are none"),
])
def test_wrong_types_in_schemas(schema: Object, sentences: list[str]) -> None:
    assert sentences == [str(fault) for fault in inspection.inspect(definition(schema), DEFINITION).faults]


@pytest.mark.parametrize(("thing", "left"), [
    pytest.param({**pod(foo=1), "bar": 1}, pod(), id="unknown fields go"),
    pytest.param(pod(containers=[{"name": "a", "x": 1}, None]), pod(containers=[{"name": "a"}, None]), id="in lists"),
    pytest.param(pod(nodeSelector={"a": "b"}), pod(nodeSelector={"a": "b"}), id="maps stay whole"),
    pytest.param(pod(containers="x"), pod(containers="x"), id="what is wrong stays"),
])
def test_pruning(thing: Object, left: Object) -> None:
    before = repr(thing)

    assert left == inspection.prune(thing, POD)
    assert before == repr(thing)


@pytest.mark.parametrize(("schema", "left"), [
    pytest.param({"items": {"odd": 1, "type": "string"}}, {"items": {"type": "string"}},
                 id="also where nobody reports"),
    pytest.param({"items": [{"odd": 1}]}, {"items": [{}]}, id="also in a list of schemas"),
    pytest.param({"properties": {"a": {"odd": 1}}}, {"properties": {"a": {}}}, id="in a map of schemas"),
    pytest.param({"additionalProperties": True}, {"additionalProperties": True}, id="true stays"),
    pytest.param({"default": {"odd": 1}}, {"default": {"odd": 1}}, id="free JSON stays whole"),
])
def test_pruning_of_schemas(schema: Object, left: Object) -> None:
    assert definition(left) == inspection.prune(definition(schema), DEFINITION)


def test_nobody_gets_a_thousand_complaints() -> None:
    found = inspection.inspect({**{f"x{at}": 1 for at in range(1000)}, "spec": {"containers": [1] * 1000}}, POD)

    assert (MOST_FINDINGS, MOST_FINDINGS) == (len(found.unknown), len(found.faults))
