"""Custom resource definitions on the server: from the creation of one to the end of its objects."""

import copy

import orjson
import pytest
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    JSON_PATCH,
    MERGE,
    TABLE,
    Api,
    definition,
    job,
    serving,
)

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.definition_rules import rules
from trainmaster.cluster.apiserver.server import ApiServer

NAME = "tfjobs.kubeflow.org"
WARNED = '299 - "unknown field \\"spec.a\\"", 299 - "unknown field \\"spec.b\\""'
SPEC = {"type": "object", "properties": {"n": {"type": "integer"}, "mode": {"type": "string", "default": "fast"}}}


def changed(path: str, value: Json) -> Object:
    """The usual definition with one thing different."""
    thing = copy.deepcopy(definition(SPEC))
    *parts, last = path.split(".")
    inner: Json = thing
    for part in parts:
        inner = inner[int(part)] if part.isdigit() else inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return thing


async def test_it_is_served_the_moment_it_says_established(api: Api) -> None:
    found = await api.made(DEFINITIONS, definition(SPEC))
    conditions = {each["type"]: (each["status"], each["reason"]) for each in found["status"]["conditions"]}

    assert conditions == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
    assert found["status"]["acceptedNames"] == {"plural": "tfjobs", "kind": "TFJob", "singular": "tfjob",
                                                "listKind": "TFJobList"}
    assert found["status"]["storedVersions"] == ["v1"]
    assert (await api.post(JOBS, job())).code == 201


async def test_items_of_a_custom_list_carry_their_kind(api: Api) -> None:
    await api.made(DEFINITIONS, definition(SPEC))
    await api.made(JOBS, job())
    found = (await api.get(JOBS)).json

    assert ("TFJobList", "TFJob") == (found["kind"], found["items"][0]["kind"])


@pytest.mark.parametrize(("path", "value", "field"), [
    pytest.param("metadata.name", "x.kubeflow.org", "metadata.name", id="its name must be plural and group"),
    pytest.param("spec.group", "", "spec.group", id="no group"),
    pytest.param("spec.names.kind", None, "spec.names.kind", id="no kind"),
    pytest.param("spec.scope", "Everywhere", "spec.scope", id="an unknown scope"),
    pytest.param("spec.versions", [], "spec.versions", id="no version"),
    pytest.param("spec.versions.0.storage", False, "spec.versions", id="no version to store in"),
    pytest.param("spec.versions.0.schema", None, "spec.versions[0].schema.openAPIV3Schema", id="no schema"),
    pytest.param("spec.versions.0.name", "V 1", "spec.versions[0].name", id="a version that cannot be in a path"),
    pytest.param("spec.versions.0.schema.openAPIV3Schema.type", "string",
                 "spec.validation.openAPIV3Schema.type", id="a schema that is not of an object"),
    pytest.param("spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.n.pattern", "(",
                 "spec.validation.openAPIV3Schema.properties[spec].properties[n].pattern",
                 id="a pattern that is none"),
    pytest.param("spec.versions.0.additionalPrinterColumns", [{"name": "X", "type": "string", "jsonPath": "]["}],
                 "spec.additionalPrinterColumns[0].JSONPath", id="a column path that is none"),
])
async def test_definitions_that_are_refused(api: Api, path: str, value: Json, field: str) -> None:
    answer = await api.post(DEFINITIONS, changed(path, value))

    assert 422 == answer.code, answer.body
    assert field in [cause["field"] for cause in answer.json["details"]["causes"]]


async def test_a_name_that_another_definition_has_is_not_accepted(api: Api) -> None:
    await api.made(DEFINITIONS, definition(plural="jobs", kind="TFJob"))
    second = definition(plural="tfjobs", kind="Other")
    second["spec"]["names"]["shortNames"] = ["jobs"]
    found = await api.made(DEFINITIONS, second)
    accepted = next(each for each in found["status"]["conditions"] if each["type"] == "NamesAccepted")

    assert ("False", '"jobs" is already in use') == (accepted["status"], accepted["message"])
    assert (await api.get(JOBS)).code == 404


