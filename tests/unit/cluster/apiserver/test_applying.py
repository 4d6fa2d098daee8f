"""Server-side apply by itself: what it says when it refuses, and the rules that need more than one kind of write."""

from typing import Any

import orjson
import pytest
from tests.unit.cluster.apiserver.api import MAPS, Answer, Api, config_map

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.kube.transport import Request

APPLY = "application/apply-patch+yaml"
ONE = f"{MAPS}/m"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"


async def apply(api: Api, body: Json, manager: str = "me", path: str = ONE, more: str = "") -> Answer:
    return await api.send("PATCH", path, body, media=APPLY, query=f"fieldManager={manager}{more}")


def owners(thing: Object) -> dict[str, Any]:
    return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"]
            for entry in thing["metadata"].get("managedFields", ())}


def bare(**meta: Json) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", **meta}}


def deployment(**spec: Json) -> Object:
    pod = {"containers": [{"name": "c", "image": "x"}]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}, **spec}}


@pytest.mark.parametrize(("body", "code", "said"), [
    pytest.param(b"", 400, "invalid object type: /, Kind=", id="nothing"),
    pytest.param(b"[]", 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
                 "unmarshal array into Go value of type map[string]interface {}", id="a list"),
    pytest.param({"kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap", id="no apiVersion"),
    pytest.param({"apiVersion": "v1", "kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret", id="other kind"),
    pytest.param({"apiVersion": "v1", "kind": "ConfigMap"}, 400, "the name of the object (m based on URL) was "
                 "undeterminable: name must be provided", id="no name"),
    pytest.param(config_map("other"), 400, "the name of the object (other) does not match the name on the URL (m)",
                 id="another name"),
    pytest.param(bare(namespace="x"), 400, "the namespace of the provided object does not match the namespace sent on "
                 "the request", id="another namespace"),
    pytest.param(bare(managedFields=[]), 400, "metadata.managedFields must be nil", id="its own record of owners"),
    pytest.param(bare(uid="x"), 409, 'Operation cannot be fulfilled on configmaps "m": uid mismatch: the provided '
                 "object specified uid x, and no existing object was found", id="one that was there once"),
    pytest.param({**bare(), "foo": 1}, 500, "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .foo: "
                 "field not declared in schema", id="a field that nobody knows"),
    pytest.param({**bare(), "data": {"a": 1}}, 500, "failed to create typed patch object (/m; /v1, Kind=ConfigMap): "
                 ".data.a: expected string, got &value.valueUnstructured{Value:1}", id="a number for text"),
    pytest.param({**bare(), "data": "x"}, 500, "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .data: "
                 "expected map, got &{x}", id="text for a map"),
    pytest.param({**bare(), "immutable": "x"}, 500, "failed to create typed patch object (/m; /v1, Kind=ConfigMap): "
                 ".immutable: expected boolean, got &{x}", id="text for true"),
])
async def test_a_configuration_that_is_none(api: Api, body: Json, code: int, said: str) -> None:
    answer = await apply(api, body)

    assert (code, said) == (answer.code, answer.message)


@pytest.mark.parametrize(("containers", "said"), [
    pytest.param([{"name": "c", "foo": 1}], '[name="c"].foo: field not declared in schema', id="by its key"),
    pytest.param([{"name": "c"}, {"name": "c"}], ': duplicate entries for key [name="c"]', id="an item twice"),
    pytest.param([None], ": element 0: associative list with keys may not have a null element", id="no item"),
])
async def test_a_fault_in_a_list_is_found_by_its_place(api: Api, containers: Json, said: str) -> None:
    body = deployment(template={"spec": {"containers": containers}})
    answer = await apply(api, body, path=DEPLOYMENT)

    assert answer.message == ("failed to create typed patch object (/d; apps/v1, Kind=Deployment): "
                              f".spec.template.spec.containers{said}")


@pytest.mark.parametrize(("query", "said"), [
    pytest.param("", "fieldManager: Required value: is required for apply patch", id="without a manager"),
    pytest.param("fieldManager=" + "x" * 129, "fieldManager: Too long: may not be more than 128 bytes",
                 id="a long one"),
])
async def test_who_applies_must_have_a_name(api: Api, query: str, said: str) -> None:
    answer = await api.send("PATCH", ONE, config_map(), media=APPLY, query=query)

    assert (422, f'PatchOptions.meta.k8s.io "" is invalid: {said}') == (answer.code, answer.message)


async def test_only_a_configuration_can_be_forced(api: Api) -> None:
    answer = await api.patch(ONE, {}, query="force=true")

    assert answer.message == ('PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
                              "non-apply patch")


@pytest.mark.parametrize(("query", "code", "warned"), [
    pytest.param("&fieldValidation=Strict", 400, False, id="a strict client is refused"),
    pytest.param("", 201, True, id="others are warned"),
    pytest.param("&fieldValidation=Ignore", 201, False, id="or nothing is said"),
])
async def test_a_key_that_is_there_twice(api: Api, query: str, code: int, warned: bool) -> None:
    body = b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: "1"\n  a: "2"\n'
    answer = await apply(api, body, more=query)
    said = 'line 6: key "a" already set in map'

    assert (code, warned) == (answer.code, any(said.replace('"', "") in text.replace('\\"', "").replace('"', "")
                                               for text in answer.warnings))
    if code == 400:
        assert answer.message == ("error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
                                  f"  {said}")


async def test_what_others_own_is_theirs_until_it_is_forced(api: Api) -> None:
    await apply(api, config_map(a="1"))
    refused = await apply(api, config_map(a="2"), "you")
    await apply(api, config_map(a="1"), "you")
    both = await apply(api, config_map(a="2"), "third")
    forced = await apply(api, config_map(a="2"), "third", more="&force=true")

    assert (409, 'Apply failed with 1 conflict: conflict with "me": .data.a') == (refused.code, refused.message)
    assert refused.json["details"] == {"causes": [
        {"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.a"}]}
    assert both.message == ('Apply failed with 2 conflicts: conflicts with "me":\n- .data.a\nconflicts with "you":\n'
                            "- .data.a")
    assert owners(forced.json) == {"third Apply": {"f:data": {"f:a": {}}}}


async def test_what_is_not_said_any_more_goes_unless_somebody_else_says_it(api: Api) -> None:
    await apply(api, config_map(a="1", b="1", c="1"))
    await apply(api, config_map(b="1"), "you")
    left = (await apply(api, config_map(c="1"))).json

    assert left["data"] == {"b": "1", "c": "1"}
    assert owners(left) == {"me Apply": {"f:data": {"f:c": {}}}, "you Apply": {"f:data": {"f:b": {}}}}


async def test_the_same_again_writes_nothing(api: Api) -> None:
    first = (await apply(api, config_map(a="1"))).json
    await api.clock.advance(60)

    assert first == (await apply(api, config_map(a="1"))).json


async def test_a_dry_run_leaves_no_trace(api: Api) -> None:
    answer = await apply(api, config_map(a="1"), more="&dryRun=All")

    assert (201, 404) == (answer.code, (await api.get(ONE)).code)


async def test_an_object_without_owners_gets_one_for_what_was_there(api: Api) -> None:
    await api.made(MAPS, config_map(a="1", b="1"))
    await api.patch(ONE, {"metadata": {"managedFields": []}})
    found = (await apply(api, config_map(a="1"))).json

    assert owners(found) == {"me Apply": {"f:data": {"f:a": {}}},
                             "before-first-apply Update": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}


async def test_kubectl_takes_over_what_it_applied_on_its_own_side(api: Api) -> None:
    note = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}}'
    thing = config_map(a="1")
    thing["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": note}
    await api.post(MAPS, thing, "fieldManager=kubectl-client-side-apply")
    answer = await apply(api, config_map(a="2"), "kubectl")

    assert (200, "2") == (answer.code, answer.json["data"]["a"])
    assert '"a":"2"' in answer.json["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert 409 == (await apply(api, config_map(a="3"), "other")).code


async def test_who_may_only_patch_cannot_create_by_applying(api: Api) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    await api.made(f"{roles}/roles", {"metadata": {"name": "patcher"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]})
    await api.made(f"{roles}/rolebindings", {"metadata": {"name": "patcher"}, "subjects": [
        {"kind": "User", "name": "ann"}], "roleRef": {"kind": "Role", "name": "patcher"}})
    ann = InProcess(api.server, Identity("ann"))
    asked = Request("PATCH", ONE, [("fieldManager", "ann")], {"content-type": APPLY}, orjson.dumps(config_map(a="1")))
    refused = await ann.send(asked)
    await api.made(MAPS, config_map(b="1"))

    assert orjson.loads(refused.body)["message"] == (
        'configmaps "m" is forbidden: User "ann" cannot create resource "configmaps" in API group "" in the namespace '
        '"default"')
    assert (403, 200) == (refused.status, (await ann.send(asked)).status)


async def test_a_scaler_is_applied_through_its_older_version(api: Api) -> None:
    """Owners are kept by version; what is stored is the newer one."""
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h"
    scaler = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}}
    label = {**scaler, "metadata": {"name": "h", "labels": {"a": "b"}}}
    await apply(api, label, path=path)
    found = await apply(api, scaler, path=path)

    assert (200, None) == (found.code, found.json["metadata"].get("labels"))
    assert owners(found.json) == {"me Apply": {"f:spec": {"f:maxReplicas": {}, "f:scaleTargetRef": {}}}}


async def test_the_annotations_of_a_deployment_count_as_a_generation(api: Api) -> None:
    await apply(api, deployment(), path=DEPLOYMENT)
    noted = await api.patch(DEPLOYMENT, {"metadata": {"annotations": {"a": "b"}}})
    labelled = await api.patch(DEPLOYMENT, {"metadata": {"labels": {"a": "b"}}})

    assert (2, 2) == (noted.json["metadata"]["generation"], labelled.json["metadata"]["generation"])
