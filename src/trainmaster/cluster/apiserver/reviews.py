"""AdmissionReview: what a webhook is told about a request, and what its answer means. Pure.

Its answer comes from a program of somebody else: every part of it is checked before it is believed, and what is wrong
with it is said in the words of a real server, because people search for them.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import orjson

from trainmaster.api.core import NAMESPACES
from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver import bodies, causes, failures
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.cluster.apiserver.webhooks import REVIEW_VERSIONS

GROUP = "admission.k8s.io"
PATCH_TYPE = "JSONPatch"
_DELETION = ("orphanDependents", "propagationPolicy")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client wants to do, and who it is."""

    operation: str
    resource: Resource                       # as the URL says it
    subresource: str
    namespace: str
    name: str
    who: Identity
    query: Query
    given: Object = field(default_factory=dict)                  # options that came in the body of a deletion
    kind: Resource | None = None             # what is sent where it is not of the resource's kind: Scale, Binding
    shown: Callable[[Object], Object] | None = None              # what of the stored object is of that kind
    taken: Callable[[Object, Object], Object] | None = None      # the stored object with what came back of it

    @property
    def dry_run(self) -> bool:
        return bool(any(self.query.all("dryRun")) or self.given.get("dryRun"))


class Broken(Exception):
    """The webhook did not do its part. Whether that matters is for its failure policy to say."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook said."""

    allowed: bool
    status: Object = field(default_factory=dict)
    patch: Sequence[Json] = ()
    warnings: tuple[str, ...] = ()


def version_of(offered: Sequence[str]) -> str:
    """The first review version that both sides know. Raises Broken."""
    for version in offered:
        if version in REVIEW_VERSIONS:
            return version
    raise Broken("could not create admission objects: webhook does not accept known AdmissionReview versions "
                 "(v1, v1beta1)")


def request(uid: str, asked: Asked, seen_as: Resource, new: Object | None, old: Object | None) -> Object:
    """The `request` of a review, its fields in the order of a real server."""
    kind = asked.kind or seen_as
    found: Object = {"uid": uid, "kind": _kind(kind), "resource": _resource(seen_as)}
    if asked.subresource:
        found["subResource"] = asked.subresource
    found |= {"requestKind": _kind(asked.kind or asked.resource), "requestResource": _resource(asked.resource)}
    if asked.subresource:
        found["requestSubResource"] = asked.subresource
    name = asked.name or ((new or old or {}).get("metadata") or {}).get("name") or ""
    if name:
        found["name"] = name
    if namespace := asked.namespace or (name if asked.resource == NAMESPACES else ""):
        found["namespace"] = namespace
    found |= {"operation": asked.operation, "userInfo": _user(asked.who), "object": new, "oldObject": old,
              "dryRun": asked.dry_run, "options": _options(asked)}
    return found


