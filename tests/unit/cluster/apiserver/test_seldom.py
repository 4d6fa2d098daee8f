"""Kinds on which nothing acts: kept, completed, and not believed in what only a server can know."""

import base64

from tests.unit.cluster.apiserver.api import TABLE, Api

from trainmaster.api.meta import Object

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def request(**spec: str) -> Object:
    wanted = {"request": base64.b64encode(b"pem").decode(), "signerName": "example.com/s", "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": {**wanted, **spec}}


async def test_nobody_says_himself_who_asks_for_a_certificate(api: Api) -> None:
    made = await api.made(REQUESTS, request(username="system:admin"))

    assert "username" not in made["spec"]


async def test_a_certificate_is_approved_apart(api: Api) -> None:
    made = await api.made(REQUESTS, request())
    said = {"type": "Approved", "status": "True", "reason": "ByMe", "message": "yes"}
    answer = await api.put(f"{REQUESTS}/r/approval", {**made, "status": {"conditions": [said]}})
    found = (await api.get(f"{REQUESTS}/r", accept=TABLE)).json["rows"][0]["cells"]

    assert (200, "Approved") == (answer.code, found[-1])


async def test_a_level_of_priority_has_shares(api: Api) -> None:
    made = await api.made("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
                          {"metadata": {"name": "l"}, "spec": {"type": "Limited"}})

    assert {"nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": {"type": "Reject"}} == \
        made["spec"]["limited"]
