"""The verbs: what a write makes of an object, what it refuses, and what it answers."""

import pytest
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    JSON_PATCH,
    MAPS,
    MERGE,
    NAMESPACES,
    PODS,
    STRATEGIC,
    Api,
    config_map,
    definition,
    job,
    pod,
)

from trainmaster.api.meta import Json


async def test_a_created_object_gets_its_identity(api: Api) -> None:
    found = await api.made(PODS, pod())
    meta = found["metadata"]

    assert (meta["name"], meta["namespace"], meta["creationTimestamp"]) == ("p", "default", "2030-01-01T12:00:00Z")
    assert (meta["generation"], int(meta["resourceVersion"]) > 0, len(meta["uid"])) == (1, True, 36)


async def test_a_generated_name_is_the_prefix_and_five_signs(api: Api) -> None:
    body = pod()
    body["metadata"] = {"generateName": "worker-"}
    first, second = await api.made(PODS, body), await api.made(PODS, body)

    assert first["metadata"]["name"].startswith("worker-")
    assert len(first["metadata"]["name"]) == len("worker-") + 5
    assert first["metadata"]["name"] != second["metadata"]["name"]


@pytest.mark.parametrize(("path", "body", "code", "reason", "message"), [
    pytest.param(MAPS, config_map("taken"), 409, "AlreadyExists", 'configmaps "taken" already exists',
                 id="the name is taken"),
    pytest.param(MAPS, {"metadata": {}}, 422, "Invalid",
                 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
                 id="neither name nor generateName"),
    pytest.param("/api/v1/namespaces/nowhere/configmaps", config_map(), 404, "NotFound",
                 'namespaces "nowhere" not found', id="the namespace is not there"),
    pytest.param(MAPS, {"metadata": {"name": "x", "namespace": "other"}}, 400, "BadRequest",
                 "the namespace of the provided object does not match the namespace sent on the request",
                 id="the namespace of the body is another one"),
    pytest.param(MAPS, {"metadata": {"name": "x", "resourceVersion": "1"}}, 400, "BadRequest",
                 "resourceVersion should not be set on objects to be created", id="a resourceVersion is brought along"),
    pytest.param(MAPS, {"kind": "Pod", "metadata": {"name": "x"}}, 400, "BadRequest",
                 'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): '
                 "unknown conversion", id="another kind"),
    pytest.param(MAPS, {"apiVersion": "v9", "metadata": {"name": "x"}}, 400, "BadRequest",
                 'ConfigMap in version "v9" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for '
                 'version "v9" in scheme "pkg/runtime/scheme.go:111"', id="another version"),
    pytest.param(MAPS, [], 400, "BadRequest", "the body must be a JSON object", id="not an object"),
    pytest.param(MAPS, {"metadata": {"name": "x", "labels": {"a": 1}}}, 400, "BadRequest",
                 'ConfigMap in version "v1" cannot be handled as a ConfigMap: metadata.labels.a must be text, not '
                 "integer",
                 id="a label that is a number"),
    pytest.param(MAPS, {"metadata": {"name": "x", "labels": {"a b": "1"}}}, 422, "Invalid",
                 "ConfigMap \"x\" is invalid: metadata.labels: Invalid value: \"a b\": name part must consist of "
                 "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
                 "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                 "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')", id="a label key with a space"),
    pytest.param("/api/v1/configmaps", config_map(), 405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource", id="no namespace in the path"),
])
async def test_refused_creations(api: Api, path: str, body: Json, code: int, reason: str, message: str) -> None:
    await api.made(MAPS, config_map("taken"))
    answer = await api.post(path, body)

    assert (code, reason, message) == (answer.code, answer.json["reason"], answer.message)


async def test_a_missing_object_is_named_with_its_kind(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    answer = await api.get(f"{JOBS}/x")

    assert answer.json == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
        "message": 'tfjobs.kubeflow.org "x" not found',
        "details": {"name": "x", "group": "kubeflow.org", "kind": "tfjobs"}}


async def test_an_update_with_an_old_revision_is_a_conflict(api: Api) -> None:
    old = await api.made(MAPS, config_map(a="1"))
    await api.patch(f"{MAPS}/m", {"data": {"a": "2"}})
    answer = await api.put(f"{MAPS}/m", {**old, "data": {"a": "3"}})

    assert (answer.code, answer.json["reason"]) == (409, "Conflict")
    assert answer.message == ('Operation cannot be fulfilled on configmaps "m": the object has been modified; please '
                              "apply your changes to the latest version and try again")


async def test_an_update_that_changes_nothing_keeps_the_revision(api: Api) -> None:
    old = await api.made(MAPS, config_map(a="1"))
    again = await api.put(f"{MAPS}/m", old)
    patched = await api.patch(f"{MAPS}/m", {"data": {"a": "1"}})

    assert old == again.json == patched.json


@pytest.mark.parametrize(("change", "code"), [
    pytest.param({"metadata": {"name": "other"}}, 400, id="the name"),
    pytest.param({"metadata": {"uid": "other"}}, 422, id="the uid"),
])
async def test_what_makes_an_object_itself_does_not_change(api: Api, change: Json, code: int) -> None:
    await api.made(MAPS, config_map())

    assert code == (await api.patch(f"{MAPS}/m", change)).code


async def test_server_set_metadata_cannot_be_written(api: Api) -> None:
    old = await api.made(PODS, pod())
    answer = await api.patch(f"{PODS}/p", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 9,
                                                        "selfLink": "/x"}})

    assert (200, old) == (answer.code, answer.json)


