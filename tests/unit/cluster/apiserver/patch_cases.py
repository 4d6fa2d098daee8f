"""Cases of patches: several writers change one object in turns. Made up by number, the same for everybody.

A case is a short story about one object: it is created, applied, patched, scaled, its status is written, by managers
whose wishes overlap. `patch_answers.jsonl` holds what a real kube-apiserver answered to each of them, made by
`tests/kubernetes/test_patches.py`; the embedded server has to answer the same. What differs from run to run (uids,
revisions, moments) is taken out; whether an entry of managedFields has a time at all stays, because it is a fact.
"""

import hashlib
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from trainmaster.api.meta import Json, Object

ANSWERS = Path(__file__).with_name("patch_answers.jsonl")
COUNT = 700
# Of one case in so many the last object is kept as a whole, to be read by people.
WHOLE = 7
NAMESPACE = "patches"

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.patches.example.com"},
    "spec": {"group": "patches.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
             "versions": [
        {"name": version, "served": True, "storage": version == "v1", "subresources": {
            "status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
         "schema": {"openAPIV3Schema": {"type": "object", "properties": {
             "spec": {"type": "object", "properties": {
                 "replicas": {"type": "integer"},
                 "title": {"type": "string"},
                 "level": {"type": "string", "default": "low"},
                 "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                 "words": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                 "lines": {"type": "array", "items": {"type": "string"}},
                 "one": {"type": "object", "x-kubernetes-map-type": "atomic",
                         "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
                 "table": {"type": "object", "additionalProperties": {"type": "string"}},
                 "parts": {"type": "array", "x-kubernetes-list-type": "map",
                           "x-kubernetes-list-map-keys": ["name", "slot"],
                           "items": {"type": "object", "required": ["name"], "properties": {
                               "name": {"type": "string"}, "slot": {"type": "integer", "default": 0},
                               "size": {"type": "integer"}, "tags": {"type": "object", "additionalProperties": {
                                   "type": "string"}}}}},
                 "limit": {"x-kubernetes-int-or-string": True}}},
             "status": {"type": "object", "properties": {
                 "replicas": {"type": "integer"}, "phase": {"type": "string"}}}}}}} for version in ("v1", "v1beta1")]}}


@dataclass(frozen=True, slots=True)
class Step:
    method: str
    path: str
    query: str
    media: str
    body: Json


@dataclass(frozen=True, slots=True)
class Case:
    number: int
    steps: tuple[Step, ...]

    @property
    def digest(self) -> str:
        """Changes when the case does, so that an answer to another case is not taken for one to this."""
        return _digest([[step.method, step.path, step.query, step.media, step.body] for step in self.steps])


Send = Callable[[Step], Awaitable[tuple[int, Object]]]


async def prepare(send: Send) -> None:
    """The namespace and the kind that the cases are about."""
    await send(Step("POST", "/api/v1/namespaces", "", "application/json", {"metadata": {"name": NAMESPACE}}))
    await send(Step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "application/json", CRD))


async def told(case: Case, send: Send) -> Object:
    """What a server answers: to each step a code and what it says, or a digest of the object; of some, the last one."""
    steps: list[Json] = []
    last: Object = {}
    for step in case.steps:
        code, answer = await send(step)
        if code < 300:
            last = comparable(answer)
            steps.append([code, _digest(last)])
        else:
            steps.append([code, answer.get("message"), _causes(answer)])
    found: Object = {"case": case.number, "digest": case.digest, "steps": steps}
    return found if case.number % WHOLE else {**found, "last": last}


def recorded() -> dict[int, Object]:
    found = [orjson.loads(line) for line in ANSWERS.read_text().splitlines()]
    return {each["case"]: each for each in found}


def comparable(thing: Object) -> Object:
    """An object without what is different on every server."""
    meta = {key: value for key, value in thing["metadata"].items()
            if key not in {"uid", "resourceVersion", "creationTimestamp", "managedFields"}}
    entries = [{**{key: value for key, value in entry.items() if key not in {"time", "fieldsType"}},
                "timed": "time" in entry} for entry in thing["metadata"].get("managedFields") or ()]
    entries.sort(key=lambda entry: [str(entry.get(key)) for key in (
        "operation", "manager", "apiVersion", "subresource", "fieldsV1")])
    return {**thing, "metadata": {**meta, "managedFields": entries}}


def _causes(answer: Object) -> list[str]:
    causes = (answer.get("details") or {}).get("causes") or ()
    return sorted(f"{cause.get('reason')} {cause.get('field')}: {cause.get('message')}" for cause in causes)


def _digest(value: Json) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