@pytest.mark.parametrize(("mode", "code", "warning"), [
    pytest.param("Strict", 400, "", id="strict: refused"),
    pytest.param("Warn", 201, WARNED, id="warned"),
    pytest.param("", 201, WARNED, id="unsaid: warned"),
    pytest.param("Ignore", 201, "", id="ignored"),
    pytest.param("Sometimes", 422, "", id="an unknown mode"),
])
async def test_unknown_fields(api: Api, mode: str, code: int, warning: str) -> None:
    await api.made(DEFINITIONS, definition(SPEC))
    answer = await api.post(JOBS, job(n=1, a=1, b=2), f"fieldValidation={mode}")

    assert (code, warning) == (answer.code, ", ".join(answer.warnings))
    if code == 201:
        assert answer.json["spec"] == {"n": 1, "mode": "fast"}
    if code == 400:
        assert answer.message == ('TFJob in version "v1" cannot be handled as a TFJob: strict decoding error: '
                                  'unknown field "spec.a", unknown field "spec.b"')


async def test_a_value_that_does_not_fit_names_its_field(api: Api) -> None:
    await api.made(DEFINITIONS, definition(SPEC))
    answer = await api.post(JOBS, job(n="many"))

    assert 422 == answer.code
    assert answer.message == ('TFJob.kubeflow.org "mnist" is invalid: spec.n: Invalid value: "string": spec.n in body '
                              'must be of type integer: "string"')


async def test_patches_are_checked_and_pruned_too(api: Api) -> None:
    await api.made(DEFINITIONS, definition(SPEC))
    await api.made(JOBS, job(n=1))

    assert (await api.patch(f"{JOBS}/mnist", {"spec": {"n": "x"}})).code == 422
    answer = await api.patch(f"{JOBS}/mnist", {"spec": {"n": 2, "other": 1}})
    assert answer.json["spec"] == {"n": 2, "mode": "fast"}


class TestVersions:
    """One object, seen in several versions."""

    @pytest.fixture(autouse=True)
    async def two(self, api: Api) -> None:
        thing = definition(SPEC)
        second = copy.deepcopy(thing["spec"]["versions"][0])
        second.update(name="v2", storage=False, deprecated=True)
        thing["spec"]["versions"].append(second)
        await api.made(DEFINITIONS, thing)

    async def test_what_is_written_in_one_is_read_in_the_other(self, api: Api) -> None:
        other = JOBS.replace("/v1/", "/v2/")
        made = await api.post(other, {**job(n=1), "apiVersion": "kubeflow.org/v2"})

        assert made.json["apiVersion"] == "kubeflow.org/v2"
        assert (await api.get(f"{JOBS}/mnist")).json["apiVersion"] == "kubeflow.org/v1"
        assert (await api.get(other)).json["items"][0]["apiVersion"] == "kubeflow.org/v2"
        async with api.watch(other) as watch:
            event = await watch.next()
        assert event is not None
        assert event["object"]["apiVersion"] == "kubeflow.org/v2"

    async def test_a_deprecated_version_warns(self, api: Api) -> None:
        answer = await api.get(JOBS.replace("/v1/", "/v2/"))

        assert answer.warnings == ['299 - "kubeflow.org/v2 TFJob is deprecated"']

    async def test_a_version_no_longer_served_is_gone(self, api: Api) -> None:
        found = (await api.get(f"{DEFINITIONS}/{NAME}")).json
        found["spec"]["versions"][1]["served"] = False

        assert (await api.put(f"{DEFINITIONS}/{NAME}", found)).code == 200
        assert (await api.get(JOBS.replace("/v1/", "/v2/"))).code == 404
        assert (await api.get(JOBS)).code == 200

    async def test_another_storage_version_is_remembered(self, api: Api) -> None:
        await api.made(JOBS, job(n=1))
        found = (await api.get(f"{DEFINITIONS}/{NAME}")).json
        found["spec"]["versions"][0]["storage"], found["spec"]["versions"][1]["storage"] = False, True
        answer = await api.put(f"{DEFINITIONS}/{NAME}", found)

        assert answer.json["status"]["storedVersions"] == ["v1", "v2"]
        assert (await api.get(f"{JOBS}/mnist")).json["apiVersion"] == "kubeflow.org/v1"


PATHS = {"specReplicasPath": ".spec.roles.Worker.replicas", "statusReplicasPath": ".status.active",
         "labelSelectorPath": ".status.selector"}