async def test_custom_resources_cannot_be_replaced_blindly(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(JOBS, job())
    answer = await api.put(f"{JOBS}/mnist", job(a=1))

    assert 422 == answer.code
    assert answer.message == ('tfjobs.kubeflow.org "mnist" is invalid: metadata.resourceVersion: Invalid value: 0: '
                              "must be specified for an update")


class TestStatusAndSpec:
    """Each is written through its own path, and the other path leaves it alone."""

    @pytest.fixture(autouse=True)
    async def a_job(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition())
        await api.made(JOBS, {**job(a=1), "status": {"seen": True}})

    async def test_a_status_sent_with_a_creation_is_dropped(self, api: Api) -> None:
        assert "status" not in (await api.get(f"{JOBS}/mnist")).json

    async def test_the_main_path_leaves_the_status_alone(self, api: Api) -> None:
        await api.patch(f"{JOBS}/mnist/status", {"status": {"n": 1}})
        answer = await api.patch(f"{JOBS}/mnist", {"spec": {"a": 2}, "status": {"n": 2}})

        assert ({"a": 2}, {"n": 1}, 2) == (answer.json["spec"], answer.json["status"],
                                           answer.json["metadata"]["generation"])

    async def test_the_status_path_leaves_the_rest_alone(self, api: Api) -> None:
        answer = await api.patch(f"{JOBS}/mnist/status", {"spec": {"a": 2}, "status": {"n": 1},
                                                          "metadata": {"labels": {"x": "y"}}})

        assert ({"a": 1}, {"n": 1}) == (answer.json["spec"], answer.json["status"])
        assert "labels" not in answer.json["metadata"]

    async def test_metadata_changes_do_not_count_as_a_generation(self, api: Api) -> None:
        answer = await api.patch(f"{JOBS}/mnist", {"metadata": {"labels": {"x": "y"}}})

        assert answer.json["metadata"]["generation"] == 1

    async def test_the_status_of_built_in_kinds_may_carry_labels(self, api: Api) -> None:
        await api.made(PODS, pod())
        answer = await api.patch(f"{PODS}/p/status", {"metadata": {"annotations": {"a": "b"}},
                                                      "status": {"phase": "Running"}, "spec": {"nodeName": "n"}})

        assert answer.json["metadata"]["annotations"] == {"a": "b"}
        assert answer.json["status"]["phase"] == "Running"
        assert "nodeName" not in answer.json["spec"]


@pytest.mark.parametrize(("media", "patch", "code", "reason"), [
    pytest.param(MERGE, [], 400, "BadRequest", id="a merge patch that is a list"),
    pytest.param(JSON_PATCH, {}, 400, "BadRequest", id="a JSON patch that is an object"),
    pytest.param(JSON_PATCH, [{"op": "test", "path": "/data/a", "value": "x"}], 422, "Invalid", id="a test that fails"),
    pytest.param(JSON_PATCH, [{"op": "remove", "path": "/no/where"}], 422, "Invalid", id="a path that is not there"),
    pytest.param(JSON_PATCH, [{"op": "fly", "path": "/a"}], 422, "Invalid", id="an unknown operation"),
    pytest.param("application/json", {}, 415, "UnsupportedMediaType", id="plain JSON is no patch"),
    pytest.param("application/apply-patch+yaml", {}, 422, "Invalid", id="a configuration that nobody applies"),
    pytest.param("application/apply-patch+json", {}, 415, "UnsupportedMediaType", id="no configuration is plain JSON"),
])
async def test_patches_that_cannot_be_applied(api: Api, media: str, patch: Json, code: int, reason: str) -> None:
    await api.made(MAPS, config_map(a="1"))
    answer = await api.patch(f"{MAPS}/m", patch, media)

    assert (code, reason) == (answer.code, answer.json["reason"])


async def test_strategic_merge_is_for_built_in_kinds_only(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(JOBS, job())
    await api.made(MAPS, config_map(a="1"))

    assert (await api.patch(f"{JOBS}/mnist", {"spec": {"a": 1}}, STRATEGIC)).code == 415
    assert (await api.patch(f"{MAPS}/m", {"data": {"b": "2"}}, STRATEGIC)).json["data"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(("method", "path", "body"), [
    pytest.param("POST", MAPS, config_map("new"), id="create"),
    pytest.param("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, id="patch"),
    pytest.param("DELETE", f"{MAPS}/m", None, id="delete"),
])
async def test_a_dry_run_changes_nothing(api: Api, method: str, path: str, body: Json) -> None:
    await api.made(MAPS, config_map(a="1"))
    before = api.store.revision
    media = MERGE if method == "PATCH" else "application/json"
    answer = await api.send(method, path, body, query="dryRun=All", media=media)

    assert answer.code in {200, 201}
    assert before == api.store.revision
    assert ["m"] == (await api.get(MAPS)).names


async def test_an_unknown_dry_run_is_refused(api: Api) -> None:
    assert (await api.post(MAPS, config_map(), "dryRun=Some")).code == 422


class TestDeletion:
    async def test_most_kinds_answer_with_a_status_that_names_the_instance(self, api: Api) -> None:
        uid = (await api.made(MAPS, config_map()))["metadata"]["uid"]
        answer = await api.delete(f"{MAPS}/m")

        assert answer.json == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                               "details": {"name": "m", "kind": "configmaps", "uid": uid}}
        assert (await api.get(f"{MAPS}/m")).code == 404

    @pytest.mark.parametrize("preconditions", [
        pytest.param({"uid": "another"}, id="another uid"),
        pytest.param({"resourceVersion": "1"}, id="another revision"),
    ])
    async def test_a_precondition_that_does_not_hold_is_a_conflict(self, api: Api, preconditions: Json) -> None:
        await api.made(MAPS, config_map())
        answer = await api.delete(f"{MAPS}/m", {"preconditions": preconditions})

        assert (409, True) == (answer.code, "in the precondition" in answer.message)
        assert "ConfigMap" == answer.json["details"]["kind"]

    async def test_a_finalizer_holds_the_object_until_it_is_taken_off(self, api: Api) -> None:
        body = config_map()
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await api.made(MAPS, body)
        answer = await api.delete(f"{MAPS}/m")

        assert answer.json["metadata"]["deletionTimestamp"] == "2030-01-01T12:00:00Z"
        assert (await api.get(f"{MAPS}/m")).code == 200
        assert (await api.patch(f"{MAPS}/m", {"metadata": {"finalizers": ["example.com/wait", "example.com/more"]}})
                ).code == 422
        assert (await api.patch(f"{MAPS}/m", {"metadata": {"finalizers": None}})).code == 200
        assert (await api.get(f"{MAPS}/m")).code == 404

    @pytest.mark.parametrize(("body", "query", "expected"), [
        pytest.param({"propagationPolicy": "Foreground"}, "", ["foregroundDeletion"], id="foreground, in the body"),
        pytest.param(None, "propagationPolicy=Foreground", ["foregroundDeletion"], id="foreground, in the query"),
        pytest.param({"propagationPolicy": "Orphan"}, "", ["orphan"], id="orphan"),
        pytest.param({"orphanDependents": True}, "", ["orphan"], id="orphan, said the old way"),
        pytest.param({"propagationPolicy": "Background"}, "", None, id="background: gone at once"),
    ])
    async def test_propagation_becomes_a_finalizer(self, api: Api, body: Json, query: str, expected: Json) -> None:
        await api.made(MAPS, config_map())
        await api.delete(f"{MAPS}/m", body, query)
        found = await api.get(f"{MAPS}/m")

        assert expected == (found.json["metadata"]["finalizers"] if found.code == 200 else None)

    async def test_an_unknown_propagation_is_refused(self, api: Api) -> None:
        await api.made(MAPS, config_map())

        assert (await api.delete(f"{MAPS}/m", {"propagationPolicy": "Sideways"})).code == 422

    async def test_a_collection_is_deleted_by_selector(self, api: Api) -> None:
        for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
            await api.made(MAPS, config_map(name, {"l": label}))
        answer = await api.delete(MAPS, None, "labelSelector=l%3Dx")

        assert (["a", "b"], ["c"]) == (answer.names, (await api.get(MAPS)).names)


class TestPodDeletion:
    """A pod on a node is ended by the node; others go at once."""

    async def bound(self, api: Api, **spec: Json) -> None:
        await api.made(PODS, pod(**spec))
        answer = await api.post(f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "n"}})
        assert answer.code == 201

    async def test_a_pod_without_a_node_goes_at_once(self, api: Api) -> None:
        await api.made(PODS, pod())

        assert (await api.delete(f"{PODS}/p")).json["kind"] == "Pod"
        assert (await api.get(f"{PODS}/p")).code == 404

    async def test_a_bound_pod_gets_its_grace_and_the_node_ends_it(self, api: Api) -> None:
        await self.bound(api)
        meta = (await api.delete(f"{PODS}/p")).json["metadata"]

        assert ("2030-01-01T12:00:30Z", 30) == (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"])
        assert (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})).code == 200
        assert (await api.get(f"{PODS}/p")).code == 404

    async def test_a_second_deletion_can_only_hurry(self, api: Api) -> None:
        await self.bound(api, terminationGracePeriodSeconds=60)
        await api.delete(f"{PODS}/p")
        sooner = (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 10})).json["metadata"]
        later = (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 90})).json["metadata"]

        assert ("2030-01-01T12:00:10Z", 10) == (sooner["deletionTimestamp"], sooner["deletionGracePeriodSeconds"])
        assert sooner == later

    async def test_a_pod_that_has_ended_needs_no_grace(self, api: Api) -> None:
        await self.bound(api)
        await api.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
        await api.delete(f"{PODS}/p")

        assert (await api.get(f"{PODS}/p")).code == 404

    async def test_taking_off_a_finalizer_does_not_cut_the_grace_short(self, api: Api) -> None:
        body = pod()
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await api.made(PODS, body)
        await api.post(f"{PODS}/p/binding", {"target": {"name": "n"}})
        await api.delete(f"{PODS}/p")
        await api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})

        assert (await api.get(f"{PODS}/p")).code == 200