def cases(count: int = COUNT) -> Iterator[Case]:
    for number in range(count):
        chance = random.Random(number)
        story = _STORIES[number % len(_STORIES)]
        yield Case(number, tuple(story(f"case-{number}", chance)))


# --- what the managers want ------------------------------------------------------------------------------------------

MANAGERS = ("ann", "bob", "kubectl", "controller")


def _some(chance: random.Random, values: dict[str, Any], least: int = 0) -> dict[str, Any]:
    """Some of the pairs, each value picked from its choices."""
    keys = sorted(values)
    picked = chance.sample(keys, chance.randint(least, len(keys)))
    return {key: chance.choice(values[key]) for key in keys if key in picked}


def _labels(chance: random.Random) -> dict[str, str]:
    return _some(chance, {"app": ["x", "y"], "team": ["red", "blue"], "tier": ["1"]})


def _meta(name: str, chance: random.Random) -> Object:
    meta: Object = {"name": name}
    if chance.random() < 0.5:
        meta["labels"] = _labels(chance)
    if chance.random() < 0.3:
        meta["annotations"] = _some(chance, {"note": ["a", "b"], "example.com/x": ["1"]})
    if chance.random() < 0.15:
        meta["finalizers"] = chance.sample(["example.com/one", "example.com/two"], chance.randint(1, 2))
    if chance.random() < 0.15:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner * 4}
                                   for owner in chance.sample(["aa", "bb"], chance.randint(1, 2))]
    return meta


def _config_map(name: str, chance: random.Random) -> Object:
    data = _some(chance, {"a": ["1", "2"], "b": ["1", "2"], "c": ["1"], "d.e/f": ["x"]} | {"empty": [""]})
    data = {key.replace("/", "-"): value for key, value in data.items()}
    thing: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(name, chance)}
    return {**thing, "data": data} if chance.random() < 0.9 else thing


def _env(chance: random.Random) -> list[Object]:
    names = chance.sample(["A", "B", "C"], chance.randint(0, 3))
    return [{"name": name, "value": chance.choice(["1", "2"])} if chance.random() < 0.8 else
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} for name in names]


def _ports(chance: random.Random, key: str) -> list[Object]:
    numbers = chance.sample([80, 443, 8080], chance.randint(0, 3))
    found = []
    for number in numbers:
        port: Object = {key: number, "name": f"p{number}"}
        if chance.random() < 0.5:
            port["protocol"] = chance.choice(["TCP", "UDP"])
        found.append(port)
    return found


def _container(name: str, chance: random.Random) -> Object:
    found: Object = {"name": name, "image": chance.choice(["x:1", "x:2"])}
    if chance.random() < 0.5:
        found["env"] = _env(chance)
    if chance.random() < 0.4:
        found["ports"] = _ports(chance, "containerPort")
    if chance.random() < 0.4:
        found["args"] = chance.sample(["a", "b", "c"], chance.randint(0, 3))
    if chance.random() < 0.4:
        found["resources"] = {"limits": _some(chance, {"cpu": ["1", "500m"], "memory": ["1Gi"]}, 1)}
    if chance.random() < 0.2:
        found["volumeMounts"] = [{"name": "v", "mountPath": chance.choice(["/a", "/b"])}]
    return found


def _deployment(name: str, chance: random.Random) -> Object:
    containers = [_container(each, chance) for each in chance.sample(["main", "side"], chance.randint(1, 2))]
    pod: Object = {"containers": containers}
    if any("volumeMounts" in each for each in containers):
        pod["volumes"] = [{"name": "v", "emptyDir": {}}]
    if chance.random() < 0.3:
        pod["tolerations"] = [{"key": chance.choice(["k", "l"]), "operator": "Exists"}]
    if chance.random() < 0.3:
        pod["nodeSelector"] = _some(chance, {"zone": ["a", "b"], "disk": ["ssd"]})
    spec: Object = {"selector": {"matchLabels": {"app": "x"}},
                    "template": {"metadata": {"labels": {"app": "x", **_some(chance, {"v": ["1", "2"]})}}, "spec": pod}}
    spec |= _some(chance, {"replicas": [1, 2, 3], "minReadySeconds": [5], "paused": [True]})
    if chance.random() < 0.2:
        spec["strategy"] = chance.choice([{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 1}}])
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta(name, chance), "spec": spec}


def _service(name: str, chance: random.Random) -> Object:
    spec: Object = {"clusterIP": "None", "ports": _ports(chance, "port"),
                    "selector": _some(chance, {"app": ["x", "y"], "role": ["web"]}, 1)}
    spec |= _some(chance, {"sessionAffinity": ["ClientIP", "None"], "publishNotReadyAddresses": [True]})
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(name, chance), "spec": spec}