class TestScale:
    @pytest.fixture(autouse=True)
    async def scalable(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition(subresources={"status": {}, "scale": PATHS}))
        await api.made(JOBS, job(roles={"Worker": {"replicas": 2}}))
        await api.patch(f"{JOBS}/mnist/status", {"status": {"active": 1, "selector": "a=b"}})

    async def test_it_is_read_from_the_paths(self, api: Api) -> None:
        found = (await api.get(f"{JOBS}/mnist/scale")).json

        assert (found["kind"], found["apiVersion"], found["spec"], found["status"]) == (
            "Scale", "autoscaling/v1", {"replicas": 2}, {"replicas": 1, "selector": "a=b"})

    async def test_it_is_written_through_them(self, api: Api) -> None:
        answer = await api.patch(f"{JOBS}/mnist/scale", {"spec": {"replicas": 5}})

        assert answer.json["spec"] == {"replicas": 5}
        assert (await api.get(f"{JOBS}/mnist")).json["spec"] == {"roles": {"Worker": {"replicas": 5}}}
        assert (await api.put(f"{JOBS}/mnist/scale", {**answer.json, "spec": {"replicas": 3}})).code == 200
        assert (await api.put(f"{JOBS}/mnist/scale", {**answer.json, "spec": {"replicas": 4}})).code == 409

    @pytest.mark.parametrize(("replicas", "code"), [
        pytest.param(-1, 422, id="fewer than none"),
        pytest.param("many", 400, id="no number"),
    ])
    async def test_counts_that_are_none(self, api: Api, replicas: Json, code: int) -> None:
        assert code == (await api.patch(f"{JOBS}/mnist/scale", {"spec": {"replicas": replicas}})).code

    async def test_a_count_that_was_never_set_cannot_be_read(self, api: Api) -> None:
        await api.made(JOBS, job("bare"))
        answer = await api.get(f"{JOBS}/bare/scale")

        assert 500 == answer.code
        assert answer.message.endswith('the spec replicas field ".spec.roles.Worker.replicas" does not exist')


