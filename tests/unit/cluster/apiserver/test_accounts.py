"""Tokens of service accounts: whose they are, for whom, until when, and what ends them."""

from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from tests.unit.cluster.apiserver.api import PODS, Api, pod, serving

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.accounts import ISSUER, Accounts
from trainmaster.cluster.apiserver.auth import Identity

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN = f"{ACCOUNTS}/robot/token"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as made:
        await made.made(ACCOUNTS, {"metadata": {"name": "robot"}})
        yield made


async def token(api: Api, **spec: Any) -> str:
    return str((await api.made(TOKEN, {"spec": spec}))["status"]["token"])


async def whose(api: Api, given: str, *audiences: str) -> str:
    status = (await api.made(REVIEWS, {"spec": {"token": given, "audiences": list(audiences)}}))["status"]
    return str(status["user"].get("username") or status["error"])


ROBOT, NOBODY = "system:serviceaccount:default:robot", "invalid bearer token"


async def test_a_token_is_its_accounts_for_its_audience_until_its_end(api: Api) -> None:
    ours, theirs = await token(api), await token(api, audiences=["vault"], expirationSeconds=600)

    assert ROBOT == await whose(api, ours) == await whose(api, theirs, "vault") == await whose(api, ours, ISSUER, "x")
    assert NOBODY == await whose(api, theirs) == await whose(api, ours, "vault")
    await api.clock.advance(seconds=601)
    assert NOBODY == await whose(api, theirs, "vault")
    assert ROBOT == await whose(api, ours)
    await api.clock.advance(seconds=3000)
    assert NOBODY == await whose(api, ours)


async def test_the_token_that_every_pod_gets_outlives_the_hour_it_names(api: Api) -> None:
    ours, theirs = await token(api, expirationSeconds=3607), await token(api, expirationSeconds=3607, audiences=["v"])

    await api.clock.advance(seconds=4000)
    assert (ROBOT, NOBODY) == (await whose(api, ours), await whose(api, theirs, "v"))
    await api.clock.advance(seconds=365 * 24 * 3600 - 4000)
    assert NOBODY == await whose(api, ours)


async def test_it_ends_with_its_account_and_is_not_the_next_ones_of_the_name(api: Api) -> None:
    given = await token(api)
    assert ROBOT == await whose(api, given)

    await api.delete(f"{ACCOUNTS}/robot")
    assert NOBODY == await whose(api, given)
    await api.made(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert NOBODY == await whose(api, given)


async def test_it_ends_with_its_pod(api: Api) -> None:
    await api.made(PODS, pod("p", serviceAccountName="robot"))
    given = await token(api, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    status = (await api.made(REVIEWS, {"spec": {"token": given}}))["status"]
    assert ["p"] == status["user"]["extra"]["authentication.kubernetes.io/pod-name"]

    await api.delete(f"{PODS}/p", query="gracePeriodSeconds=0")
    assert NOBODY == await whose(api, given)


@pytest.mark.parametrize(("spec", "code"), [
    pytest.param({"expirationSeconds": 60}, 422, id="too short"),
    pytest.param({"expirationSeconds": 1 << 33}, 422, id="too long"),
    pytest.param({"boundObjectRef": {"kind": "Pod", "name": "nosuch"}}, 404, id="bound to a pod that is not there"),
    pytest.param({"boundObjectRef": {"kind": "Pod", "name": "other"}}, 400, id="bound to the pod of another account"),
    pytest.param({"boundObjectRef": {"kind": "Service", "name": "x"}}, 400, id="bound to what nothing can be bound to"),
])
async def test_requests_that_are_refused(api: Api, spec: dict[str, Any], code: int) -> None:
    await api.made(PODS, pod("other"))

    assert code == (await api.post(TOKEN, {"spec": spec})).code
    assert 404 == (await api.post(f"{ACCOUNTS}/nosuch/token", {"spec": {}})).code


async def test_what_others_signed_or_nobody_did_is_worthless(api: Api) -> None:
    claims = jwt.decode(await token(api), options={"verify_signature": False})
    other = Accounts(api.store, api.clock)

    for forged in (other.request("default", "robot", {})["status"]["token"], jwt.encode(claims, "", "none"),
                   jwt.encode(claims, "x" * 32, "HS256"), "a.b.c", "x", "é"):
        assert NOBODY == await whose(api, forged)


async def test_others_can_verify_them(api: Api) -> None:
    keys = jwt.PyJWKSet.from_dict((await api.get("/openid/v1/jwks")).json)
    given = await token(api)
    found = (await api.get("/.well-known/openid-configuration")).json

    key = keys[jwt.get_unverified_header(given)["kid"]]
    claims = jwt.decode(given, key, ["ES256"], issuer=found["issuer"], audience=ISSUER, options={
        "verify_exp": False, "verify_nbf": False, "verify_iat": False})
    assert ROBOT == claims["sub"]


@pytest.mark.parametrize("spec", [
    pytest.param("all", id="words"),
    pytest.param({"expirationSeconds": "soon"}, id="a time in words"),
    pytest.param({"audiences": 3}, id="audiences that are no list"),
    pytest.param({"boundObjectRef": "p"}, id="bound to a word"),
    pytest.param({"boundObjectRef": {"kind": ["Pod"]}}, id="bound to several kinds"),
])
async def test_a_request_for_a_token_that_cannot_be_read_is_refused(api: Api, spec: Json) -> None:
    assert 400 == (await api.post(TOKEN, {"spec": spec})).code


@pytest.mark.parametrize(("audiences", "status"), [
    pytest.param([], {"authenticated": True, "user": {"username": "ann"}}, id="whoever asks"),
    pytest.param([ISSUER, "vault"], {"authenticated": True, "user": {"username": "ann"}, "audiences": [ISSUER]},
                 id="this server among others"),
    pytest.param(["vault"], {"user": {}, "error": "invalid bearer token"}, id="somebody else"),
])
async def test_a_token_that_was_given_out_is_for_this_server_alone(
        api: Api, audiences: list[str], status: Object) -> None:
    api.server.recognise(lambda header: Identity("ann", ()) if header == "Bearer t" else None)

    assert status == (await api.made(REVIEWS, {"spec": {"token": "t", "audiences": audiences}}))["status"]
