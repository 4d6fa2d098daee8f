"""The cases of patches, asked of the real kube-apiserver: the recorded answers are its answers.

The embedded server is held against the record in the fast tier. RECORD=1 writes it anew, for another release or after
a change of the cases.
"""

import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

import orjson
import pytest
import yaml
from tests.kubernetes import clusters
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.waiting import until
from tests.unit.cluster.apiserver import patch_cases
from tests.unit.cluster.apiserver.patch_cases import Case, Send, Step

from trainmaster.api.meta import Object, name_of, namespace_of
from trainmaster.cluster.apiserver import builtin
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Request, Transport

pytestmark = pytest.mark.kubernetes

CASES = list(patch_cases.cases())
RECORDING = os.environ.get("RECORD") == "1"
# Every story is in the slice several times; all of them with FULL=1.
SLICE = CASES if RECORDING or os.environ.get("FULL") == "1" else CASES[:84]
BATCH = 42


@pytest.fixture
async def send(control_plane: ControlPlane) -> AsyncIterator[Send]:
    carrier = transport(load(control_plane.kubeconfig()))
    try:
        asking = sender(carrier)
        await patch_cases.prepare(asking)
        await served(asking)
        yield asking
    finally:
        await carrier.close()


def sender(carrier: Transport) -> Send:
    async def send(step: Step) -> tuple[int, Object]:
        body = b"" if step.body is None else json.dumps(step.body).encode()
        headers = {"accept": "application/json", "content-type": step.media}
        answer = await carrier.send(Request(step.method, step.path, parse_qsl(step.query), headers, body))
        found: Object = {"message": answer.body.decode()}
        if answer.body.startswith(b"{"):
            found = orjson.loads(answer.body)
        return answer.status, found

    return send


async def served(send: Send) -> None:
    """A real server takes a moment until it can apply objects of a new kind."""
    thing = {"apiVersion": "patches.example.com/v1", "kind": "Thing", "metadata": {"name": "first"}}
    path = f"/apis/patches.example.com/v1/namespaces/{patch_cases.NAMESPACE}/things/first"

    async def applied() -> bool:
        code, _answer = await send(Step("PATCH", path, "fieldManager=test", patch_cases.APPLY, thing))
        return code < 300

    await until(applied, "the kind of the cases is served")


@pytest.mark.parametrize("cases", [
    pytest.param(SLICE[start:start + BATCH], id=f"{start} to {start + BATCH - 1}")
    for start in range(0, len(SLICE), BATCH)])
async def test_the_record_is_what_the_real_server_answers(cases: Sequence[Case], send: Send) -> None:
    found = {case.number: await patch_cases.told(case, send) for case in cases}
    if RECORDING:
        known = patch_cases.recorded() if patch_cases.ANSWERS.exists() and cases[0].number else {}
        lines = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS).decode() for each in {**known, **found}.values()]
        patch_cases.ANSWERS.write_text("\n".join(lines) + "\n")
    expected = patch_cases.recorded()

    assert {case.number: expected[case.number] for case in cases} == found


MINIMAL: list[Object] = list(yaml.safe_load_all(Path(__file__).with_name("minimal.yaml").read_text()))
WRITERS = ("ann", "bob", "cy")


def shared(thing: Object) -> list[Step]:
    """Ann applies an object, Bob a label of it, Cy changes that and Ann wants only it."""
    found = (each.resource for each in builtin.served()[thing["apiVersion"]] if each.resource.kind == thing["kind"])
    resource, name = next(found), f"{name_of(thing)}-shared"
    path = resource.path((namespace_of(thing) or "default") if resource.namespaced else "", name)
    whole = {**thing, "metadata": {**thing["metadata"], "name": name}}
    label = {"apiVersion": thing["apiVersion"], "kind": thing["kind"], "metadata": {"name": name, "labels": {"n": "1"}}}
    change = {"metadata": {"labels": {"n": "2", "x": "1"}}}
    return [Step("PATCH", path, "fieldManager=ann", patch_cases.APPLY, whole),
            Step("PATCH", path, "fieldManager=bob", patch_cases.APPLY, label),
            Step("PATCH", path, "fieldManager=cy", patch_cases.MERGE, change),
            Step("PATCH", path, "fieldManager=ann", patch_cases.APPLY, label)]


@pytest.mark.parametrize("thing", [
    pytest.param(thing, id=f"{thing['apiVersion']} {thing['kind']} {name_of(thing)}") for thing in MINIMAL
    if thing["kind"] != "CustomResourceDefinition" and namespace_of(thing) in {"", "default"}])
async def test_objects_of_every_kind_are_owned_alike(
        thing: Object, control_plane: ControlPlane, embedded_server: clusters.Cluster) -> None:
    told = []
    async with connected(embedded_server.kubeconfig) as client:
        await clusters.without_token(client, "default", "builder")      # the account that a pod among them runs as
    for path in (control_plane.kubeconfig(), embedded_server.kubeconfig):
        carrier = transport(load(path))
        try:
            told.append([await owned(sender(carrier), step) for step in shared(thing)])
        finally:
            await carrier.close()

    assert told[0] == told[1]


async def owned(send: Send, step: Step) -> list[object]:
    """The code, and the entries of those who write here; on the embedded server, controllers may write too."""
    code, answer = await send(step)
    if code >= 300:
        return [code]
    entries = patch_cases.comparable(answer)["metadata"]["managedFields"]
    return [code, [entry for entry in entries if entry["manager"] in WRITERS]]
