"""`fieldValidation`: fields nobody knows and keys that come twice are refused, warned about or dropped in silence."""

import pytest
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    JSON_PATCH,
    MAPS,
    MERGE,
    PODS,
    STRATEGIC,
    Api,
    config_map,
    definition,
    pod,
)

from trainmaster.api.meta import Json

POD_WITH = (b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"%b},'
            b'"spec":{"containers":[{"name":"c","image":"i"%b}]%b}}')
KNOWN = {"type": "object", "properties": {"replicas": {"type": "integer"}, "paused": {"type": "boolean"}}}
JOB_WITH = b'{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"j"%b},"spec":{"replicas":1%b}}'

ROWS = [
    pytest.param(PODS, POD_WITH % (b"", b"", b',"foo":1'), ['unknown field "spec.foo"'], id="unknown in the spec"),
    pytest.param(PODS, POD_WITH % (b"", b',"odd":{"a":1}', b',"foo":1'),
                 ['unknown field "spec.containers[0].odd"', 'unknown field "spec.foo"'],
                 id="in the order of the document"),
    pytest.param(PODS, POD_WITH % (b',"odd":1', b"", b""), ['unknown field "metadata.odd"'], id="unknown in metadata"),
    pytest.param(PODS, POD_WITH % (b"", b"", b',"nodeName":"a","nodeName":"b"'), ['duplicate field "spec.nodeName"'],
                 id="twice"),
    pytest.param(PODS, POD_WITH % (b"", b"", b',"foo":1,"nodeName":"a","nodeName":"b"'),
                 ['unknown field "spec.foo"', 'duplicate field "spec.nodeName"'], id="both"),
    pytest.param(PODS, POD_WITH % (b"", b"", b',"foo":1,"foo":{"a":1,"a":2}'), ['unknown field "spec.foo"'],
                 id="unknown and twice is unknown only"),
    pytest.param(PODS, POD_WITH % (b',"labels":{"a":"1","a":"2"}', b"", b""), ['duplicate field "metadata.labels.a"'],
                 id="twice in a map"),
    pytest.param(PODS, POD_WITH % (b',"labels":{"a":"1","a":"2","a":"3"}', b"", b""),
                 ['duplicate field "metadata.labels.a"'], id="three times is said once"),
    pytest.param(PODS, POD_WITH % (b',"annotations":{"a":"\\u003a","a":"\\u003a:"}', b"", b""),
                 ['duplicate field "metadata.annotations.a"'], id="colons in disguise"),
    pytest.param(JOBS, JOB_WITH % (b"", b',"b":1,"a":2,"replicas":3'),
                 ['duplicate field "spec.replicas"', 'unknown field "spec.a"', 'unknown field "spec.b"'],
                 id="a custom object: repeats first, then the unknown by name"),
    pytest.param(JOBS, JOB_WITH % (b"", b',"b":1,"b":2'), ['duplicate field "spec.b"', 'unknown field "spec.b"'],
                 id="there, a field can be both"),
    pytest.param(JOBS, JOB_WITH % (b',"odd":1', b""), ['unknown field "metadata.odd"'],
                 id="unknown in the metadata of a custom object"),
]


@pytest.fixture(autouse=True)
async def jobs(api: Api) -> None:
    await api.made(DEFINITIONS, definition(KNOWN))


@pytest.mark.parametrize(("path", "body", "said"), ROWS)
async def test_strict(api: Api, path: str, body: bytes, said: list[str]) -> None:
    answer = await api.post(path, body, "fieldValidation=Strict")

    kind = "Pod" if path == PODS else "TFJob"
    expected = f'{kind} in version "v1" cannot be handled as a {kind}: strict decoding error: {", ".join(said)}'
    assert (400, "BadRequest", expected) == (answer.code, answer.json["reason"], answer.message)


@pytest.mark.parametrize(("path", "body", "said"), ROWS)
async def test_warnings(api: Api, path: str, body: bytes, said: list[str]) -> None:
    answer = await api.post(path, body)

    escaped = [text.replace('"', '\\"') for text in said]
    assert (201, [f'299 - "{text}"' for text in escaped]) == (answer.code, answer.warnings)
    assert "foo" not in answer.json["spec"]