def _account(name: str, chance: random.Random) -> Object:
    names = chance.sample(["s1", "s2", "s3"], chance.randint(0, 3))
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(name, chance),
            "imagePullSecrets": [{"name": each} for each in names]}


def _thing(name: str, chance: random.Random) -> Object:
    parts = [{"name": each, **_some(chance, {"slot": [0, 1], "size": [1, 2], "tags": [{"t": "1"}, {"u": "2"}]})}
             for each in chance.sample(["p", "q", "r"], chance.randint(0, 3))]
    spec = _some(chance, {
        "replicas": [1, 2], "title": ["x", "y"], "level": ["high", "low"], "words": [["a"], ["b", "a"], ["c", "b"], []],
        "lines": [["1"], ["1", "2"]], "one": [{"a": 1}, {"a": 1, "b": 2}],
        "table": [{"k": "1"}, {"k": "2", "l": "1"}, {}], "limit": [1, "50%"],
        "free": [{"deep": {"er": [1, {"x": 1}]}}, {"deep": 1}, {"deep": {"other": "y"}, "z": None}]})
    if chance.random() < 0.6:
        spec["parts"] = parts
    version = chance.choice(["v1", "v1", "v1beta1"])
    return {"apiVersion": f"patches.example.com/{version}", "kind": "Thing", "metadata": _meta(name, chance),
            "spec": spec}


# --- how they go about it --------------------------------------------------------------------------------------------

Maker = Callable[[str, random.Random], Object]

_PLACES = {"ConfigMap": "/api/v1", "Service": "/api/v1", "ServiceAccount": "/api/v1", "Deployment": "/apis/apps/v1"}
_PLURALS = {"ConfigMap": "configmaps", "Service": "services", "ServiceAccount": "serviceaccounts",
            "Deployment": "deployments", "Thing": "things"}


def _path(thing: Object, name: str = "") -> str:
    root = _PLACES.get(thing["kind"], f"/apis/{thing['apiVersion']}")
    path = f"{root}/namespaces/{NAMESPACE}/{_PLURALS[thing['kind']]}"
    return f"{path}/{name}" if name else path


def _create(thing: Object, chance: random.Random) -> Step:
    return Step("POST", _path(thing), f"fieldManager={chance.choice(MANAGERS)}", "application/json", thing)


def _apply(thing: Object, name: str, chance: random.Random) -> Step:
    query = f"fieldManager={chance.choice(MANAGERS[:3])}"
    if chance.random() < 0.3:
        query += "&force=true"
    if chance.random() < 0.08:
        query += "&dryRun=All"
    return Step("PATCH", _path(thing, name), query, APPLY, _odd(thing, chance))


def _odd(thing: Object, chance: random.Random) -> Object:
    """Now and then a configuration has something wrong with it, or says very little."""
    roll = chance.random()
    if roll < 0.03:
        return {**thing, "unknown": 1}
    if roll < 0.05:
        return {**thing, "metadata": {**thing["metadata"], "name": "other"}}
    if roll < 0.07:
        return {**thing, "metadata": {**thing["metadata"], "managedFields": []}}
    if roll < 0.09:
        return {**thing, "metadata": {**thing["metadata"], "labels": "x"}}
    if roll < 0.12:
        return {key: thing[key] for key in ("apiVersion", "kind", "metadata")}
    return thing


def _merge(thing: Object, name: str, chance: random.Random) -> Step:
    """A merge patch with a part of what somebody wants, and a hole or two."""
    body = {key: value for key, value in thing.items() if key not in {"apiVersion", "kind", "metadata"}}
    if "metadata" in thing and chance.random() < 0.5:
        body["metadata"] = {"labels": {**_labels(chance), "app": None}}
    for key, value in list(body.items()):
        if isinstance(value, dict) and chance.random() < 0.3 and value:
            body[key] = {**value, chance.choice(sorted(value)): None}
    if thing["kind"] == "Deployment":
        body.get("spec", {}).pop("selector", None)
        body.get("spec", {}).pop("template", None)
    media = MERGE
    return Step("PATCH", _path(thing, name), f"fieldManager={chance.choice(MANAGERS)}", media, body)


def _pointers(thing: Object, name: str, chance: random.Random) -> Step:
    operations: list[Object] = [{"op": "add", "path": "/metadata/labels", "value": _labels(chance)}]
    if chance.random() < 0.2:
        operations = [{"op": "replace", "path": "/metadata/managedFields", "value": chance.choice([[], [{}]])}]
    return Step("PATCH", _path(thing, name), f"fieldManager={chance.choice(MANAGERS)}", JSON_PATCH, operations)


