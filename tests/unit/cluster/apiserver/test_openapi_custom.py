"""Schemas of definitions as OpenAPI publishes them; the expected ones are a kube-apiserver's."""

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import openapi_custom

PRESERVE = "x-kubernetes-preserve-unknown-fields"
TEXT = {"type": "string"}


@pytest.mark.parametrize(("given", "expected"), [
    pytest.param({"type": "integer", "minimum": 1, "default": 2}, {"type": "integer", "minimum": 1}, id="no defaults"),
    pytest.param({**TEXT, "nullable": True, "enum": ["x"]}, {"enum": ["x"]}, id="what may be null is of any type"),
    pytest.param({"type": "object", PRESERVE: True, "properties": {"q": TEXT}}, {PRESERVE: True},
                 id="what keeps unknown fields is of any shape"),
    pytest.param({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, TEXT]},
                 {"x-kubernetes-int-or-string": True}, id="no combinations"),
    pytest.param({"type": "array", "items": {**TEXT, "default": "a"}}, {"type": "array", "items": TEXT},
                 id="also inside lists"),
    pytest.param({"type": "object", "additionalProperties": {**TEXT, "nullable": True}},
                 {"type": "object", "additionalProperties": {}}, id="also inside maps"),
])
def test_version_2_leaves_out_what_it_has_no_words_for(given: Object, expected: Object) -> None:
    schema = {"type": "object", "properties": {"spec": given}}

    assert expected == openapi_custom.published_2(schema, "#/definitions/")["properties"]["spec"]


def test_in_version_2_a_kind_that_takes_anything_is_just_an_object() -> None:
    assert {"type": "object"} == openapi_custom.published_2({"type": "object", PRESERVE: True, "description": "d"}, "#")


def test_version_3_says_all_of_it_and_what_every_object_has() -> None:
    spec = {"type": "integer", "default": 2, "nullable": True, "anyOf": [{"minimum": 1}]}
    found = openapi_custom.published({"type": "object", "properties": {"spec": spec}}, "#/components/schemas/")

    assert spec == found["properties"]["spec"]
    assert {"apiVersion", "kind", "metadata", "spec"} == set(found["properties"])
    assert [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}] == (
        found["properties"]["metadata"]["allOf"])


def test_an_object_inside_has_a_type_and_metadata_too() -> None:
    inside = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    found = openapi_custom.published({"type": "object", "properties": {"spec": inside}}, "#/")["properties"]["spec"]

    assert {"apiVersion", "kind", "metadata", "spec"} == set(found["properties"])
    assert ["apiVersion", "kind"] == found["required"]