async def test_printer_columns_become_cells(api: Api) -> None:
    columns = [
        {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
        {"name": "Workers", "type": "integer", "jsonPath": ".spec.n", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    await api.made(DEFINITIONS, definition(additionalPrinterColumns=columns))
    await api.made(JOBS, job("a", n=2))
    await api.made(JOBS, job("b"))
    await api.patch(f"{JOBS}/a/status", {"status": {"conditions": [{"type": "Created"}, {"type": "Running"}]}})
    await api.clock.advance(90)
    table = (await api.get(JOBS, accept=TABLE)).json

    assert [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]] == [
        ("Name", "string", 0), ("State", "string", 0), ("Workers", "integer", 1), ("Age", "date", 0)]
    assert [row["cells"] for row in table["rows"]] == [["a", "Running", 2, "90s"], ["b", None, None, "90s"]]


async def test_a_column_that_cannot_be_read_ends_the_columns(api: Api) -> None:
    columns = [{"name": name, "type": "integer", "jsonPath": path}
               for name, path in (("A", ".spec.n"), ("B", ".spec["), ("C", ".spec.n"))]
    await api.made(DEFINITIONS, definition(additionalPrinterColumns=columns))
    table = (await api.get(JOBS, accept=TABLE)).json

    assert ["Name", "A"] == [each["name"] for each in table["columnDefinitions"]]


async def test_a_schema_that_was_taken_once_may_be_written_again(api: Api) -> None:
    """By a server that asked for less."""
    await api.made(DEFINITIONS, definition(SPEC))
    old = (await api.get(f"{DEFINITIONS}/{NAME}")).json
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {}

    assert [] == list(rules(old, copy.deepcopy(old)))


class TestTheEnd:
    async def test_its_objects_go_with_it(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition())
        await api.made(JOBS, job())
        assert (await api.delete(f"{DEFINITIONS}/{NAME}")).code == 200

        assert (await api.get(f"{DEFINITIONS}/{NAME}")).code == 404
        assert 0 == api.store.count("/kubeflow.org/tfjobs/")
        await api.made(DEFINITIONS, definition())
        assert [] == (await api.get(JOBS)).names

    async def test_an_object_with_a_finalizer_holds_it(self, api: Api) -> None:
        await api.made(DEFINITIONS, definition())
        body = job()
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await api.made(JOBS, body)
        await api.delete(f"{DEFINITIONS}/{NAME}")

        ending = (await api.get(f"{DEFINITIONS}/{NAME}")).json
        assert "Terminating" in [each["type"] for each in ending["status"]["conditions"]]
        assert (await api.post(JOBS, job("late"))).code == 405
        await api.patch(f"{JOBS}/mnist", {"metadata": {"finalizers": None}})
        assert (await api.get(f"{DEFINITIONS}/{NAME}")).code == 404

    async def test_an_interrupted_end_is_finished_at_the_next_start(self) -> None:
        async with serving() as api:
            await api.made(DEFINITIONS, definition())
            await api.made(JOBS, job())
            found = (await api.get(f"{DEFINITIONS}/{NAME}")).json
            found["metadata"].update(deletionTimestamp="2030-01-01T12:00:00Z", deletionGracePeriodSeconds=0,
                                     finalizers=["customresourcecleanup.apiextensions.k8s.io"])
            await _stored_as_is(api, found)
            await api.server.start()

            assert (await api.get(f"{DEFINITIONS}/{NAME}")).code == 404
            assert 0 == api.store.count("/kubeflow.org/tfjobs/")


async def test_definitions_are_served_again_after_a_restart(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(JOBS, job())
    again = ApiServer(api.store, clock=api.clock)
    await again.start()

    assert ["mnist"] == (await Api(again, api.store, api.clock).get(JOBS)).names


async def test_group_and_kind_of_a_definition_do_not_change(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    answer = await api.patch(f"{DEFINITIONS}/{NAME}", {"spec": {"scope": "Cluster"}}, MERGE)

    assert (422, True) == (answer.code, "spec.scope: Invalid value: \"Cluster\": field is immutable" in answer.message)


async def _stored_as_is(api: Api, thing: Object) -> None:
    """Write past the server, as a crash between two of its writes would leave it."""
    key = f"/apiextensions.k8s.io/customresourcedefinitions/{NAME}"
    record = api.store.get(key)
    assert record is not None
    ordered = {"apiVersion": thing["apiVersion"], "kind": thing["kind"], **thing}
    await api.store.update(key, lambda _revision: orjson.dumps(ordered), record.revision)


BEFORE = {"type": "object", "properties": {"n": {"type": "integer"}, "old": {"type": "string"}}}
RENEWED = {"n": 1, "mode": "fast"}


class TestOlderObjects:
    """A definition changes; what was stored before is read as if it had been written now, and stays as it is."""

    @pytest.fixture(autouse=True)
    async def older(self, api: Api) -> Object:
        await api.made(DEFINITIONS, definition(BEFORE))
        made = await api.made(JOBS, job(n=1, old="x"))
        patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
                  "value": SPEC}]
        answer = await api.patch(f"{DEFINITIONS}/tfjobs.kubeflow.org", patch, JSON_PATCH)
        assert 200 == answer.code, answer.body
        return made

    async def test_get_and_list(self, api: Api, older: Object) -> None:
        found = (await api.get(f"{JOBS}/mnist")).json

        assert (RENEWED, older["metadata"]["resourceVersion"]) == (found["spec"],
                                                                         found["metadata"]["resourceVersion"])
        assert [RENEWED] == [each["spec"] for each in (await api.get(JOBS)).json["items"]]

    async def test_watches(self, api: Api) -> None:
        async with api.watch(JOBS) as watch:
            event = await watch.next()

        assert event is not None
        assert RENEWED == event["object"]["spec"]

    async def test_a_write_stores_it(self, api: Api) -> None:
        answer = await api.patch(f"{JOBS}/mnist", {"spec": {"n": 2}})

        assert {"n": 2, "mode": "fast"} == answer.json["spec"]
        assert b'"mode":"fast"' in api.store.scan("/kubeflow.org/tfjobs/")[0].value

    async def test_after_a_restart(self, api: Api) -> None:
        again = ApiServer(api.store, clock=api.clock)
        await again.start()

        assert RENEWED == (await Api(again, api.store, api.clock).get(f"{JOBS}/mnist")).json["spec"]
        await again.close()
