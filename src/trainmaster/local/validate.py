"""What is wrong with manifests, asked of the embedded API server itself: in memory, without a cluster, nothing stored.

A second set of rules would be wrong sooner or later, so the server that ships judges: each object is created as a dry
run with strict field validation, and each pod template of a job once more as the pod that it will become (definitions
of jobs let templates pass, so that they fit every Kubernetes). What depends on a cluster (a namespace, a quota, an
account) is not asked. Findings come back with the field; what to write instead is added by `remedies`.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import orjson

from trainmaster.api.core import DEFINITIONS, PODS
from trainmaster.api.kubeflow_v1 import KINDS, JobKind, kind_named
from trainmaster.api.meta import Json, Object, Resource
from trainmaster.api.schema import definitions
from trainmaster.api.validation import advice, problems
from trainmaster.cluster.apiserver import builtin
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.store import Store
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.local.remedies import near, remedy
from trainmaster.runtime.clock import RealClock
from trainmaster.sdk.doubts import as_pod

NAMESPACE = "default"
MOST_LOOKS = 20
_UNKNOWN = re.compile(r'(unknown|duplicate) field "([^"]+)"')
_STRICT = "strict decoding error: "
_CANNOT = re.compile(r".* cannot be handled as a \w+: ")
_TYPES = "Invalid value: Expected `"
# What is not a mistake of the manifest: a field of its own makes the pod valid once it is one.
_OF_A_CLUSTER = frozenset({401, 403, 404, 405, 409, 429})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or (`advice`) hardly meant."""

    field: str
    what: str
    remedy: str = ""
    advice: bool = False

    def __str__(self) -> str:
        said = f"{self.field}: {self.what}" if self.field else self.what
        return f"{said}. {self.remedy}" if self.remedy else said


class Validator:
    """Asks a server that holds nothing but the definitions of our kinds."""

    def __init__(self, server: ApiServer) -> None:
        self._wire = InProcess(server, Identity("validate", ("system:masters",)))
        self._kinds = {(each.api_version, each.kind): each for each in _served()}

    async def findings(self, thing: Object) -> list[Finding]:
        """Everything wrong with an object, each once, in the order of discovery."""
        resource = self._kinds.get((str(thing.get("apiVersion")), str(thing.get("kind"))))
        if resource is None:
            return [self._no_such_kind(str(thing.get("apiVersion")), str(thing.get("kind")))]
        job = kind_named(resource.kind) if resource.group == "kubeflow.org" else None
        if job is None:
            return await self._asked(resource, thing)
        ours = _once([Finding(each.field, each.message, remedy(each.field, each.message, thing, job))
                      for each in problems(thing)])
        server = [*await self._asked(resource, thing), *await self._templates(thing, job)]
        if server:
            ours = [each for each in ours if not each.what.startswith(_TYPES)]      # it names the field more exactly
        told = {_same(each.field) for each in ours}
        found = [*ours, *(each for each in server if _same(each.field) not in told)]
        return [*found, *(Finding("", text, advice=True) for text in advice(thing))]

    async def _asked(self, resource: Resource, thing: Object) -> list[Finding]:
        """What the server says; after each refusal that hides others, again without what it refused."""
        rest: Object = orjson.loads(orjson.dumps(thing, default=str, option=orjson.OPT_NON_STR_KEYS))
        found: list[Finding] = []
        gone: set[str] = set()
        for _ in range(MOST_LOOKS):
            status = await self._status(resource, rest)
            told = [each for each in _told(status) if _same(each.field) not in gone] if status else []
            found += [_with_hint(each, resource, thing) for each in told]
            if not told or status.get("code") == 422 or not all(_removed(rest, each.field) for each in told):
                break
            gone |= {_same(each.field) for each in told}
        return found

    async def _status(self, resource: Resource, thing: Object) -> Object:
        """The refusal of the server, empty if there is none."""
        meta = {**(thing.get("metadata") or {}), **({"namespace": NAMESPACE} if resource.namespaced else {})}
        query = (("dryRun", "All"), ("fieldValidation", "Strict"))
        answer = await self._wire.send(Request(
            "POST", resource.path(NAMESPACE if resource.namespaced else ""), query,
            {"content-type": "application/json"}, orjson.dumps({**thing, "metadata": meta})))
        if answer.status < 400 or answer.status in _OF_A_CLUSTER:
            return {}
        found: Object = orjson.loads(answer.body)
        return found

    async def _templates(self, thing: Object, kind: JobKind) -> list[Finding]:
        specs = (thing.get("spec") or {}).get(kind.replica_field)
        found: list[Finding] = []
        for role, spec in specs.items() if isinstance(specs, dict) else ():
            template = spec.get("template") if isinstance(spec, dict) else None
            if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
                continue
            where = f"spec.{kind.replica_field}[{role}].template."
            for each in await self._asked(PODS, as_pod(template)):
                if each.field:
                    path = where + each.field
                    found.append(replace(each, field=path, remedy=each.remedy or remedy(path, each.what, thing)))
        return found

    def _no_such_kind(self, api_version: str, kind: str) -> Finding:
        elsewhere = [version for version, name in self._kinds if name == kind]
        if elsewhere:
            return Finding("apiVersion", f"there is no {kind} in {api_version}",
                           f"Write apiVersion: {elsewhere[0]}.")
        names = [name for _, name in self._kinds]
        meant = near(kind, names)
        if meant:
            version = next(version for version, name in self._kinds if name == meant)
            return Finding("kind", f"there is no {kind} in {api_version}",
                           f"Did you mean {meant}, in {version}?")
        return Finding("kind", f"{kind} in {api_version} is not known here, so it was not checked", advice=True)