@pytest.mark.parametrize(("path", "body", "said"), ROWS)
async def test_ignored(api: Api, path: str, body: bytes, said: list[str]) -> None:
    answer = await api.post(path, body, "fieldValidation=Ignore")

    assert (201, []) == (answer.code, answer.warnings), said


async def test_warnings_come_with_a_refusal_too(api: Api) -> None:
    body = POD_WITH % (b"", b"", b',"foo":1,"restartPolicy":"Sometimes"')
    made = await api.send("POST", PODS, body)
    await api.post(PODS, pod())
    patch = b'{"metadata":{"odd":1},"spec":{"restartPolicy":"Sometimes"}}'
    changed = await api.send("PATCH", f"{PODS}/p", patch, media=MERGE)

    assert (422, ['299 - "unknown field \\"spec.foo\\""']) == (made.code, made.warnings)
    assert (422, ['299 - "unknown field \\"metadata.odd\\""']) == (changed.code, changed.warnings)


async def test_yaml_names_lines(api: Api) -> None:
    body = b"metadata:\n  name: m\n  odd: 1\ndata: {a: '1', a: '2'}\nmore: 1\n"
    answer = await api.post(MAPS, body, "fieldValidation=Strict", media="application/yaml")

    assert answer.message.endswith('strict decoding error: yaml: unmarshal errors:\n'
                                   '  line 4: key "a" already set in map, '
                                   'unknown field "metadata.odd", unknown field "more"')


@pytest.mark.parametrize(("media", "patch", "said"), [
    pytest.param(MERGE, b'{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"', id="a merge patch with a key twice"),
    pytest.param(MERGE, b'{"foo":1}', 'unknown field "foo"', id="a merge patch with an unknown field"),
    pytest.param(STRATEGIC, b'{"metadata":{"foo":[1]}}', 'unknown field "metadata.foo"', id="a strategic one"),
    pytest.param(JSON_PATCH, b'[{"op":"add","path":"/foo","value":1}]', 'unknown field "foo"', id="a JSON patch"),
    pytest.param(JSON_PATCH, b'[{"op":"add","path":"/foo","value":1,"value":2,"x":1}]',
                 'json patch duplicate field "[0].value", json patch unknown field "[0].x", unknown field "foo"',
                 id="a JSON patch that is odd itself"),
    pytest.param(MERGE, b'{"z":1,"b":1,"data":{"a":"1","a":"2"}}',
                 'duplicate field "data.a", unknown field "b", unknown field "z"', id="unknown fields by name"),
])
async def test_patches(api: Api, media: str, patch: bytes, said: str) -> None:
    await api.made(MAPS, config_map(a="1"))
    answer = await api.patch(f"{MAPS}/m", patch, media, "fieldValidation=Strict")

    assert (422, True) == (answer.code, answer.message.endswith(f"strict decoding error: {said}")), answer.message
    assert answer.message.startswith(' "" is invalid: patch: Invalid value: ')


@pytest.mark.parametrize("thing", [
    pytest.param({"metadata": {"name": "s"}, "data": {"a": "not base64!"}}, id="bytes that are not encoded"),
    pytest.param({"metadata": {"name": "s", "creationTimestamp": "yesterday"}}, id="a moment that is none"),
    pytest.param({"metadata": {"name": 7}}, id="a name that is a number"),
    pytest.param({"metadata": {"name": "s"}, "immutable": "yes"}, id="text for a truth value"),
    pytest.param({"metadata": []}, id="metadata that are a list"),
])
async def test_wrong_types_are_refused_whatever_was_asked(api: Api, thing: Json) -> None:
    answer = await api.post("/api/v1/namespaces/default/secrets", thing, "fieldValidation=Ignore")

    assert 400 == answer.code
    assert answer.message.startswith('Secret in version "v1" cannot be handled as a Secret: ')


async def test_what_is_dropped_is_not_stored(api: Api) -> None:
    await api.made(PODS, pod(foo={"bar": 1}))

    assert "foo" not in (await api.get(f"{PODS}/p")).json["spec"]
