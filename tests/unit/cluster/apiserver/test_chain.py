"""Webhooks and the writes they have a say in: a real HTTPS server is asked, the answer of the API is what counts."""

import asyncio
import re
from pathlib import Path

import orjson
import pytest
import yaml
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    MAPS,
    NAMESPACES,
    PODS,
    WHO,
    Api,
    config_map,
    definition,
    job,
    pod,
    serving,
)
from tests.unit.cluster.apiserver.hook_cases import CASES, Case, Settled, played
from tests.unit.cluster.apiserver.hook_server import (
    HookServer,
    add_label,
    configuration,
    deny,
    hook,
    patch,
    register,
)

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import builtin
from trainmaster.cluster.apiserver.chain import MOST_WAITING
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.store import Store
from trainmaster.testing.clock import VirtualClock

MINIMAL = Path(__file__).parents[3] / "kubernetes" / "minimal.yaml"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.when) for case in CASES])
async def test_a_write_ends_as_on_a_real_server(api: Api, server: HookServer, case: Case) -> None:
    said, asked = await played(api.transport, server, case, Settled())

    assert (case.ours or case.said) == said
    if case.asked is not None:
        assert sorted(case.asked) == sorted(asked) if case.kind == "Validating" else list(case.asked) == asked


def owned(thing: Object) -> dict[str, list[str]]:
    """The keys of a ConfigMap's data by who owns them."""
    return {each["manager"]: sorted(key for key in each["fieldsV1"].get("f:data", {}) if key != ".")
            for each in thing["metadata"]["managedFields"]}


async def test_what_a_webhook_adds_is_nobodys(api: Api, server: HookServer) -> None:
    server.says["/add"] = patch({"op": "add", "path": "/data/added", "value": "x"})
    await register(api, "Mutating", hook(server.client("/add"), resources=("configmaps",)))
    made = await api.post(MAPS, config_map("m", a="1"), query="fieldManager=one")
    changed = await api.patch(f"{MAPS}/m", {"data": {"b": "2"}}, query="fieldManager=two")

    assert ({"a": "1", "added": "x"}, {"one": ["f:a"]}) == (made.json["data"], owned(made.json))
    assert {"one": ["f:a"], "two": ["f:b"]} == owned(changed.json)


@pytest.mark.parametrize(("conditions", "policy", "expected"), [
    pytest.param(["object.metadata.name == 'm'"], "Fail", (400, 1), id="it is meant, and refuses"),
    pytest.param(["object.metadata.name != 'm'"], "Fail", (201, 0), id="it is not meant"),
    pytest.param(["request.operation == 'CREATE'", "request.userInfo.username == 'nobody'"], "Fail", (201, 0),
                 id="one of two does not hold"),
    pytest.param(["has(object.data) && object.data.k == 'v'", "oldObject == null"], "Fail", (400, 1), id="both hold"),
    pytest.param(["object.spec.replicas == 1"], "Fail", (403, 0), id="nobody can tell, which fails"),
    pytest.param(["object.spec.replicas == 1"], "Ignore", (201, 0), id="nobody can tell, which does not matter"),
    pytest.param(["object.spec.replicas == 1", "false"], "Fail", (201, 0), id="one that is false decides"),
    pytest.param(["authorizer.group('').resource('pods').namespace('default').check('get').allowed()"], "Fail",
                 (400, 1), id="who asks may do something"),
    pytest.param(["authorizer.requestResource.check('create').allowed()"], "Fail", (400, 1),
                 id="who asks may do what is asked"),
    pytest.param(["authorizer.serviceAccount('default', 'default').path('/logs').check('get').allowed()"], "Fail",
                 (201, 0), id="somebody else may not"),
])
async def test_conditions_of_a_webhook(
        api: Api, server: HookServer, conditions: list[str], policy: str, expected: tuple[int, int]) -> None:
    server.says["/no"] = deny("no")
    made = hook(server.client("/no"), resources=("configmaps",))
    made |= {"failurePolicy": policy,
             "matchConditions": [{"name": f"c{at}", "expression": each} for at, each in enumerate(conditions)]}
    await register(api, "Validating", made)
    answer = await api.post(MAPS, config_map("m", k="v"))

    assert expected == (answer.code, len(server.asked))
    if expected == (403, 0):
        assert 'configmaps "m" is forbidden: expression ' in answer.message


