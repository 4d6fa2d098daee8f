"""What clients ask first: groups, versions, resources, OpenAPI, version, health."""

import re
from email.utils import parsedate_to_datetime

import orjson
import pytest
from tests.unit.cluster.apiserver.api import DEFINITIONS, MAPS, NAMESPACES, Api, definition

from trainmaster.cluster.apiserver.catalog import version_rank

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(("path", "kind"), [
    ("/api", "APIVersions"), ("/apis", "APIGroupList"), ("/api/v1", "APIResourceList"),
    ("/apis/coordination.k8s.io", "APIGroup"), ("/apis/coordination.k8s.io/v1", "APIResourceList"),
])
async def test_the_documents_of_plain_discovery(api: Api, path: str, kind: str, slash: str) -> None:
    assert kind == (await api.get(path + slash)).json["kind"]


async def test_resources_tell_verbs_short_names_and_parts(api: Api) -> None:
    found = {each["name"]: each for each in (await api.get("/api/v1")).json["resources"]}

    assert found["pods"] == {
        "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "shortNames": ["po"],
        "categories": ["all"],
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]}
    assert found["pods/eviction"] == {
        "name": "pods/eviction", "singularName": "", "namespaced": True, "kind": "Eviction", "group": "policy",
        "version": "v1", "verbs": ["create"]}
    assert {"pods/status", "pods/log", "pods/binding", "bindings", "namespaces/finalize"} <= found.keys()