def _status(thing: Object, name: str, chance: random.Random) -> Step:
    status = chance.choice([{"replicas": 1}, {"replicas": 2}])
    body = {"apiVersion": thing["apiVersion"], "kind": thing["kind"], "metadata": {"name": name}, "status": status}
    if chance.random() < 0.5:
        return Step("PATCH", _path(thing, name) + "/status", f"fieldManager={chance.choice(MANAGERS[:2])}", APPLY, body)
    return Step("PATCH", _path(thing, name) + "/status", f"fieldManager={chance.choice(MANAGERS)}", MERGE,
                {"status": status, "spec": {"replicas": 9}})


def _scale(thing: Object, name: str, chance: random.Random) -> Iterator[Step]:
    """A scale that is another one for sure, and what it did to the object."""
    replicas = chance.randint(10, 99)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name},
             "spec": {"replicas": replicas}}
    roll, path = chance.random(), _path(thing, name) + "/scale"
    if roll < 0.4 or thing["kind"] == "Thing":       # the real server cannot apply a scale to custom objects
        yield Step("PATCH", path, "fieldManager=scaler", MERGE, {"spec": {"replicas": replicas}})
    elif roll < 0.6:
        yield Step("PATCH", path, "fieldManager=scaler", APPLY, scale)
    else:
        yield Step("PATCH", path, "fieldManager=scaler&force=true", APPLY, scale)
    yield Step("GET", _path(thing, name), "", "application/json", None)


def _applied(make: Maker) -> Callable[[str, random.Random], Iterator[Step]]:
    def story(name: str, chance: random.Random) -> Iterator[Step]:
        if chance.random() < 0.4:
            yield _create(make(name, chance), chance)
        for _ in range(chance.randint(2, 5)):
            thing = make(name, chance)
            roll = chance.random()
            if roll < 0.7:
                yield _apply(thing, name, chance)
            elif roll < 0.85:
                yield _merge(thing, name, chance)
            elif roll < 0.95 or thing["kind"] not in {"Deployment", "Thing"}:
                yield _pointers(thing, name, chance)
            elif roll < 0.98:
                yield _status(thing, name, chance)
            else:
                yield from _scale(thing, name, chance)

    return story


def _subresources(make: Maker) -> Callable[[str, random.Random], Iterator[Step]]:
    def story(name: str, chance: random.Random) -> Iterator[Step]:
        first = make(name, chance)
        first["spec"]["replicas"] = 1
        yield _create(first, chance) if chance.random() < 0.5 else Step(
            "PATCH", _path(first, name), "fieldManager=ann", APPLY, first)
        for _ in range(chance.randint(2, 4)):
            roll, thing = chance.random(), make(name, chance)
            if roll < 0.4:
                yield _status(thing, name, chance)
            elif roll < 0.7:
                yield from _scale(thing, name, chance)
            else:
                yield _apply(thing, name, chance)

    return story


def _client_side(name: str, chance: random.Random) -> Iterator[Step]:
    """kubectl applied on its own side before, and now leaves it to the server."""
    first = _config_map(name, chance)
    text = json.dumps({**first, "metadata": {"name": name}}, separators=(",", ":"))
    noted = {**first, "metadata": {**first["metadata"], "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": text}}}
    yield Step("POST", _path(first), "fieldManager=kubectl-client-side-apply", "application/json", noted)
    if chance.random() < 0.5:
        yield _merge(_config_map(name, chance), name, chance)
    for _ in range(chance.randint(1, 2)):
        yield Step("PATCH", _path(first, name), "fieldManager=kubectl", APPLY, _config_map(name, chance))


# --- strategic merges ------------------------------------------------------------------------------------------------

def _strategic_items(chance: random.Random, items: list[Object], key: str) -> list[Object]:
    found: list[Object] = []
    for item in items:
        roll = chance.random()
        if roll < 0.2:
            found.append({"$patch": "delete", key: item[key]})
        elif roll < 0.25:
            found.append({**item, "$patch": "replace"} if chance.random() < 0.5 else {"$patch": "merge", **item})
        else:
            found.append({name: value for name, value in item.items() if name == key or chance.random() < 0.7})
    if chance.random() < 0.06:
        found.insert(0, {"$patch": "replace"})
    return found


