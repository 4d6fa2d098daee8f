"""Accept and Content-Type: what clients send, and what they get."""

import pytest
import yaml
from tests.unit.cluster.apiserver.api import DEFINITIONS, JOBS, MAPS, Api, config_map, definition, job

from trainmaster.cluster.apiserver import negotiation
from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.negotiation import Form, Shape

PROTOBUF = "application/vnd.kubernetes.protobuf"
KUBECTL_GET = ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,"
               "application/json")
METADATA = (f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")


@pytest.mark.parametrize(("accept", "expected"), [
    pytest.param("", Form(), id="none at all"),
    pytest.param("application/json", Form(), id="JSON"),
    pytest.param("*/*", Form(), id="anything"),
    pytest.param("application/json, */*", Form(), id="JSON or anything"),
    pytest.param(f"{PROTOBUF},application/json", Form(), id="protobuf, else JSON"),
    pytest.param(f"{PROTOBUF}, */*", Form(), id="protobuf, else anything"),
    pytest.param("application/yaml", Form("application/yaml"), id="YAML"),
    pytest.param(KUBECTL_GET, Form(shape=Shape.TABLE), id="kubectl get"),
    pytest.param(METADATA, Form(shape=Shape.PARTIAL_LIST), id="the metadata client"),
    pytest.param("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form(shape=Shape.TABLE, version="v1beta1"),
                 id="an old table"),
    pytest.param("application/json;as=Thing;v=v1;g=meta.k8s.io, application/json", Form(), id="a shape nobody knows"),
    pytest.param("text/html;q=0.5, application/json;q=0.9", Form(), id="weights"),
])
def test_forms(accept: str, expected: Form) -> None:
    assert expected == negotiation.wanted(accept)


@pytest.mark.parametrize("accept", [
    pytest.param(PROTOBUF, id="protobuf alone"),
    pytest.param("application/*", id="half a wildcard, as on the real one"),
    pytest.param("text/html", id="a browser"),
    pytest.param("application/cbor", id="CBOR"),
    pytest.param("application/json;q=0", id="explicitly not"),
    pytest.param("application/json;as=Table;g=meta.k8s.io;v=v7", id="a table of the future"),
])
def test_what_cannot_be_made_is_not_acceptable(accept: str) -> None:
    with pytest.raises(Failure) as raised:
        negotiation.wanted(accept)

    assert (406, "NotAcceptable") == (raised.value.code, raised.value.reason)


@pytest.mark.parametrize(("media", "body", "code"), [
    pytest.param("application/json", b'{"metadata":{"name":"x"}}', 201, id="JSON"),
    pytest.param("application/json; charset=utf-8", b'{"metadata":{"name":"x"}}', 201, id="with a charset"),
    pytest.param("", b'{"metadata":{"name":"x"}}', 201, id="none: taken for JSON"),
    pytest.param("application/yaml", b"metadata: {name: x}\ndata: {a: 'yes'}\n", 201, id="YAML"),
    pytest.param("application/yaml", b"metadata: {name: x}\ndata: {a: yes}\n", 400, id="YAML 1.1: yes is true"),
    pytest.param("application/yaml", b"a: &a [x]\nb: [*a, *a]\n", 400, id="YAML with aliases"),
    pytest.param("application/yaml", b"a: [", 400, id="YAML that is none"),
    pytest.param("application/yaml", b"\xff\xfe", 400, id="bytes that are no text"),
    pytest.param(PROTOBUF, b"k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x05\n\x03\n\x01x", 201, id="protobuf"),
    pytest.param(PROTOBUF, b"k8s\x00\x12\x05\n\x03\n\x01x", 201, id="protobuf that names no kind"),
    pytest.param(PROTOBUF, b"k8s\x00\n\x0f\n\x02v9\x12\tConfigMap", 400, id="protobuf of a version nobody knows"),
    pytest.param(PROTOBUF, b"k8s\x00", 400, id="protobuf without content"),
    pytest.param(PROTOBUF, b'{"metadata":{"name":"x"}}', 400, id="JSON that says it is protobuf"),
    pytest.param("application/cbor", b"\xa0", 415, id="CBOR"),
    pytest.param("text/plain", b"{}", 415, id="text"),
    pytest.param("application/json", b'{"metadata":', 400, id="half a JSON"),
    pytest.param("application/json", b"", 400, id="no body"),
    pytest.param("application/json", b'{"a":' * 200 + b"1" + b"}" * 200, 400, id="very deep"),
    pytest.param("application/json", b'{"a":{},"b":' * 200 + b"{}" + b',"c":"{}"}' * 200, 400,
                 id="very deep, with much that is empty on the way"),
    pytest.param("application/json", b"[" * 100_000, 400, id="endless"),
    pytest.param("application/json", b'{"a":"' + b"x" * (3 << 20) + b'"}', 413, id="very large"),
    pytest.param("application/json", b'{"a":NaN}', 400, id="not a number"),
])
async def test_bodies(api: Api, media: str, body: bytes, code: int) -> None:
    answer = await api.send("POST", MAPS, body, media=media)

    assert code == answer.code, answer.body
    assert code < 400 or "Status" == answer.json["kind"]


async def test_answers_in_yaml(api: Api) -> None:
    await api.made(MAPS, config_map(a="1"))
    answer = await api.get(f"{MAPS}/m", accept="application/yaml")

    assert "application/yaml" == answer.headers["Content-Type"]
    assert {"a": "1"} == yaml.safe_load(answer.body)["data"]


async def test_custom_resources_have_no_protobuf(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(JOBS, job())

    assert 406 == (await api.get(JOBS, accept=PROTOBUF)).code
    assert 200 == (await api.get(JOBS, accept=f"{PROTOBUF},application/json")).code
