"""What happens to a write when webhooks have a say, as rows that two judges read: the embedded server in unit tests,
and a real kube-apiserver that asks the same webhooks (tests/kubernetes).

A row registers webhooks and sends one request; `hook_answers.yaml` has what a real server answers: for a refusal its
code and message, otherwise labels and data of the object; then the last warning. UID and PORT stand for what is random.
"""

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

import orjson
import yaml
from aiohttp import web
from tests.unit.cluster.apiserver.hook_server import (
    HookServer,
    Say,
    add_label,
    configuration,
    deny,
    hook,
    patch,
    place,
)

from trainmaster.api.meta import Json, Object
from trainmaster.kube.transport import Request, Transport

_ANSWERS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("hook_answers.yaml").read_text())
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_RANDOM = ((re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"), (re.compile(r"127\.0\.0\.1:\d+"), "PORT"))


@dataclass(frozen=True, slots=True)
class Case:
    when: str
    hooks: tuple[Object, ...]                     # of `hook`, with a path where its client will be
    says: dict[str, Say | web.Response]
    kind: str = "Validating"
    more: tuple[Object, ...] = ()                 # of the other kind
    body: Object = field(default_factory=lambda: config_map())
    before: Object | None = None                  # made first, without webhooks
    method: str = "POST"
    path: str = MAPS
    query: str = ""
    media: str = "application/json"
    asked: tuple[str, ...] | None = None          # the paths that were asked, in order
    ours: str = ""                                # where we say it in other words

    @property
    def said(self) -> str:
        return _ANSWERS[self.when]

    def configurations(self, server: HookServer) -> list[Object]:
        other = "Mutating" if self.kind == "Validating" else "Validating"
        return [configuration(kind, *({**each, "clientConfig": _client(server, each)} for each in hooks))
                for kind, hooks in ((self.kind, self.hooks), (other, self.more)) if hooks]


def _client(server: HookServer, each: Object) -> Object:
    client = each["clientConfig"]
    return server.client(client) if isinstance(client, str) else dict(client)


def config_map(name: str = "m", labels: dict[str, str] | None = None, **data: str) -> Object:
    meta: Object = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"a": "b"}}


def outcome(code: int, answer: Object, warnings: str) -> str:
    """The part of an answer that must be the same on both servers."""
    if code >= 400:
        told = f"{code} {answer.get('reason', '')}: {answer.get('message')}"
    else:
        labels = answer.get("metadata", {}).get("labels", {})
        told = f"{code} {dict(sorted(labels.items()))} {answer.get('data', {})}"
    if said := _WARNING.findall(warnings):
        told += f" | {said[-1]}"
    for pattern, word in _RANDOM:
        told = pattern.sub(word, told)
    return told


def _answers(**response: Json) -> Say:
    return lambda _request: response


def _whole(**more: Json) -> Say:
    """An answer whose outside is not what it should be."""
    def say(request: Object) -> Json:
        response = {"uid": request["uid"], "allowed": True}
        return {"whole": {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response, **more}}

    return say


def _packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_ADD_DATA: Say = patch({"op": "add", "path": "/data/by", "value": "hook"})
NOWHERE = {"url": "https://127.0.0.1:1/x"}
M = "Mutating"

