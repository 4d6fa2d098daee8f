"""A pod runs as an account that is there, and finds the account's token where clients look for it."""

import orjson
import pytest
from tests.unit.cluster.apiserver.api import PODS, STRATEGIC, Api, pod

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import account_admission
from trainmaster.cluster.apiserver.failures import Failure

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
NAME = "kube-api-access-bbbbb"
MOUNT = {"name": NAME, "readOnly": True, "mountPath": PLACE}
OWN = {"name": "own", "mountPath": PLACE}
MIRRORED = {"annotations": {"kubernetes.io/config.mirror": "1"}}


def admitted(account: Object | None, meta: Object | None = None, **spec: Json) -> Object:
    made: Object = {"metadata": {"name": "p", "namespace": "n", **(meta or {})},
                    "spec": {"containers": [{"name": "c"}], **spec}}
    account_admission.admit(made, account, lambda: "bbbbb")
    once = repr(made)
    account_admission.admit(made, account, lambda: "99999")
    assert once == repr(made), "a second time changes nothing"
    found: Object = made["spec"]
    return found


def test_the_volume_has_what_a_client_in_a_pod_needs() -> None:
    spec = admitted({}, volumes=[{"name": "own", "emptyDir": {}}])

    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    assert [{"name": "own", "emptyDir": {}}, {"name": NAME, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}}]}}] == spec["volumes"]
    assert ("default", "default") == (spec["serviceAccountName"], spec["serviceAccount"])


def test_every_container_mounts_it_but_those_that_have_something_there() -> None:
    spec = admitted({}, initContainers=[{"name": "i"}, {"name": "j", "volumeMounts": [OWN]}],
                    containers=[{"name": "c", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}])

    mounts = [each["volumeMounts"] for each in (*spec["initContainers"], *spec["containers"])]
    assert [[MOUNT], [OWN], [{"name": "d", "mountPath": "/d"}, MOUNT]] == mounts


@pytest.mark.parametrize(("account", "spec", "mounted"), [
    pytest.param({}, {}, True, id="nobody says anything"),
    pytest.param({"automountServiceAccountToken": False}, {}, False, id="the account says no"),
    pytest.param({}, {"automountServiceAccountToken": False}, False, id="the pod says no"),
    pytest.param({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True,
                 id="the pod says yes and the account no"),
    pytest.param({"automountServiceAccountToken": True}, {"automountServiceAccountToken": False}, False,
                 id="the pod says no and the account yes"),
    pytest.param({}, {"containers": [{"name": "c", "volumeMounts": [OWN]}]}, False, id="no container has room for it"),
])
def test_who_gets_the_volume(account: Object, spec: Object, mounted: bool) -> None:
    assert mounted == bool(admitted(account, **spec).get("volumes"))


def test_a_mirror_pod_stays_as_it_is() -> None:
    assert {"containers": [{"name": "c"}]} == admitted({}, MIRRORED)


VARIABLE = {"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "theirs", "key": "k"}}}]}
SEVERAL = {"envFrom": [{"secretRef": {"name": "theirs"}}]}
VOLUME = {"volumes": [{"name": "v", "secret": {"secretName": "theirs"}}]}
TOKEN = {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}
WHOSE = "is not allowed because service account a does not reference that"


@pytest.mark.parametrize(("spec", "why"), [
    pytest.param({"serviceAccountName": "x"}, "a mirror pod may not reference service accounts", id="an account"),
    pytest.param(VOLUME, "a mirror pod may not reference secrets", id="a secret"),
    pytest.param(TOKEN, "a mirror pod may not use ServiceAccountToken volume projections", id="a token"),
])
def test_what_a_mirror_pod_cannot_have(spec: Object, why: str) -> None:
    with pytest.raises(Failure, match=why):
        admitted(None, MIRRORED, **spec)


@pytest.mark.parametrize(("spec", "why"), [
    pytest.param(VOLUME, f'volume with secret.secretName="theirs" {WHOSE} secret', id="in a volume"),
    pytest.param({"containers": [{"name": "c", **VARIABLE}]},
                 f'container c with envVar E referencing secret.secretName="theirs" {WHOSE} secret',
                 id="in a variable"),
    pytest.param({"initContainers": [{"name": "i", **VARIABLE}]},
                 f'init container i with envVar E referencing secret.secretName="theirs" {WHOSE} secret',
                 id="in a variable at the beginning"),
    pytest.param({"containers": [{"name": "c", **SEVERAL}]},
                 f'container c with envFrom referencing secret.secretName="theirs" {WHOSE} secret',
                 id="in many variables"),
    pytest.param({"imagePullSecrets": [{"name": "pull"}, {"name": "theirs"}]},
                 f'imagePullSecrets[1].name="theirs" {WHOSE} imagePullSecret', id="for images"),
])
@pytest.mark.parametrize(("said", "enforced"), [
    pytest.param("true", True, id="the account insists"),
    pytest.param("yes", False, id="the account says what is no yes"),
    pytest.param(None, False, id="the account says nothing"),
])
def test_a_secret_that_the_account_does_not_have(spec: Object, why: str, said: str | None, enforced: bool) -> None:
    account = {"metadata": {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": said}},
               "secrets": [{"name": "own"}], "imagePullSecrets": [{"name": "pull"}]}
    theirs = orjson.dumps(spec).replace(b"theirs", b"own")
    if b"imagePullSecrets" not in theirs:
        admitted(account, **orjson.loads(theirs))
    if not enforced:
        admitted(account, **spec)
        return
    with pytest.raises(Failure) as refused:
        admitted(account, **spec)
    assert f'pods "p" is forbidden: {why}' == refused.value.message


async def test_a_container_that_comes_later_may_not_either(api: Api) -> None:
    await api.made(ACCOUNTS, {"metadata": {"name": "a", "annotations": {
        "kubernetes.io/enforce-mountable-secrets": "true"}}})
    await api.made(PODS, pod("p", serviceAccountName="a"))

    answer = await api.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [
        {"name": "e", "image": "i", **VARIABLE}]}}, STRATEGIC)

    why = f'ephemeral container e with envVar E referencing secret.secretName="theirs" {WHOSE} secret'
    assert (403, f'pods "p" is forbidden: {why}') == (answer.code, answer.message)


