"""A thousand requests that are almost right, in process: none is answered above 499, none takes long, it serves on.

The many, over TLS and down to the bytes, are in the tier of faults.
"""

import time

import pytest
from tests.faults.apiserver_malformed import Malformed, excused, sound_objects
from tests.faults.seeds import seeded
from tests.unit.cluster.apiserver.api import DEFINITIONS, STRATEGIC, Api

from trainmaster.api.meta import Json
from trainmaster.api.schema import definitions
from trainmaster.kube.transport import Request, Response

REQUESTS = 1200
LONGEST = 1.0         # seconds of processor time: the machine may be busy with something else


async def prepared(api: Api) -> None:
    """A sound object of every kind is there, so that there is something to change."""
    for definition in definitions():
        await api.made(DEFINITIONS, definition)
    for sound in sound_objects():
        answer = await api.post(sound.collection, sound.thing)
        assert answer.code in {201, 409}, (sound.path, answer.body)


async def test_requests_that_are_almost_right(api: Api) -> None:
    await prepared(api)
    malformed = Malformed(seeded())
    refused = 0
    for number in range(REQUESTS):
        request = malformed.next()
        began = time.process_time()
        stream = await api.transport.open(request)
        took = time.process_time() - began
        if stream.status >= 400:
            answer = Response(stream.status, {}, b"".join([chunk async for chunk in stream.chunks()]))
            refused += 1
            assert answer.status < 500 or excused(answer), f"number {number}: {request} was answered {answer}"
        await stream.close()
        assert took < LONGEST, f"number {number}: {request} took {took} s"
    assert refused > REQUESTS / 3
    for sound in sound_objects():
        for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            listed = await api.transport.send(Request("GET", sound.collection, (), {"accept": accept}))
            assert 200 == listed.status, (sound.collection, listed.body)


VOLUME = {"metadata": {"name": "v"}, "spec": {
    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "",
    "hostPath": {"path": "/x"}}}
RANGE = {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}
RANGES = "/api/v1/namespaces/default/limitranges"


@pytest.mark.parametrize(("method", "path", "body", "code"), [
    pytest.param("DELETE", "/api/v1/namespaces/default", {"kind": {}}, 400, id="options of a kind that is no text"),
    pytest.param("POST", "/api/v1/persistentvolumes", VOLUME, 201, id="an empty reclaim policy is none"),
    pytest.param("PATCH", f"{RANGES}/r", {"metadata": {"$patch": {}}}, 500,
                 id="a directive that is not text"),
    pytest.param("PATCH", f"{RANGES}/r", {"spec": {"limits": [
        {"type": "Container", "maxLimitRequestRatio": {"cpu": None}}]}}, 200, id="a null inside a list of a patch"),
])
async def test_what_was_found_this_way(api: Api, method: str, path: str, body: Json, code: int) -> None:
    await api.made(RANGES, RANGE)
    media = STRATEGIC if method == "PATCH" else "application/json"

    assert code == (await api.send(method, path, body, media=media)).code