class TestNamespaces:
    async def test_a_new_namespace_is_active_and_labelled(self, api: Api) -> None:
        found = await api.made(NAMESPACES, {"metadata": {"name": "team"}})

        assert (["kubernetes"], "Active") == (found["spec"]["finalizers"], found["status"]["phase"])
        assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}

    async def test_it_ends_when_its_content_is_gone(self, api: Api) -> None:
        await api.made(NAMESPACES, {"metadata": {"name": "team"}})
        ending = (await api.delete(f"{NAMESPACES}/team")).json
        refused = await api.post("/api/v1/namespaces/team/configmaps", config_map())

        assert ending["status"]["phase"] == "Terminating"
        assert 403 == refused.code
        assert refused.message == ('configmaps "m" is forbidden: unable to create new content in namespace team '
                                   "because it is being terminated")
        assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        assert (await api.put(f"{NAMESPACES}/team/finalize", {**ending, "spec": {"finalizers": []}})).code == 200
        assert (await api.get(f"{NAMESPACES}/team")).code == 404

    async def test_an_ordinary_update_does_not_touch_the_content_finalizer(self, api: Api) -> None:
        await api.made(NAMESPACES, {"metadata": {"name": "team"}})
        answer = await api.patch(f"{NAMESPACES}/team", {"spec": {"finalizers": []}})

        assert answer.json["spec"]["finalizers"] == ["kubernetes"]

    async def test_some_are_there_from_the_start_and_stay(self, api: Api) -> None:
        assert ["default", "kube-node-lease", "kube-public", "kube-system"] == (await api.get(NAMESPACES)).names
        assert (await api.delete(f"{NAMESPACES}/default")).code == 403
