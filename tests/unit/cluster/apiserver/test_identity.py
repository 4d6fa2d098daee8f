"""What a body says it is, and the objects inside an object; answers as a kube-apiserver 1.36 gives them."""

import pytest
from tests.unit.cluster.apiserver.api import DEFINITIONS, JOBS, JSON_PATCH, MAPS, Api, config_map, definition, job

from trainmaster.api.meta import Json, Object


@pytest.fixture(autouse=True)
async def defined(api: Api) -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": {"type": "string"}}}
    kept = {**embedded, "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"one": embedded, "kept": kept}}
    await api.made(DEFINITIONS, definition(schema))


def without(thing: Object, *fields: str) -> Object:
    return {field: value for field, value in thing.items() if field not in fields}


@pytest.mark.parametrize(("body", "code", "said"), [
    pytest.param(without(job(), "kind"), 400,
                 "the object provided is unrecognized (must be of type TFJob): Object 'Kind' is missing in "
                 "'{\"apiVersion\":\"kubeflow.org/v1\",\"metadata\":{\"name\":\"mnist\"},\"spec\":{}}' "
                 "({\"apiVersion\":\"kubeflow.org/v1 ...)", id="no kind"),
    pytest.param(without(job(), "apiVersion"), 400,
                 "the API version in the data () does not match the expected API version (kubeflow.org/v1)",
                 id="no version"),
    pytest.param({**job(), "apiVersion": "kubeflow.org/v2"}, 400,
                 "the API version in the data (kubeflow.org/v2) does not match the expected API version "
                 "(kubeflow.org/v1)", id="another version"),
    pytest.param({**job(), "kind": "Bar"}, 422,
                 'Bar.kubeflow.org "mnist" is invalid: kind: Invalid value: "Bar": must be TFJob', id="another kind"),
])
async def test_a_custom_resource_says_what_it_is(api: Api, body: Object, code: int, said: str) -> None:
    answer = await api.post(JOBS, body)

    assert (code, said) == (answer.code, answer.message)


@pytest.mark.parametrize(("patch", "media", "code", "said"), [
    pytest.param({"kind": "Bar"}, "application/merge-patch+json", 422,
                 'Bar.kubeflow.org "mnist" is invalid: kind: Invalid value: "Bar": must be TFJob', id="another kind"),
    pytest.param({"apiVersion": "v9"}, "application/merge-patch+json", 422,
                 'TFJob "mnist" is invalid: apiVersion: Invalid value: "v9": must be kubeflow.org/v1',
                 id="another version"),
    pytest.param([{"op": "remove", "path": "/kind"}], JSON_PATCH, 422, "Object 'Kind' is missing in", id="no kind"),
    pytest.param({"metadata": None}, "application/merge-patch+json", 400,
                 "the name of the object (mnist based on URL) was undeterminable: name must be provided",
                 id="no metadata"),
])
async def test_a_patch_cannot_make_it_something_else(api: Api, patch: Json, media: str, code: int, said: str) -> None:
    await api.made(JOBS, job())
    answer = await api.patch(f"{JOBS}/mnist", patch, media)

    assert code == answer.code
    assert said in answer.message


async def test_a_built_in_kind_is_known_by_its_place(api: Api) -> None:
    assert 201 == (await api.post(MAPS, without(config_map("a"), "kind", "apiVersion"))).code


@pytest.mark.parametrize(("body", "said"), [
    pytest.param({"kind": "ConfigMap"},
                 "the name of the object (a based on URL) was undeterminable: name must be provided", id="no name"),
    pytest.param(config_map("b"), "the name of the object (b) does not match the name on the URL (a)",
                 id="another name"),
    pytest.param({"metadata": {"name": "a", "namespace": "x"}},
                 "the namespace of the provided object does not match the namespace sent on the request",
                 id="another namespace"),
])
async def test_a_replacement_is_for_the_object_it_names(api: Api, body: Object, said: str) -> None:
    await api.made(MAPS, config_map("a"))
    answer = await api.put(f"{MAPS}/a", body)

    assert (400, said) == (answer.code, answer.message)


POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize("field", [pytest.param("one", id="pruned"), pytest.param("kept", id="kept")])
async def test_unknown_metadata_of_an_embedded_object_is_dropped_and_told(api: Api, field: str) -> None:
    given = {**POD, "metadata": {"name": "e", "bogus": 1, "creationTimestamp": None}}
    answer = await api.post(JOBS, {**job(), "spec": {field: given}})
    strict = await api.post(JOBS, {**job("other"), "spec": {field: given}}, "fieldValidation=Strict")

    assert {"name": "e"} == answer.json["spec"][field]["metadata"]
    assert [f'299 - "unknown field \\"spec.{field}.metadata.bogus\\""'] == answer.warnings
    assert 400 == strict.code
    assert strict.message.endswith(f'strict decoding error: unknown field "spec.{field}.metadata.bogus"')


@pytest.mark.parametrize(("given", "code", "said"), [
    pytest.param({**POD, "metadata": {"name": 5}}, 400,
                 'spec.one.metadata: Invalid value: {"name":5}: spec.one.metadata.name must be text, not integer',
                 id="a name that is a number"),
    pytest.param({**POD, "metadata": "x"}, 400, 'spec.one.metadata: Invalid value: "x"', id="metadata that is text"),
    pytest.param({**POD, "kind": 1}, 400, "spec.one.kind: Invalid value: 1: must be a string", id="a kind of 1"),
    pytest.param({**POD, "metadata": {"labels": {"a b": "c"}}}, 422, 'spec.one.metadata.labels: Invalid value: "a b"',
                 id="a label that is none"),
    pytest.param({**POD, "apiVersion": "a/b/c"}, 422,
                 'spec.one.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                 id="a version of three parts"),
    pytest.param({**POD, "kind": "a b"}, 422,
                 'spec.one.kind: Invalid value: "a b": may have mixed case, but should otherwise match: a DNS-1035',
                 id="a kind that is no name"),
    pytest.param({"kind": "Pod"}, 422, "spec.one.apiVersion: Required value", id="no version"),
])
async def test_an_embedded_object_that_is_none(api: Api, given: Object, code: int, said: str) -> None:
    answer = await api.post(JOBS, job(one=given))

    assert code == answer.code
    assert said in answer.message


async def test_metadata_of_null_is_empty(api: Api) -> None:
    answer = await api.post(JOBS, job(one={**POD, "metadata": None}))

    assert {} == answer.json["spec"]["one"]["metadata"]