async def test_a_namespace_is_born_with_its_account(api: Api) -> None:
    await api.made("/api/v1/namespaces", {"metadata": {"name": "n"}})

    spec = (await api.made("/api/v1/namespaces/n/pods", pod("p")))["spec"]
    assert ("default", True) == (spec["serviceAccountName"], spec["volumes"][0]["name"].startswith("kube-api-access-"))
    assert 200 == (await api.delete("/api/v1/namespaces/n/serviceaccounts/default")).code
    refused = await api.post("/api/v1/namespaces/n/pods", pod("q"))
    assert 'pods "q" is forbidden: error looking up service account n/default: serviceaccount "default" not found' == \
        refused.message


@pytest.mark.parametrize(("own", "expected"), [
    pytest.param([], [{"name": "theirs"}], id="those of the account"),
    pytest.param([{"name": "mine"}], [{"name": "mine"}], id="its own, if it has some"),
])
def test_secrets_for_pulling(own: Json, expected: Json) -> None:
    assert expected == admitted({"imagePullSecrets": [{"name": "theirs"}]}, imagePullSecrets=own)["imagePullSecrets"]


def test_an_account_that_is_not_there() -> None:
    with pytest.raises(Failure) as refused:
        admitted(None, serviceAccountName="x")

    assert 403 == refused.value.code
    assert 'pods "p" is forbidden: error looking up service account n/x: serviceaccount "x" not found' == \
        refused.value.message


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
async def test_a_pod_is_refused_until_its_account_is_made(api: Api, field: str) -> None:
    answer = await api.post(PODS, pod("p", **{field: "robot"}))
    why = 'error looking up service account default/robot: serviceaccount "robot" not found'
    assert (403, f'pods "p" is forbidden: {why}') == (answer.code, answer.message)

    await api.made(ACCOUNTS, {"metadata": {"name": "robot"}})
    spec = (await api.made(PODS, pod("p", **{field: "robot"})))["spec"]
    assert ("robot", "robot") == (spec["serviceAccountName"], spec["serviceAccount"])
    assert spec["volumes"][0]["name"] == spec["containers"][0]["volumeMounts"][0]["name"]
    assert spec["volumes"][0]["name"].startswith("kube-api-access-")