def _options(asked: Asked) -> Object | None:
    """How the request is to be carried out, as one object, wherever it was said."""
    if asked.operation == "CONNECT":
        return None
    found: Object = {"kind": f"{asked.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    query = asked.query
    if asked.operation == "DELETE":
        said = {**{field_: query.text(field_) for field_ in _DELETION}, **asked.given}
        if grace := query.text("gracePeriodSeconds"):
            said.setdefault("gracePeriodSeconds", int(grace))
        said["dryRun"] = [*(asked.given.get("dryRun") or ()), *query.all("dryRun")]
        return found | {field_: said[field_] for field_ in ("gracePeriodSeconds", "preconditions", *_DELETION, "dryRun")
                        if said.get(field_) not in (None, "", [])}
    if asked.dry_run:
        found["dryRun"] = query.all("dryRun")
    return found | {field_: query.text(field_) for field_ in ("fieldManager", "fieldValidation") if query.text(field_)}


def document(version: str, about: Object) -> bytes:
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": about})


def verdict(answer: Json, uid: str, version: str, *, mutating: bool) -> Verdict:
    """What an answer to a review means. Raises Broken."""
    try:
        return _verdict(answer, uid, version, mutating=mutating)
    except _Lies as error:
        raise Broken(f"received invalid webhook response: {error}") from error


class _Lies(Exception):
    """What is wrong with an answer."""


def _verdict(answer: Json, uid: str, version: str, *, mutating: bool) -> Verdict:
    if not isinstance(answer, dict):
        raise _Lies("the answer is not an object")
    _check_type(answer.get("apiVersion") or "", answer.get("kind") or "", version)
    response = answer.get("response")
    if response is None:
        raise _Lies("webhook response was absent")
    if not isinstance(response, dict):
        raise _Lies("the response is not an object")
    if version == "v1":
        _check_identity(answer, response, uid)
        _check_patch_fields(response, mutating=mutating)
    warnings = response.get("warnings") or ()
    status = response.get("status") or {}
    if not isinstance(warnings, list | tuple) or not isinstance(status, dict):
        raise _Lies("its warnings are not a list, or its status is not an object")
    return Verdict(response.get("allowed") is True, status, _patch(response) if mutating else (),
                   tuple(text for text in warnings if isinstance(text, str)))


def _check_type(api_version: Json, kind: Json, version: str) -> None:
    """An answer that says what it is must be a review of the version that was asked. Raises Broken."""
    if not api_version or not kind:
        return      # the next check is about that
    if kind != "AdmissionReview" or api_version not in {f"{GROUP}/{known}" for known in REVIEW_VERSIONS}:
        raise Broken(f"failed to call webhook: no kind {causes.quoted(kind)} is registered for version "
                     f'{causes.quoted(api_version)} in scheme "pkg/runtime/scheme.go:111"')
    if api_version != f"{GROUP}/{version}":
        said = api_version.rpartition("/")[2]
        raise Broken(f"failed to call webhook: converting ({said}.AdmissionReview) to ({version}.AdmissionReview): "
                     "unknown conversion")


def _check_identity(answer: Object, response: Object, uid: str) -> None:
    if response.get("uid") != uid:
        raise _Lies(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    said = f"{answer.get('apiVersion') or ''}, Kind={answer.get('kind') or ''}"
    wanted = f"{GROUP}/v1, Kind=AdmissionReview"
    if said != wanted:
        raise _Lies(f"expected webhook response of {wanted}, got {said}")


def _check_patch_fields(response: Object, *, mutating: bool) -> None:
    patch, type_ = response.get("patch"), response.get("patchType")
    if not mutating:
        for field_, found in (("patch", patch), ("patchType", type_)):
            if found:
                raise _Lies(f"validating webhook may not return response.{field_}")
    elif patch and type_ is None:
        raise _Lies("webhook returned response.patch but not response.patchType")
    elif not patch and type_ is not None:
        raise _Lies("webhook returned response.patchType but not response.patch")
    elif type_ == "":
        raise _Lies('webhook returned invalid response.patchType of ""')


def _patch(response: Object) -> Sequence[Json]:
    packed = response.get("patch")
    if not packed or response.get("allowed") is not True:
        return ()
    try:
        found = orjson.loads(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError, TypeError) as error:
        raise Broken(f"received undecodable patch in webhook response: {str(error)[:200]}") from error
    if not isinstance(found, list):
        raise Broken("received undecodable patch in webhook response: json: cannot unmarshal "
                     f"{causes.type_name(found)} into Go value of type jsonpatch.Patch")
    if bodies.depth(found) > bodies.DEEPEST:
        raise Broken(f"received undecodable patch in webhook response: nested more than {bodies.DEEPEST} levels deep")
    if found and response.get("patchType") not in {None, PATCH_TYPE}:
        raise Broken(f"unsupported patch type {causes.quoted(response['patchType'])}")
    return found


def denial(name: str, status: Object) -> failures.Failure:
    """What whoever is refused gets: the webhook's own words, after its name."""
    code, reason, said = status.get("code"), status.get("reason"), status.get("message")
    because = f": {said or reason}" if said or reason else " without explanation"
    details = status.get("details")
    return failures.Failure(
        code if isinstance(code, int) and 400 <= code <= 599 else 400, str(reason or ""),
        f'admission webhook "{name}" denied the request{because}', details if isinstance(details, dict) else None)


def _kind(kind: Resource) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(who: Identity) -> Object:
    found: Object = {"username": who.user}
    if who.uid:
        found["uid"] = who.uid
    found["groups"] = list(who.groups)
    if who.extra:
        found["extra"] = {name: list(values) for name, values in who.extra}
    return found