async def test_a_webhook_is_told_everything_about_a_creation(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/yes"), resources=("pods",)))

    await api.post(PODS, pod(), query="fieldManager=kubectl-create&fieldValidation=Strict")

    [(_, review)] = server.asked
    request = review["request"]
    assert ("AdmissionReview", "admission.k8s.io/v1") == (review["kind"], review["apiVersion"])
    assert {"group": "", "version": "v1", "kind": "Pod"} == request["kind"] == request["requestKind"]
    assert {"group": "", "version": "v1", "resource": "pods"} == request["resource"] == request["requestResource"]
    assert ("p", "default", "CREATE", None, False) == tuple(
        request[field] for field in ("name", "namespace", "operation", "oldObject", "dryRun"))
    assert {"username": WHO.user, "groups": list(WHO.groups)} == {
        field: request["userInfo"][field] for field in ("username", "groups")}
    assert {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-create",
            "fieldValidation": "Strict"} == request["options"]
    seen = request["object"]
    assert ("default-scheduler", "Pending", True) == (
        seen["spec"]["schedulerName"], seen["status"]["phase"], bool(seen["metadata"]["uid"]))


async def test_one_that_changes_sees_defaults_and_no_identity_yet(api: Api, server: HookServer) -> None:
    await register(api, "Mutating", hook(server.client("/yes"), resources=("pods",)))

    await api.post(PODS, pod())

    seen = server.asked[0][1]["request"]["object"]
    assert ("default-scheduler", "default") == (seen["spec"]["schedulerName"], seen["metadata"]["namespace"])
    assert not {"uid", "creationTimestamp"} & seen["metadata"].keys()


async def test_a_change_shows_both_states(api: Api, server: HookServer) -> None:
    await api.made(MAPS, config_map(a="1"))
    await register(api, "Validating", hook(server.client("/yes"), operations=("UPDATE",)))

    await api.patch(f"{MAPS}/m", {"data": {"a": "2"}})

    request = server.asked[0][1]["request"]
    assert ("UPDATE", "UpdateOptions", "1", "2") == (
        request["operation"], request["options"]["kind"], request["oldObject"]["data"]["a"],
        request["object"]["data"]["a"])


async def test_an_application_is_a_creation_first_and_then_an_update(api: Api, server: HookServer) -> None:
    await register(api, "Mutating", hook(server.client("/label"), operations=("CREATE", "UPDATE")))
    server.says["/label"] = add_label("seen", "yes")

    for value in ("1", "2"):
        answer = await api.patch(f"{MAPS}/m", config_map(a=value), media="application/apply-patch+yaml",
                                 query="fieldManager=me")

    assert ({"seen": "yes"}, {"a": "2"}) == (answer.json["metadata"]["labels"], answer.json["data"])
    assert [("CREATE", "CreateOptions"), ("UPDATE", "UpdateOptions")] == [
        (review["request"]["operation"], review["request"]["options"]["kind"]) for _, review in server.asked]


async def test_a_deletion_shows_the_last_state_and_its_options(api: Api, server: HookServer) -> None:
    await api.made(MAPS, config_map())
    await register(api, "Validating", hook(server.client("/yes"), operations=("DELETE",)))

    await api.delete(f"{MAPS}/m", {"propagationPolicy": "Background"}, query="gracePeriodSeconds=0")

    request = server.asked[0][1]["request"]
    assert ("DELETE", None, "m") == (request["operation"], request["object"], request["oldObject"]["metadata"]["name"])
    assert {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 0,
            "propagationPolicy": "Background"} == request["options"]


@pytest.mark.parametrize(("part", "body", "kind"), [
    pytest.param("status", {"status": {"x": 1}}, "TFJob", id="a status"),
    pytest.param("scale", {"spec": {"replicas": 5}}, "Scale", id="a scale is shown as such"),
])
async def test_subresources_have_rules_of_their_own(
    api: Api, server: HookServer, part: str, body: Object, kind: str
) -> None:
    parts = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    await api.made(DEFINITIONS, definition(subresources=parts))
    await api.made(JOBS, job(n=1))
    await register(api, "Validating", hook(server.client("/no"), resources=(f"tfjobs/{part}",),
                                           groups=("kubeflow.org",), operations=("UPDATE",)))
    server.says["/no"] = deny("no")

    refused = await api.patch(f"{JOBS}/mnist/{part}", body)
    allowed = await api.patch(f"{JOBS}/mnist", {"metadata": {"labels": {"a": "b"}}})

    assert (400, 200) == (refused.code, allowed.code)
    assert [kind] == [review["request"]["kind"]["kind"] for _, review in server.asked]


async def test_a_scale_can_be_changed(api: Api, server: HookServer) -> None:
    await api.made(DEFINITIONS, definition(subresources={
        "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}))
    await api.made(JOBS, job(n=1))
    await register(api, "Mutating", hook(server.client("/two"), resources=("tfjobs/scale",), groups=("kubeflow.org",),
                                         operations=("UPDATE",)))
    server.says["/two"] = patch({"op": "replace", "path": "/spec/replicas", "value": 2})

    await api.patch(f"{JOBS}/mnist/scale", {"spec": {"replicas": 5}})

    assert 2 == (await api.get(f"{JOBS}/mnist")).json["spec"]["n"]


@pytest.mark.parametrize(("part", "body"), [
    pytest.param("binding", {"target": {"kind": "Node", "name": "n"}}, id="a binding"),
    pytest.param("eviction", {"metadata": {"name": "p"}}, id="an eviction"),
])
async def test_deeds_are_created(api: Api, server: HookServer, part: str, body: Object) -> None:
    await api.made(PODS, pod())
    await register(api, "Validating", hook(server.client("/no"), resources=(f"pods/{part}",)))
    server.says["/no"] = deny("no")

    answer = await api.post(f"{PODS}/p/{part}", body)

    assert (400, part.capitalize()) == (answer.code, server.asked[0][1]["request"]["object"]["kind"])
    assert "nodeName" not in (await api.get(f"{PODS}/p")).json["spec"]


async def test_another_version_of_the_same_thing_is_shown_as_the_webhook_knows_it(api: Api, server: HookServer) -> None:
    thing = definition()
    first = thing["spec"]["versions"][0]
    thing["spec"]["versions"].append({**first, "name": "v2", "storage": False})
    await api.made(DEFINITIONS, thing)
    rules = {"resources": ("tfjobs",), "groups": ("kubeflow.org",), "versions": ("v2",)}
    await register(api, "Mutating", hook(server.client("/label"), "equal.example.com", **rules),
                   hook(server.client("/no"), "exact.example.com", matchPolicy="Exact", **rules))
    server.says |= {"/label": add_label("seen", "v2"), "/no": deny("no")}

    answer = await api.post(JOBS, job())

    request = server.asked[0][1]["request"]
    assert ("v2", "kubeflow.org/v2", "v1") == (
        request["kind"]["version"], request["object"]["apiVersion"], request["requestKind"]["version"])
    assert ("kubeflow.org/v1", {"seen": "v2"}, ["/label"]) == (
        answer.json["apiVersion"], answer.json["metadata"]["labels"], server.paths)


async def test_the_labels_of_a_namespace_are_those_of_the_new_one(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/no"), resources=("namespaces",),
                                           namespaceSelector={"matchLabels": {"strict": "yes"}}))
    server.says["/no"] = deny("no")

    codes = [(await api.post(NAMESPACES, {"metadata": {"name": name, "labels": labels}})).code
             for name, labels in (("a", {}), ("b", {"strict": "yes"}))]

    assert [201, 400] == codes


async def test_configurations_are_in_force_in_the_order_of_their_names(api: Api, server: HookServer) -> None:
    for name in ("b", "a", "c"):
        await register(api, "Mutating", hook(server.client(f"/{name}"), f"{name}.example.com"), name=name)

    await api.post(MAPS, config_map())

    assert ["/a", "/b", "/c"] == server.paths


async def test_a_slow_webhook_delays_nobody_else(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/slow"), operations=("CREATE", "UPDATE")))
    waiting = asyncio.ensure_future(api.post(MAPS, config_map("held")))
    await server.until(1)

    await api.made(PODS, pod())                                     # another kind
    assert 404 == (await api.get(f"{MAPS}/held")).code              # nothing is stored yet
    server.hold.set()

    assert 201 == (await waiting).code


async def test_what_happened_while_a_webhook_thought_is_seen(api: Api, server: HookServer) -> None:
    """The decision falls on the newest state: the change of somebody else is not undone, and the webhook sees it."""
    await api.made(MAPS, config_map(a="1"))
    await register(api, "Validating", hook(server.client("/slow"), operations=("UPDATE",),
                                           objectSelector={"matchLabels": {"slow": "yes"}}))
    waiting = asyncio.ensure_future(api.patch(f"{MAPS}/m", {"metadata": {"labels": {"slow": "yes"}}}))
    await server.until(1)
    await api.patch(f"{MAPS}/m", {"data": {"b": "2"}})
    server.hold.set()

    assert {"a": "1", "b": "2"} == (await waiting).json["data"]
    assert [{"a": "1"}, {"a": "1", "b": "2"}] == [review["request"]["object"]["data"] for _, review in server.asked]


async def test_a_namespace_that_ends_meanwhile_takes_nothing_in(api: Api, server: HookServer) -> None:
    await api.made(NAMESPACES, {"metadata": {"name": "brief"}})
    await register(api, "Validating", hook(server.client("/slow")))
    waiting = asyncio.ensure_future(api.post("/api/v1/namespaces/brief/configmaps", config_map()))
    await server.until(1)
    await api.delete(f"{NAMESPACES}/brief")
    server.hold.set()

    answer = await waiting
    assert (403, True) == (answer.code, "because it is being terminated" in answer.message)


async def test_more_than_half_of_the_server_never_waits(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/slow")))
    waiting = [asyncio.ensure_future(api.post(MAPS, config_map(f"m{index}"))) for index in range(MOST_WAITING)]
    await server.until(MOST_WAITING)

    assert 429 == (await api.post(MAPS, config_map("more"))).code
    server.hold.set()
    assert {201} == {answer.code for answer in await asyncio.gather(*waiting)}


async def test_what_is_refused_gives_its_address_back(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/no"), resources=("services",)))
    server.says["/no"] = deny("no")
    path, thing = "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {
        "clusterIP": "10.96.9.9", "ports": [{"port": 80}]}}

    assert [400, 400] == [(await api.post(path, thing)).code for _ in range(2)]


async def test_the_server_stops_while_a_webhook_thinks(server: HookServer) -> None:
    async with serving() as api:
        await register(api, "Validating", hook(server.client("/slow"), timeoutSeconds=30))
        waiting = asyncio.ensure_future(api.post(MAPS, config_map()))
        await server.until(1)

    assert 500 == (await waiting).code


async def test_configurations_outlive_the_process(server: HookServer, tmp_path: Path) -> None:
    server.says["/no"] = deny("no")
    codes = []
    for index in range(2):
        store = Store.open(tmp_path / "store.db")
        found = ApiServer(store, clock=VirtualClock())
        await found.start()
        api = Api(found, store, VirtualClock())
        if not index:
            await register(api, "Validating", hook(server.client("/no")))
        codes.append((await api.post(MAPS, config_map())).code)
        await found.close()
        await store.close()

    assert [400, 400] == codes


async def test_a_judge_of_the_server_itself_needs_no_call() -> None:
    asked: list[Object] = []

    def judge(request: Object, _look: object) -> Object:
        asked.append(request)
        return {"uid": request["uid"], "allowed": False, "status": {"code": 403, "message": "no"}}

    async with serving(judges=[(configuration("Validating", hook({}, operations=("*",))), judge)]) as api:
        answer = await api.post(MAPS, config_map())

    assert (403, 'admission webhook "a.example.com" denied the request: no') == (answer.code, answer.message)
    assert ["m"] == [request["name"] for request in asked]


@pytest.mark.parametrize("thing", [
    pytest.param(thing, id=f"{thing['kind']} {thing['metadata']['name']}")
    for thing in yaml.safe_load_all(MINIMAL.read_text())
    if not thing["kind"].endswith("WebhookConfiguration")])      # about which no webhook is asked
async def test_a_look_at_it_changes_no_kind(server: HookServer, thing: Object) -> None:
    """Defaults are filled in earlier when a webhook looks; what is stored is the same, whatever the kind."""
    found = []
    for watched in (False, True):
        async with serving() as api:
            if watched:
                await register(api, "Mutating", hook(server.client("/yes"), resources=("*/*",), groups=("*",),
                                                     versions=("*",)))
            served = next(each.resource for each in builtin.served()[thing["apiVersion"]]
                          if each.resource.kind == thing["kind"])
            answer = await api.post(served.path("default" if served.namespaced else ""), thing)
            body = {**answer.json, "metadata": {**answer.json.get("metadata", {}), "uid": "", "resourceVersion": ""}}
            found.append((answer.code, body if answer.code < 300 else answer.message))

    assert found[0][0] == found[1][0]
    assert _without_uids(found[0]) == _without_uids(found[1])


def _without_uids(found: tuple[int, Object | str]) -> str:
    """Jobs and claims repeat their UID in labels and names, and the name of a token's volume is by chance."""
    text = re.sub("kube-api-access-[a-z0-9]{5}", "TOKEN", orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode())
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
