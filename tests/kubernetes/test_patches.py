"""The cases of patches, asked of the real kube-apiserver: the recorded answers are its answers.

The embedded server is held against the record in the fast tier. RECORD=1 writes it anew, for another release or after
a change of the cases.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qsl

import orjson
import pytest
from tests.kubernetes.control_plane import ControlPlane
from tests.unit.cluster.apiserver import patch_cases
from tests.unit.cluster.apiserver.patch_cases import Case, Send, Step

from trainmaster.api.meta import Object
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
    for _ in range(100):
        code, _answer = await send(Step("PATCH", path, "fieldManager=test", patch_cases.APPLY, thing))
        if code < 300:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the kind of the cases is not served")


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