@asynccontextmanager
async def validating() -> AsyncIterator[Validator]:
    """A validator until the end of the block."""
    store = Store.open(None)
    try:
        server = ApiServer(store, clock=RealClock())
        await server.start()
        try:
            client = Client(InProcess(server, Identity("validate", ("system:masters",))))
            for definition in definitions():
                await client.create(DEFINITIONS, definition)
            yield Validator(server)
        finally:
            await server.close()
    finally:
        await store.close()


def _served() -> Iterator[Resource]:
    yield from (kind.resource for kind in KINDS)
    for kinds in builtin.served().values():
        yield from (each.resource for each in kinds if "create" in each.verbs)


def _told(status: Object) -> Iterator[Finding]:
    """The findings in a refusal."""
    message = str(status.get("message", ""))
    if _STRICT in message:
        for what, path in _UNKNOWN.findall(message):
            name = path.rpartition(".")[2]
            said = f"there is no field '{name}'" if what == "unknown" else "is written twice"
            yield Finding(path, said, "" if what == "unknown" else "Keep one of them.")
        return
    causes = (status.get("details") or {}).get("causes") or ()
    if status.get("code") == 422 and causes:
        yield from (Finding(str(each.get("field", "")), str(each.get("message", ""))) for each in causes)
        return
    said = _CANNOT.sub("", message)
    path, _, what = said.partition(" ")
    yield Finding(path, what) if "." in path or "[" in path else Finding("", said)


def _with_hint(found: Finding, resource: Resource, thing: Object) -> Finding:
    """A field that does not exist is nearly always one that does, with a letter wrong."""
    if not found.what.startswith("there is no field"):
        return replace(found, remedy=found.remedy or remedy(found.field, found.what, thing))
    parent, _, name = found.field.rpartition(".")
    meant = near(name, _fields(resource, parent))
    return replace(found, remedy=f"Did you mean '{meant}'?" if meant else
                   "Take it out, or look where it belongs: it may be indented too far or not far enough.")


def _once(found: list[Finding]) -> list[Finding]:
    """Without those that say less than another about the same field: a list of containers that is not there, twice."""
    fields = [each.field for each in found]
    return [each for each in found if "must be specified" not in each.what or fields.count(each.field) == 1]


def _fields(resource: Resource, path: str) -> list[str]:
    """The names of the fields that an object has at a path."""
    parts = re.findall(r"\[[^\]]*\]|[^.\[\]]+", path)
    job = kind_named(resource.kind) if resource.group == "kubeflow.org" else None
    if job is not None:
        return _in_schema(next(each for each in definitions() if each["spec"]["names"]["kind"] == job.kind), parts)
    type_ = builtin.shape_of(resource.api_version, resource.kind)
    for part in parts:
        if type_ is None or part.startswith("["):
            continue
        known = type_.fields.get(part)
        type_ = known.type if known is not None else None
    return list(type_.fields) if type_ is not None else []


def _in_schema(definition: Object, parts: Iterable[str]) -> list[str]:
    schema: Json = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in parts:
        schema = schema if isinstance(schema, dict) else {}
        inner = (schema.get("properties") or {}).get(part)
        schema = inner if inner is not None else schema.get("additionalProperties") or schema.get("items")
    return list((schema or {}).get("properties") or ()) if isinstance(schema, dict) else []


def _removed(thing: Object, path: str) -> bool:
    """Take a field away; False if it is not there."""
    *way, last = re.findall(r"[^.\[\]]+", path) or [""]
    inner: Json = thing
    for part in way:
        if isinstance(inner, list) and part.isdigit() and int(part) < len(inner):
            inner = inner[int(part)]
        else:
            inner = inner.get(part) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or last not in inner:
        return False
    del inner[last]
    return True


def _same(path: str) -> str:
    """Rules name the keys of a map in brackets, schemas after a dot."""
    return re.sub(r"\[([^\]]*)\]", r".\1", path)
