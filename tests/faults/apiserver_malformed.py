"""Requests that are almost right: sound objects of every kind, bent at random, and the options and bytes around them.

Bending what is sound gets deeper into the server than noise, which is refused at the door. Everything comes from one
source of chance, so that a seed and a number name a request.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml
from tests.unit.cluster.apiserver.messages import chunk, enveloped, number

from trainmaster.api import schema
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver.bodies import DEEPEST, depth
from trainmaster.cluster.apiserver.kinds import BUILT_IN
from trainmaster.kube.transport import Request, Response

OBJECTS = Path(__file__).parents[1] / "kubernetes" / "objects.yaml"
JSON, MERGE, STRATEGIC = "application/json", "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SUBRESOURCES = ("status", "scale", "binding", "eviction", "finalize", "ephemeralcontainers", "resize", "nothing")

ODD: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    1.5,
    -0.0,
    1e308,
    "",
    " ",
    "x",
    "X",
    "-",
    ".",
    "..",
    "../..",
    "/",
    "a/b",
    "a" * 64,
    "a" * 254,
    "é",
    "\x00",
    "\u202e",
    "0",
    "-1",
    "1e9999",
    "1Gi",
    "-5m",
    "99999999999999999999Ei",
    "0x10",
    "2030-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "0000-00-00",
    "None",
    "10.0.0.256",
    "::1",
    "10.0.0.0/33",
    "Always",
    "true",
    "$patch",
    "$(X)",
    "{.a[?(@.b==",
    "metadata.name",
    "self == oldSelf",
    "(",
    "[",
    "^(a+)+$",
    "%s",
    "IntOrString",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"a": None},
    {"$patch": "delete"},
    {"$patch": "replace"},
    {"$retainKeys": ["a"]},
    [1, "a", None],
    {"name": "x"},
    [{"name": "x"}, {"name": "x"}],
    {"type": "object"},
    {"$ref": "#"},
    {"x-kubernetes-int-or-string": 1},
)
SELECTORS = (
    "a=b",
    "a in (x",
    "a,,b",
    "!",
    "=",
    "a=b=c",
    "a notin ()",
    "a in (,)",
    "a>1",
    "a<x",
    "metadata.name=",
    "spec.nodeName!=x",
    "a" * 300 + "=b",
    "a/b/c=d",
    "é=é",
    "x in (a,b),!y",
    "status.phase=Running",
    "(((((",
    "a\\=b",
    "a==b,a!=b",
)
NUMBERS = (
    "0",
    "-1",
    "1",
    "x",
    "",
    "1.5",
    "1e3",
    "99999999999999999999999",
    "0x1",
    " 1",
    "+1",
    "true",
    "NaN",
    "9" * 5000,
)
QUERIES: dict[str, Sequence[str]] = {
    "labelSelector": SELECTORS,
    "fieldSelector": SELECTORS,
    "limit": NUMBERS,
    "resourceVersion": NUMBERS,
    "timeoutSeconds": NUMBERS,
    "gracePeriodSeconds": NUMBERS,
    "continue": (
        "x",
        "",
        "eyJydiI6MX0",
        "e30",
        "W10",
        "bnVsbA",
        "A" * 5000,
        "%",
        "eyJydiI6LTEsInN0YXJ0IjoiIn0",
        "eyJydiI6OTk5OTk5OSwic3RhcnQiOiJ4In0",
    ),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "sendInitialEvents": ("true", "1", "x"),
    "watch": ("true", "1", "x", ""),
    "allowWatchBookmarks": ("true", "x"),
    "dryRun": ("All", "x", ""),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "propagationPolicy": ("Foreground", "Orphan", "x"),
    "orphanDependents": ("true", "x"),
    "includeObject": ("Object", "None", "x"),
    "fieldManager": ("x" * 200, "\x00", "m"),
    "force": ("true", "x"),
    "pretty": ("true", "x"),
}
ACCEPTS = (
    JSON,
    "*/*",
    TABLE,
    TABLE.replace("v=v1;", "v=v9;"),
    PROTOBUF,
    "application/yaml",
    "text/html",
    "x",
    ";;;,,,",
    "a/b;q=x",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=x",
)


@dataclass(frozen=True, slots=True)
class Sound:
    """An object that the server takes, and where."""

    resource: Resource
    thing: Object

    @property
    def collection(self) -> str:
        found = self.resource
        root = f"/apis/{found.group}/{found.version}" if found.group else f"/api/{found.version}"
        return f"{root}/namespaces/default/{found.plural}" if found.namespaced else f"{root}/{found.plural}"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.thing['metadata']['name']}"


def sound_objects() -> list[Sound]:
    """One rich object of each built-in kind, and one of each of ours."""
    known = {(kind.resource.api_version, kind.resource.kind): kind.resource for kind in BUILT_IN}
    with OBJECTS.open() as file:
        things = [thing for thing in yaml.safe_load_all(file) if thing]
    found = [
        Sound(known[thing["apiVersion"], thing["kind"]], orjson.loads(orjson.dumps(thing, default=str)))
        for thing in things
        if (thing["apiVersion"], thing["kind"]) in known
    ]
    found.sort(key=lambda sound: sound.thing["kind"] != "ServiceAccount")      # pods name them
    for kind in KINDS:
        resource, definition = kind.resource, schema.definition(kind)
        template = {"spec": {"containers": [{"name": kind.container, "image": "x"}]}}
        thing = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": "custom"},
            "spec": {
                kind.replica_field: {kind.deciding[0]: {"replicas": 1, "template": template}},
                **dict.fromkeys(kind.required, "MXTrain"),
                "runPolicy": {"backoffLimit": 1, "cleanPodPolicy": "None"},
            },
        }
        found += [
            Sound(resource, thing),
            Sound(known["apiextensions.k8s.io/v1", "CustomResourceDefinition"], definition),
        ]
    return found


def bent(chance: random.Random, sound: Json, times: int) -> Json:
    """A copy with something else in a few places, at any depth."""
    body = copy.deepcopy(sound)
    for _ in range(times):
        if depth(body) > DEEPEST:
            break        # it will be refused for that; bent further, it would be too deep to be written down
        places = list(_places(body))
        if not places:
            return chance.choice(ODD)
        holder, key = chance.choice(places)
        match chance.randrange(14):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[str(chance.choice(ODD))[:40]] = copy.deepcopy(chance.choice(ODD))
            case 2:
                holder[key] = copy.deepcopy(chance.choice(places)[0])
            case 3:
                holder[key] = [holder[key]]
            case 4:
                holder[key] = _deep(chance.choice([3, 40, 126, 129, 300]), dicts=chance.random() < 0.5)
            case 5 if isinstance(holder, list):
                holder.extend(copy.deepcopy(holder) * chance.choice([1, 20]))
            case 6:
                holder[key] = copy.deepcopy(chance.choice(ODD))
            case _:  # of the right type, so that it gets past the first look
                alike = [odd for odd in ODD if type(odd) is type(holder[key])]
                holder[key] = copy.deepcopy(chance.choice(alike or ODD))
    return body


def _places(value: Json) -> Iterator[tuple[Json, Json]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _deep(levels: int, *, dicts: bool) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value} if dicts else [value]
    return value


class Malformed:
    """An endless supply."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._sound = sound_objects()
        self._ways: list[Callable[[Sound], Request]] = [
            self._create,
            self._create,
            self._create,
            self._replace,
            self._replace,
            self._patch,
            self._patch,
            self._read,
            self._delete,
            self._part,
            self._bytes,
            self._path,
            self._protobuf,
        ]

    def next(self) -> Request:
        return self._chance.choice(self._ways)(self._chance.choice(self._sound))

    def _create(self, sound: Sound) -> Request:
        return self._with(sound, "POST", sound.collection, self._body(sound))

    def _replace(self, sound: Sound) -> Request:
        return self._with(sound, "PUT", sound.path, self._body(sound))

    def _part(self, sound: Sound) -> Request:
        method = self._chance.choice(["PUT", "PATCH", "POST", "GET", "DELETE"])
        body = self._chance.choice(
            [
                self._body(sound),
                {"spec": {"replicas": self._odd()}},
                {"target": self._odd()},
                {"metadata": {"name": sound.thing["metadata"]["name"]}, "deleteOptions": self._odd()},
                {"status": self._odd()},
                {"status": bent(self._chance, sound.thing.get("status") or {"conditions": []}, 2)},
            ]
        )
        media = self._chance.choice([MERGE, STRATEGIC, JSON_PATCH]) if method == "PATCH" else JSON
        path = f"{sound.path}/{self._chance.choice(SUBRESOURCES)}"
        return self._with(sound, method, path, body, media)

    def _patch(self, sound: Sound) -> Request:
        media = self._chance.choice([MERGE, STRATEGIC, JSON_PATCH, APPLY, "application/x"])
        body: Json = self._body(sound)
        if media == JSON_PATCH and self._chance.random() < 0.8:
            pointers = [
                "",
                "/",
                "/spec",
                "/metadata/name",
                "/metadata/labels/a",
                "/spec/containers/0",
                "/spec/containers/-",
                "/a~2",
                "/spec/containers/99999999999999999999",
                "x",
                "/metadata",
                "/spec/containers/-1",
                "/status/conditions/0",
            ]
            body = [
                {
                    "op": self._chance.choice(["add", "remove", "replace", "move", "copy", "test", "x", 1]),
                    "path": self._chance.choice([*pointers, self._odd()]),
                    "from": self._chance.choice(pointers),
                    "value": self._odd(),
                }
                for _ in range(self._chance.choice([0, 1, 2, 5]))
            ]
            body = bent(self._chance, body, self._chance.randrange(2))
        return self._with(sound, "PATCH", sound.path, body, media)

    def _read(self, sound: Sound) -> Request:
        return self._with(sound, "GET", self._chance.choice([sound.collection, sound.path]), None, query=True)

    def _delete(self, sound: Sound) -> Request:
        options = {
            "gracePeriodSeconds": self._odd(),
            "propagationPolicy": self._odd(),
            "orphanDependents": self._odd(),
            "preconditions": self._chance.choice([self._odd(), {"uid": self._odd(), "resourceVersion": self._odd()}]),
        }
        kept = {key: value for key, value in options.items() if self._chance.random() < 0.5}
        path = self._chance.choice([sound.path, f"{sound.collection}/nothing"])
        return self._with(sound, "DELETE", path, kept, query=True)

    def _bytes(self, sound: Sound) -> Request:
        whole = orjson.dumps(sound.thing)
        media = JSON
        if self._chance.random() < 0.4:
            whole, media = yaml.safe_dump(sound.thing).encode(), "application/yaml"
            if self._chance.random() < 0.3:
                whole += self._chance.choice(
                    [
                        b"\na: &a [*a]",
                        b"\n? [a]\n: b",
                        b"\n!!python/object:x {}",
                        b"\n\t",
                        b"\n---\n{}",
                        b"\nx: " + b"[" * 500,
                        b"\n" + b"{" * 200,
                        b"\n<<: {a: b}",
                        b"\nx: 0o9",
                        b"\ny: !!binary x",
                    ]
                )
        found = bytearray(whole)
        for _ in range(self._chance.randrange(1, 5)):
            at = self._chance.randrange(len(found) or 1)
            match self._chance.randrange(4):
                case 0:
                    found[at : at + 1] = bytes([self._chance.randrange(256)])
                case 1:
                    del found[at:]
                case 2:
                    found[at:at] = self._chance.choice(
                        [b'"', b"{", b"[" * 200, b"\\ud800", b"\xff\xfe", b"\x00", b"1e400", b"NaN"]
                    )
                case _:
                    del found[at : at + self._chance.randrange(20)]
        return self._with(sound, "POST", sound.collection, bytes(found), media)

    def _protobuf(self, sound: Sound) -> Request:
        body = enveloped(sound.resource.api_version, sound.resource.kind, self._message(0))
        if self._chance.random() < 0.4:
            at = self._chance.randrange(len(body))
            body = (
                body[:at] + self._chance.randbytes(self._chance.randrange(8)) + body[at + self._chance.randrange(4) :]
            )
        return self._with(sound, "POST", sound.collection, body, PROTOBUF)

    def _message(self, level: int) -> bytes:
        parts = []
        for _ in range(self._chance.randrange(1, 5)):
            field = self._chance.choice([1, 2, 3, 4, 5, self._chance.randrange(40), 2**29 - 1])
            if level < 6 and self._chance.random() < 0.6:
                parts.append(chunk(field, self._message(level + 1)))
            elif self._chance.random() < 0.5:
                parts.append(chunk(field, self._chance.choice([b"x", b"\xff", b"", b"{}", b"1Gi", b"a" * 300])))
            else:
                parts.append(number(field, self._chance.choice([0, 1, -1, 2**63, 2**31])))
        return b"".join(parts)

    def _path(self, sound: Sound) -> Request:
        parts = sound.path.split("/")
        for _ in range(self._chance.randrange(1, 3)):
            parts[self._chance.randrange(1, len(parts))] = self._chance.choice(
                [
                    "",
                    "..",
                    ".",
                    "é",
                    "\x00",
                    "a" * 5000,
                    "A",
                    "-",
                    "v9",
                    "%2e",
                    "pods",
                    "status",
                    "namespaces",
                    "api",
                    "a b",
                    "\u202e",
                    "?",
                ]
            )
        method = self._chance.choice(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "X"])
        return self._with(sound, method, "/".join(parts), self._body(sound) if method != "GET" else None, query=True)

    def _body(self, sound: Sound) -> Json:
        return bent(self._chance, sound.thing, self._chance.choice([0, 1, 1, 1, 2, 3, 8]))

    def _odd(self) -> Json:
        return copy.deepcopy(self._chance.choice(ODD))

    def _with(
        self, sound: Sound, method: str, path: str, body: Json, media: str = JSON, *, query: bool = False
    ) -> Request:
        chance = self._chance
        pairs = (
            [(name, chance.choice(QUERIES[name])) for name in chance.sample(sorted(QUERIES), chance.randrange(4))]
            if query or chance.random() < 0.2
            else []
        )
        # Most writes leave the world as it is: names and namespaces that end would make the rest boring.
        if method not in {"GET", "HEAD"} and (
            chance.random() < 0.7 or method == "DELETE" or sound.resource.plural == "namespaces"
        ):
            pairs.append(("dryRun", "All"))
        headers = {
            "content-type": media
            if chance.random() < 0.97
            else chance.choice(["", "x", "application/json; charset=x", "/"]),
            "accept": JSON if chance.random() < 0.8 else chance.choice(ACCEPTS),
        }
        sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return Request(method, path, pairs, headers, sent)


def excused(answer: Response) -> bool:
    """The answers above 499 that a real server gives too: a revision still to come, a scale that was never set, a
    patch that it did not foresee, which is told without a reason."""
    return (answer.status == 504 and b"ResourceVersionTooLarge" in answer.body) or (
        answer.status == 500 and (b"spec replicas field" in answer.body or b'"reason"' not in answer.body)
    )
