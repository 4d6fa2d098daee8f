"""Questions that are objects: may I, may they, what may I, who am I, whose token is this. Answered, never stored.

Kubernetes has no other way to ask; `kubectl auth` is nothing but these. A kind whose objects are only answered is
`virtual` in the table of kinds, so the server needs to know no more than where its answers come from.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from trainmaster.api.meta import Object, timestamp
from trainmaster.cluster.apiserver import causes, failures
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.authorization import Authorizer, Rbac
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rbac import Attributes
from trainmaster.cluster.apiserver.rows import row

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io/v1", "authorization.k8s.io/v1"
KINDS: tuple[Kind, ...] = tuple(
    row(api_version, plural, virtual=True) for api_version, plural in (
        (_AUTHENTICATION, "selfsubjectreviews"), (_AUTHENTICATION, "tokenreviews"),
        (_AUTHORIZATION, "localsubjectaccessreviews"), (_AUTHORIZATION, "selfsubjectaccessreviews"),
        (_AUTHORIZATION, "selfsubjectrulesreviews"), (_AUTHORIZATION, "subjectaccessreviews"),
    )
)
# A token and the audiences it should be for -> whose it is and for which of them, or None.
Identify = Callable[[str, Sequence[str]], tuple[Identity, list[str]] | None]


class Reviews:
    def __init__(self, access: Authorizer, rbac: Rbac, identify: Identify) -> None:
        self._access = access
        self._rbac = rbac
        self._identify = identify

    def answer(self, kind: Kind, who: Identity, namespace: str, review: Object, now: datetime) -> Object:
        """The review with its status. Raises Failure 400 or 422."""
        spec = review.get("spec") or {}
        match kind.resource.kind:
            case "SelfSubjectReview":
                return _about(kind, {"creationTimestamp": timestamp(now)}, {"status": {"userInfo": user_info(who)}})
            case "TokenReview":
                return _about(kind, {}, {"spec": spec, "status": self._token(spec)})
            case "SelfSubjectRulesReview":
                return _about(kind, {}, {"spec": {}, "status": self._rules(who, spec)})
            case "SelfSubjectAccessReview":
                subject, faults = who, []
            case _:
                subject, faults = _subject(spec), _subject_faults(spec)
        faults = [*_attribute_faults(spec), *faults]
        wanted = spec.get("resourceAttributes") or {}
        if namespace and not faults and wanted.get("namespace", "") != namespace:
            faults.append(causes.invalid("spec.resourceAttributes.namespace", wanted.get("namespace", ""),
                                         "must match metadata.namespace"))
        if faults:
            raise failures.invalid_kind("", kind.resource.group, "", faults)
        meta = {"namespace": namespace} if namespace else {}
        return _about(kind, meta, {"spec": spec, "status": self._verdict(subject, spec)})

    def _verdict(self, who: Identity, spec: Object) -> Object:
        wanted = attributes(spec)
        decision = self._access.decide(who, wanted)
        reason = self._rbac.why(who, wanted) if decision.allowed else decision.reason
        return {"allowed": decision.allowed, **({"reason": reason} if reason else {})}

    def _rules(self, who: Identity, spec: Object) -> Object:
        namespace = spec.get("namespace") or ""
        if not namespace:
            raise failures.bad_request("no namespace on request")
        rules = [rule.document() for rule in self._rbac.rules(who, namespace)]
        return {"resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
                "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule], "incomplete": False}

    def _token(self, spec: Object) -> Object:
        token, audiences = spec.get("token") or "", spec.get("audiences") or []
        if not token:
            raise failures.bad_request("token is required for TokenReview in authentication")
        found = self._identify(token, audiences)
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        who, fitting = found
        return {"authenticated": True, "user": user_info(who), **({"audiences": fitting} if fitting else {})}


def user_info(who: Identity) -> Object:
    found = {"username": who.user, "uid": who.uid, "groups": list(who.groups),
             "extra": {key: list(values) for key, values in who.extra}}
    return {field: value for field, value in found.items() if value}


def attributes(spec: Object) -> Attributes:
    """What a review asks about."""
    if (path := spec.get("nonResourceAttributes")) is not None:
        return Attributes(str(path.get("verb") or ""), path=str(path.get("path") or ""))
    given = spec.get("resourceAttributes") or {}
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(*(str(given.get(field) or "") for field in fields))


def _about(kind: Kind, meta: Object, rest: Object) -> Object:
    return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, "metadata": meta, **rest}


def _subject(spec: Object) -> Identity:
    extra = tuple(sorted((key, tuple(values)) for key, values in (spec.get("extra") or {}).items()))
    return Identity(str(spec.get("user") or ""), tuple(spec.get("groups") or ()), str(spec.get("uid") or ""), extra)


def _subject_faults(spec: Object) -> list[Cause]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [causes.invalid("spec.user", "", "at least one of user or group must be specified")]


def _attribute_faults(spec: Object) -> list[Cause]:
    resource, path = spec.get("resourceAttributes") is not None, spec.get("nonResourceAttributes") is not None
    if resource and path:
        return [causes.invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"],
                               "cannot be specified in combination with resourceAttributes")]
    if not resource and not path:
        return [causes.invalid("spec.resourceAttributes", None,
                               "exactly one of nonResourceAttributes or resourceAttributes must be specified")]
    return []