CASES = [
    Case("it allows", (hook("/yes"),), {}, asked=("/yes",)),
    Case("it refuses with a message", (hook("/no"),), {"/no": deny("not today")}),
    Case("it refuses without a word", (hook("/no"),), {"/no": deny()}),
    Case("it refuses with a reason only", (hook("/no"),), {"/no": deny(reason="Because")}),
    Case("it refuses with a code of its own", (hook("/no"),), {"/no": deny("full", code=403, reason="Forbidden")}),
    Case("it refuses with a code that is no refusal", (hook("/no"),), {"/no": deny("hm", code=200)}),
    Case("it refuses with details", (hook("/no"),),
         {"/no": deny("bad", code=422, reason="Invalid", details={"causes": [{"field": "data", "message": "x"}]})}),
    Case("it warns and allows", (hook("/warn"),), {"/warn": _answers(allowed=True, warnings=["old", "older", "old"])}),
    Case("it warns and refuses", (hook("/warn"),),
         {"/warn": _answers(allowed=False, warnings=["old"], status={"message": "no"})}),
    Case("the first of two refuses", (hook("/no", "a.example.com"), hook("/yes", "b.example.com")),
         {"/no": deny("no")}),
    Case("it changes the object", (hook("/patch"),), {"/patch": _ADD_DATA}, kind=M),
    Case("it changes nothing", (hook("/patch"),), {"/patch": patch()}, kind=M),
    Case("a changing one refuses", (hook("/no"),), {"/no": deny("no")}, kind=M),
    Case("the second sees what the first made", (hook("/one", "b.example.com"), hook("/two", "a.example.com")), {
        "/one": add_label("one", "1"), "/two": patch({"op": "add", "path": "/metadata/labels/two", "value": "2"})},
         kind=M, asked=("/one", "/two")),
    Case("those that judge see what the others made", (hook("/label"),), {
        "/label": add_label("one", "1"), "/judge": lambda request: {
            "allowed": False, "status": {"message": str(request["object"]["metadata"].get("labels"))}}}, kind=M,
         more=(hook("/judge"),)),
    Case("the first is asked again when the second changed something",
         (hook("/one", "a.example.com", reinvocationPolicy="IfNeeded"), hook("/two", "b.example.com")),
         {"/one": add_label("one", "1"), "/two": add_label("two", "2")}, kind=M, asked=("/one", "/two", "/one")),
    Case("nobody is asked again when the last changed nothing",
         (hook("/one", "a.example.com", reinvocationPolicy="IfNeeded"), hook("/two", "b.example.com")),
         {"/one": add_label("one", "1")}, kind=M, asked=("/one", "/two")),
    Case("one that does not want to be asked again is not",
         (hook("/one", "a.example.com"), hook("/two", "b.example.com")),
         {"/one": add_label("one", "1"), "/two": add_label("two", "2")}, kind=M, asked=("/one", "/two")),
    Case("an endless quarrel ends",
         (hook("/one", "a.example.com", reinvocationPolicy="IfNeeded"),
          hook("/two", "b.example.com", reinvocationPolicy="IfNeeded")),
         {"/one": patch({"op": "add", "path": "/metadata/labels", "value": {"x": "1"}}),
          "/two": patch({"op": "add", "path": "/metadata/labels", "value": {"x": "2"}})}, kind=M,
         asked=("/one", "/two", "/one", "/two")),
    Case("it changes a field that does not exist", (hook("/patch"),),
         {"/patch": patch({"op": "add", "path": "/nosuch", "value": 1})}, kind=M),
    Case("its change makes the object invalid", (hook("/patch"),),
         {"/patch": patch({"op": "add", "path": "/data/a b", "value": "x"})}, kind=M),
    Case("its change makes no object of the kind", (hook("/patch"),),
         {"/patch": patch({"op": "replace", "path": "/data", "value": 7})}, kind=M,
         ours="500 InternalError: Internal error occurred: data must be an object, not integer"),
    Case("it takes the name of a new object away", (hook("/patch"),),
         {"/patch": patch({"op": "replace", "path": "/metadata/name", "value": "other"})}, kind=M),
    Case("it moves a new object elsewhere", (hook("/patch"),),
         {"/patch": patch({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"})}, kind=M),
    Case("it renames an object that is there", (hook("/patch", operations=("UPDATE",)),),
         {"/patch": patch({"op": "replace", "path": "/metadata/name", "value": "other"})}, kind=M,
         before=config_map(), method="PUT", path=f"{MAPS}/m"),
    Case("it changes what is frozen", (hook("/patch", operations=("UPDATE",)),), {"/patch": _ADD_DATA}, kind=M,
         before={**config_map(), "immutable": True}, body={**config_map(), "immutable": True}, method="PUT",
         path=f"{MAPS}/m"),
    Case("its patch does not apply", (hook("/patch"),),
         {"/patch": patch({"op": "remove", "path": "/data/nosuch"})}, kind=M,
         ours="500 InternalError: Internal error occurred: the server rejected our request due to an error in our "
              "request"),
    Case("its patch is not one", (hook("/patch"),),
         {"/patch": _answers(allowed=True, patchType="JSONPatch", patch=_packed("no"))}, kind=M,
         ours='500 InternalError: Internal error occurred: failed calling webhook "a.example.com": received '
              "undecodable patch in webhook response: invalid literal, expected 'null': line 1 column 1 (char 0)"),
    Case("its patch has another type", (hook("/patch"),),
         {"/patch": _answers(allowed=True, patchType="Merge", patch=_packed('[{"op": "remove", "path": "/data"}]'))},
         kind=M),
    Case("its patch has no type", (hook("/patch"),), {"/patch": _answers(allowed=True, patch=_packed("[]"))}, kind=M),
    Case("a type and no patch", (hook("/patch"),), {"/patch": _answers(allowed=True, patchType="JSONPatch")}, kind=M),
    Case("one that judges sends a patch", (hook("/patch"),), {"/patch": _ADD_DATA}),
    Case("it answers for another request", (hook("/lie"),), {"/lie": _answers(uid="x", allowed=True)}),
    Case("it answers with nothing", (hook("/lie"),), {"/lie": _whole(response=None)}),
    Case("it answers as another kind", (hook("/lie"),), {"/lie": _whole(kind="Nonsense")}),
    Case("it answers in another version", (hook("/lie"),), {"/lie": _whole(apiVersion="admission.k8s.io/v1beta1")}),
    Case("an old one needs no uid", (hook("/old", admissionReviewVersions=["v1beta1"]),),
         {"/old": lambda _request: {"whole": {"response": {"allowed": False, "status": {"message": "old"}}}}}),
    Case("it is asked in the first version that it names", (hook("/old", admissionReviewVersions=["v1beta1", "v1"]),),
         {"/old": lambda _request: {"whole": {"response": {"allowed": True}}}}),
    Case("it does not speak JSON", (hook("/junk"),), {"/junk": web.Response(text="hello")},
         ours='500 InternalError: Internal error occurred: failed calling webhook "a.example.com": failed to call '
              "webhook: couldn't get version/kind; json parse error: unexpected character, "
              "expected a JSON value: line 1 column 1 (char 0)"),
    Case("it is not there under this path", (hook("/gone"),), {"/gone": web.Response(status=404, text="no")}),
    Case("it breaks", (hook("/broken"),), {"/broken": web.Response(status=500, text="oh no")}),
    Case("it is overloaded", (hook("/busy"),), {"/busy": web.Response(status=503)}),
    Case("it says what is wrong as a Status", (hook("/status"),), {"/status": web.json_response(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "as you say", "code": 418},
        status=418)}),
    Case("it sends us elsewhere", (hook("/moved"),),
         {"/moved": web.Response(status=302, headers={"Location": "/yes"})},
         ours='500 InternalError: Internal error occurred: failed calling webhook "a.example.com": failed to call '
              "webhook: it answered with a redirect (302), which is not followed"),
    Case("it is down", (hook(NOWHERE),), {},
         ours='500 InternalError: Internal error occurred: failed calling webhook "a.example.com": failed to call '
              'webhook: Post "https://PORT/x?timeout=10s": dial tcp PORT: connect: connection refused'),
    Case("it is down, which does not matter", (hook(NOWHERE, failurePolicy="Ignore"),), {}),
    Case("it lies, which does not matter", (hook("/lie", failurePolicy="Ignore"),),
         {"/lie": _answers(uid="x", allowed=False)}),
    Case("it refuses, which matters always", (hook("/no", failurePolicy="Ignore"),), {"/no": deny("no")}),
    Case("it is slow", (hook("/slow", timeoutSeconds=1),), {}),
    Case("a changing one is down, which does not matter",
         (hook(NOWHERE, "a.example.com", failurePolicy="Ignore"), hook("/patch", "b.example.com")),
         {"/patch": _ADD_DATA}, kind=M),
    Case("the labels of the object do not match", (hook("/no", objectSelector={"matchLabels": {"a": "b"}}),),
         {"/no": deny("no")}, asked=()),
    Case("the labels of the object match", (hook("/no", objectSelector={"matchLabels": {"a": "b"}}),),
         {"/no": deny("no")}, body=config_map(labels={"a": "b"})),
    Case("the labels of the object matched before", (hook("/no", operations=("UPDATE",),
                                                          objectSelector={"matchLabels": {"a": "b"}}),),
         {"/no": deny("no")}, before=config_map(labels={"a": "b"}), method="PUT", path=f"{MAPS}/m"),
    Case("the namespace is not meant", (hook("/no", namespaceSelector={"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}]}),),
         {"/no": deny("no")}, asked=()),
    Case("another operation", (hook("/no", operations=("UPDATE", "DELETE")),), {"/no": deny("no")}, asked=()),
    Case("a patch is an update", (hook("/no", operations=("UPDATE",)),), {"/no": deny("no")},
         before=config_map(), method="PATCH", path=f"{MAPS}/m", body={"data": {"c": "d"}},
         media="application/merge-patch+json"),
    Case("a patch that changes nothing is an update too", (hook("/no", operations=("UPDATE",)),), {"/no": deny("no")},
         before=config_map(), method="PATCH", path=f"{MAPS}/m", body={}, media="application/merge-patch+json"),
    Case("a deletion is refused", (hook("/no", operations=("DELETE",)),), {"/no": deny("no")},
         before=config_map(), method="DELETE", path=f"{MAPS}/m", body={}),
    Case("a deletion cannot be changed", (hook("/patch", operations=("DELETE",)),), {"/patch": _ADD_DATA}, kind=M,
         before=config_map(), method="DELETE", path=f"{MAPS}/m", body={}),
    Case("a deletion of many is refused", (hook("/no", operations=("DELETE",)),), {"/no": deny("no", code=403)},
         before=config_map(labels={"many": "yes"}), method="DELETE", query="labelSelector=many%3Dyes", body={}),
    Case("a dry run asks too", (hook("/no"),), {"/no": lambda request: {
        "allowed": False, "status": {"message": f"dry run: {request['dryRun']}"}}}, query="dryRun=All"),
    Case("what exists already is not asked about twice", (hook("/yes"),), {}, before=config_map(), asked=("/yes",)),
    Case("an invalid object is not shown to those that judge", (hook("/yes"),), {},
         body={**config_map(), "data": {"a b": "c"}}, asked=()),
    Case("a namespace that is not there comes first", (hook("/no"),), {"/no": deny("no")},
         path="/api/v1/namespaces/nowhere/configmaps", asked=()),
    Case("a webhook for everything is not asked about webhooks",
         (hook("/no", resources=("*/*",), groups=("*",), versions=("*",), operations=("*",)),), {"/no": deny("no")},
         path="/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
         body=configuration("Validating", name="m"), asked=()),
]


class Settled:
    """In the embedded server a configuration is in force when its write is answered."""

    def prepared(self, thing: Object) -> Object:
        return thing

    async def wait(self, thing: Object, *, there: bool) -> None:
        """Return once it is in force, or no longer."""


async def ask(carrier: Transport, method: str, path: str, body: Json = None, *, query: str = "",
              media: str = "application/json") -> tuple[int, Object, str]:
    """Code, body and warnings of an answer."""
    sent = b"" if body is None else orjson.dumps(body)
    pairs = parse_qsl(query, keep_blank_values=True)
    headers = {"accept": "application/json", "content-type": media}
    answer = await carrier.send(Request(method, path, pairs, headers, sent))
    warnings = answer.warnings or [answer.headers.get("warning", "")]
    return answer.status, orjson.loads(answer.body), ", ".join(warnings)


async def played(carrier: Transport, server: HookServer, case: Case, settled: Settled) -> tuple[str, list[str]]:
    """What comes back, and who was asked for it; then everything is as before.

    `settled` adds to a configuration what it needs to tell when it is in force, and waits until it is, or no longer is.
    """
    collection = case.path if case.method == "POST" or case.query else case.path.rpartition("/")[0]
    if case.before is not None:
        assert (await ask(carrier, "POST", collection, case.before))[0] == 201
    made = case.configurations(server)
    for thing in made:
        assert (await ask(carrier, "POST", place(_family(thing)), settled.prepared(thing)))[0] == 201
        await settled.wait(thing, there=True)
    server.asked.clear()
    server.says = dict(case.says)
    body = None if case.method == "DELETE" else case.body
    answer = await ask(carrier, case.method, case.path, body, query=case.query, media=case.media)
    asked, server.says = server.paths, {}
    for thing in made:
        await ask(carrier, "DELETE", place(_family(thing), "hooks"))
        await settled.wait(thing, there=False)
    for path in (f"{MAPS}/m", f"{MAPS}/other", place("Validating", "m")):
        await ask(carrier, "DELETE", path)
    return outcome(*answer), asked


def _family(thing: Object) -> str:
    return str(thing["kind"]).removesuffix("WebhookConfiguration")
