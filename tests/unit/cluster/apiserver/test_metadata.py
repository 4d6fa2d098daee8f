"""What stands around an object: metadata that is half there, and an object that is sent to a place where it is not."""

import pytest
from tests.unit.cluster.apiserver.api import DEFINITIONS, JOBS, MAPS, Api, config_map, definition, job

from trainmaster.api.meta import Json, Object


def with_metadata(**more: Json) -> Object:
    made = job("t")
    return {**made, "metadata": {**made["metadata"], **more}}


@pytest.mark.parametrize(("meta", "code", "told"), [
    pytest.param({"labels": {"a": None}}, 201, {"a": ""}, id="a label without a value"),
    pytest.param({"annotations": {"a": None}}, 201, {"a": ""}, id="an annotation without a value"),
    pytest.param({"finalizers": [None]}, 422, 'metadata.finalizers: Invalid value: "": name part must be non-empty',
                 id="a finalizer without a name"),
    pytest.param({"finalizers": ["bare"]}, 201, ["bare"], id="a finalizer of one word"),
    pytest.param({"ownerReferences": [None]}, 422, "metadata.ownerReferences.kind", id="an owner that is nothing"),
])
async def test_of_a_custom_resource(api: Api, meta: Object, code: int, told: Json) -> None:
    await api.made(DEFINITIONS, definition())

    answer = await api.post(JOBS, with_metadata(**meta))

    assert code == answer.code, answer.body
    (field,) = meta
    if code < 400:
        assert told == answer.json["metadata"][field]
    else:
        assert told in answer.message


@pytest.mark.parametrize(("body", "query", "code", "told"), [
    pytest.param(config_map("t"), "", 404, 'configmaps "t" not found', id="nothing else is wrong"),
    pytest.param(config_map("b"), "", 400, "the name of the object (b) does not match the name on the URL (t)",
                 id="it has another name"),
    pytest.param({"metadata": {}}, "", 400, "the name of the object (t based on URL) was undeterminable: name must be "
                 "provided", id="it has no name"),
    pytest.param({"metadata": {"name": "t", "namespace": "other"}}, "", 400, "the namespace of the provided object "
                 "does not match the namespace sent on the request", id="it is of another namespace"),
    pytest.param({"metadata": {"name": "t", "labels": 5}}, "", 400, 'ConfigMap in version "v1" cannot be handled as a '
                 "ConfigMap: metadata.labels must be an object, not integer", id="it cannot be one"),
    pytest.param({**config_map("t"), "foo": 1}, "fieldValidation=Strict", 400, 'ConfigMap in version "v1" cannot be '
                 'handled as a ConfigMap: strict decoding error: unknown field "foo"', id="it has a field too many"),
])
async def test_to_replace_what_is_not_there(api: Api, body: Object, query: str, code: int, told: str) -> None:
    answer = await api.put(f"{MAPS}/t", body, query)

    assert (code, told) == (answer.code, answer.message)


async def test_a_revision_of_nought_is_any(api: Api) -> None:
    await api.made(MAPS, config_map("t"))
    await api.made(DEFINITIONS, definition())
    await api.made(JOBS, job("t"))

    plain = await api.put(f"{MAPS}/t", {"metadata": {"name": "t", "resourceVersion": "0"}})
    careful = await api.put(f"{JOBS}/t", with_metadata(resourceVersion="0"))

    assert (200, 422) == (plain.code, careful.code)
    assert careful.message.endswith("metadata.resourceVersion: Invalid value: 0: must be specified for an update")


async def test_one_object_is_not_watched_by_its_path(api: Api) -> None:
    made = await api.made(MAPS, config_map("t"))

    assert made == (await api.get(f"{MAPS}/t", "watch=true")).json


async def test_a_trial_must_be_called_one(api: Api) -> None:
    answer = await api.post(MAPS, config_map("t"), "dryRun=")

    assert (422, 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"') \
        == (answer.code, answer.message)