async def test_a_definition_shows_up_at_once(api: Api) -> None:
    before = (await api.get("/apis", accept=V2)).json
    await api.made(DEFINITIONS, definition(subresources={"status": {}, "scale": {
        "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}))
    after = (await api.get("/apis", accept=V2)).json
    new = next(each for each in after["items"] if each["metadata"]["name"] == "kubeflow.org")

    assert "kubeflow.org" not in [each["metadata"]["name"] for each in before["items"]]
    assert new["versions"][0]["resources"] == [{
        "resource": "tfjobs", "responseKind": {"group": "kubeflow.org", "version": "v1", "kind": "TFJob"},
        "scope": "Namespaced", "singularResource": "tfjob",
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        "subresources": [
            {"subresource": "scale", "verbs": ["get", "patch", "update"],
             "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}},
            {"subresource": "status", "verbs": ["get", "patch", "update"],
             "responseKind": {"group": "kubeflow.org", "version": "v1", "kind": "TFJob"}}]}]


async def test_groups_that_share_names_come_in_a_set_order(api: Api) -> None:
    for group in ("batch.volcano.sh", "aaa.org", "scheduling.volcano.sh", "kubeflow.org"):
        await api.made(DEFINITIONS, definition(group=group))

    found = [each["name"] for each in (await api.get("/apis")).json["groups"]]

    assert found[-4:] == ["kubeflow.org", "scheduling.volcano.sh", "aaa.org", "batch.volcano.sh"]
    assert found.index("batch") < found.index("kubeflow.org"), "those of Kubernetes itself come first"


def test_the_preferred_version_is_the_most_stable_and_newest() -> None:
    assert ["v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo"] == sorted(
        ["foo", "v1alpha1", "v1beta1", "v1", "v2beta1", "v2", "v1beta2"], key=version_rank)


@pytest.mark.parametrize(("accept", "version"), [
    pytest.param(f"{V2},{V2BETA1},application/json", "v2", id="a new client"),
    pytest.param(f"{V2BETA1},application/json", "v2beta1", id="a client of 1.27"),
    pytest.param("application/json", "", id="plain JSON"),
    pytest.param(f"application/json,{V2}", "", id="plain JSON first"),
    pytest.param("*/*", "", id="anything"),
])
async def test_the_accept_header_decides(api: Api, accept: str, version: str) -> None:
    answer = await api.get("/apis", accept=accept)

    assert answer.headers["Vary"] == "Accept"
    if version:
        assert f"apidiscovery.k8s.io/{version}" == answer.json["apiVersion"]
        assert answer.headers["Content-Type"] == (
            f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    else:
        assert "APIGroupList" == answer.json["kind"]


@pytest.mark.parametrize(("path", "accept"), [("/apis", V2), ("/openapi/v2", "*/*"), ("/openapi/v3/api/v1", "*/*")])
async def test_what_did_not_change_is_not_sent_again(api: Api, path: str, accept: str) -> None:
    first = await api.get(path, accept=accept)
    again = await api.get(path, accept=accept, headers={"if-none-match": first.headers["ETag"]})
    await api.made(DEFINITIONS, definition())
    later = await api.get(path, accept=accept, headers={"if-none-match": first.headers["ETag"]})

    assert (304, b"") == (again.code, again.body)
    assert parsedate_to_datetime(again.headers["Last-Modified"])
    assert path.endswith("/api/v1") or later.code == 200


@pytest.mark.parametrize(("path", "code", "media"), [
    pytest.param("/apis/no.such/v1/things", 404, "text/plain", id="a group that is not there"),
    pytest.param("/apis/no.such", 404, "text/plain", id="its document"),
    pytest.param("/nothing", 404, "text/plain", id="nothing at all"),
    pytest.param("/api/v1/nosuch", 404, "application/json", id="a kind that is not there"),
    pytest.param("/api/v1/namespaces/default/pods/p/nosuch", 404, "application/json", id="a part that is not there"),
    pytest.param("/api/v1/namespaces/default/nodes", 404, "application/json", id="a node in a namespace"),
    pytest.param("/openapi/v3/apis/no.such/v1", 404, "text/plain", id="its OpenAPI"),
])
async def test_not_found(api: Api, path: str, code: int, media: str) -> None:
    answer = await api.get(path)

    assert (code, media) == (answer.code, answer.headers["Content-Type"].partition(";")[0])


async def test_the_version_is_one_that_clients_know(api: Api) -> None:
    found = (await api.get("/version/")).json

    assert ("1", "34") == (found["major"], found["minor"])
    assert found["gitVersion"].startswith("v1.34.")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
async def test_health(api: Api, path: str) -> None:
    assert b"ok" == (await api.get(path)).body


class TestOpenApi:
    async def test_the_index_names_a_document_per_group_and_version(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition())
        index = (await api.get("/openapi/v3")).json["paths"]

        assert {"api/v1", "apis/apiextensions.k8s.io/v1", "apis/kubeflow.org/v1"} <= index.keys()
        path, _, query = index["apis/kubeflow.org/v1"]["serverRelativeURL"].partition("?")
        answer = await api.get(path, query)
        assert (200, "public, immutable") == (answer.code, answer.headers["Cache-Control"])

    async def test_the_hash_follows_the_definition(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition())
        before = (await api.get("/openapi/v3")).json["paths"]["apis/kubeflow.org/v1"]
        await api.patch(f"{DEFINITIONS}/tfjobs.kubeflow.org", {"spec": {"names": {"shortNames": ["tf"]}}})

        assert before != (await api.get("/openapi/v3")).json["paths"]["apis/kubeflow.org/v1"]

    async def test_patch_takes_field_validation_and_the_schema_is_the_definitions(self, api: Api) -> None:
        schema = {"type": "object", "description": "What to run.", "properties": {"n": {"type": "integer"}}}
        await api.made(DEFINITIONS, definition(schema))
        found = (await api.get("/openapi/v3/apis/kubeflow.org/v1")).json
        patch = found["paths"]["/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{name}"]["patch"]

        assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
        assert patch["x-kubernetes-group-version-kind"] == {"group": "kubeflow.org", "kind": "TFJob", "version": "v1"}
        assert schema == found["components"]["schemas"]["org.kubeflow.v1.TFJob"]["properties"]["spec"]

    async def test_version_2_comes_as_json_and_as_protobuf(self, api: Api) -> None:
        protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        found = (await api.get("/openapi/v2")).json

        assert "2.0" == found["swagger"]
        assert {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"} == (
            found["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"])
        answer = await api.get("/openapi/v2", accept=protobuf)
        assert (200, b"\n\x032.0\x12") == (answer.code, answer.body[:6])

    async def test_every_reference_leads_somewhere(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition())
        for path in (await api.get("/openapi/v3")).json["paths"]:
            document = (await api.get(f"/openapi/v3/{path}")).body.decode()
            known = orjson.loads(document)["components"]["schemas"]

            assert set(re.findall(r'"#/components/schemas/([^"]+)"', document)) <= known.keys()


async def test_namespaces_cannot_be_deleted_all_at_once(api: Api) -> None:
    resources = (await api.get("/api/v1")).json["resources"]
    verbs = next(each["verbs"] for each in resources if each["name"] == "namespaces")

    assert ["create", "delete", "get", "list", "patch", "update", "watch"] == verbs
    assert 405 == (await api.delete(NAMESPACES)).code


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_something_in_no_namespace_is_nowhere(api: Api, method: str) -> None:
    answer = await api.send(method, "/api/v1/configmaps/x", {})

    assert (404, "the server could not find the requested resource") == (answer.code, answer.message)


@pytest.mark.parametrize(("path", "code", "media"), [
    pytest.param("/apis/apps/v7/deployments", 404, "application/json", id="another version of a group that is there"),
    pytest.param("/apis/no.such/v1/things", 404, "text/plain; charset=utf-8", id="a group that is not there"),
])
async def test_what_is_not_served(api: Api, path: str, code: int, media: str) -> None:
    answer = await api.get(path)

    assert (code, media) == (answer.code, answer.headers["Content-Type"])


async def test_the_head_of_an_object_cannot_be_had(api: Api) -> None:
    assert 405 == (await api.send("HEAD", MAPS)).code