def _strategic_container(chance: random.Random) -> Object:
    found = _container(chance.choice(["main", "side"]), chance)
    if "env" in found:
        found["env"] = _strategic_items(chance, found["env"], "name")
        if chance.random() < 0.3:
            found["$setElementOrder/env"] = [{"name": each} for each in chance.sample(["A", "B", "C"], 3)]
    if "ports" in found:
        found["ports"] = _strategic_items(chance, found["ports"], "containerPort")
    if chance.random() < 0.1:
        found["resources"] = {"$patch": "replace", "limits": {"cpu": "3"}}
    if chance.random() < 0.1:
        found["args"] = None
    return found


def _strategic_deployment(name: str, chance: random.Random) -> Object:
    pod: Object = {"containers": [_strategic_container(chance) for _ in range(chance.randint(0, 2))]}
    if chance.random() < 0.2:
        pod["$setElementOrder/containers"] = [{"name": each} for each in chance.sample(["main", "side"], 2)]
    if chance.random() < 0.2:
        pod["tolerations"] = [{"key": "m", "operator": "Exists"}]
    if chance.random() < 0.2:
        pod["nodeSelector"] = chance.choice([{"zone": None}, {"$patch": "replace", "rack": "1"}, {"rack": "2"}])
    if chance.random() < 0.3:
        pod["volumes"] = chance.choice([
            [{"name": "v", "emptyDir": None, "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}],
            [{"name": "w", "emptyDir": {}}], [{"name": "w", "$patch": "delete"}]])
    patch: Object = {"spec": {"template": {"spec": pod}}}
    patch["spec"] |= _some(chance, {"replicas": [4, None], "paused": [None, False]})
    if chance.random() < 0.2:
        patch["spec"]["strategy"] = {"$retainKeys": ["type"], "type": "Recreate"}
    if chance.random() < 0.3:
        patch["metadata"] = _strategic_meta(chance)
    del name
    return patch


def _strategic_meta(chance: random.Random) -> Object:
    meta: Object = {"labels": chance.choice([{"app": None}, {"new": "1"}, {"$patch": "replace", "only": "1"}, None])}
    if chance.random() < 0.4:
        meta["finalizers"] = chance.choice([["example.com/one"], ["example.com/two", "example.com/one"]])
        if chance.random() < 0.3:
            meta["$setElementOrder/finalizers"] = ["example.com/one", "example.com/two"]
    elif chance.random() < 0.3:
        meta["$deleteFromPrimitiveList/finalizers"] = ["example.com/two"]
    if chance.random() < 0.3:
        meta["ownerReferences"] = chance.choice([
            [{"uid": "aaaaaaaa", "$patch": "delete"}],
            [{"apiVersion": "v1", "kind": "ConfigMap", "name": "cc", "uid": "c"}]])
    return meta


def _strategic_service(name: str, chance: random.Random) -> Object:
    del name
    ports = _ports(chance, "port") or [{"port": 80, "name": "web"}]
    patch: Object = {"spec": {"ports": _strategic_items(chance, ports, "port")}}
    if chance.random() < 0.3:
        patch["spec"]["$setElementOrder/ports"] = [{"port": port["port"]} for port in ports]
    if chance.random() < 0.4:
        patch["spec"]["selector"] = chance.choice([None, {"app": None, "x": "1"}, {"$patch": "replace", "y": "1"}])
    if chance.random() < 0.3:
        patch["metadata"] = _strategic_meta(chance)
    return patch


def _strategic_account(name: str, chance: random.Random) -> Object:
    del name
    secrets = [{"name": each} for each in chance.sample(["s1", "s2", "s4"], chance.randint(1, 3))]
    return {"imagePullSecrets": _strategic_items(chance, secrets, "name"), "metadata": _strategic_meta(chance)}


def _patched(make: Maker, patch: Maker) -> Callable[[str, random.Random], Iterator[Step]]:
    def story(name: str, chance: random.Random) -> Iterator[Step]:
        first = make(name, chance)
        yield _create(first, chance)
        for _ in range(chance.randint(1, 3)):
            yield Step("PATCH", _path(first, name), f"fieldManager={chance.choice(MANAGERS)}", STRATEGIC,
                       patch(name, chance))

    return story


_STORIES: tuple[Callable[[str, random.Random], Iterator[Step]], ...] = (
    _applied(_config_map), _applied(_deployment), _applied(_service), _applied(_thing), _applied(_account),
    _subresources(_deployment), _subresources(_thing), _client_side,
    _patched(_deployment, _strategic_deployment), _patched(_service, _strategic_service),
    _patched(_account, _strategic_account), _applied(_thing), _applied(_deployment),
    _patched(_deployment, _strategic_deployment),
)
