"""Whom a webhook concerns. Pure.

Half of the answer depends only on what kind of request it is (operation, resource, subresource) and is worked out once
per kind of request (`candidates`); the other half on the objects (`Hook.selects`, and conditions in `chain`). So a
request that nothing is registered for pays one lookup.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainmaster.api import labels
from trainmaster.api.meta import Object, Resource

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class Look(Protocol):
    """What is stored, for those who judge in this process."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...

    def all(self, resource: Resource) -> list[Object]: ...


# Asked in the process itself: the `request` of an AdmissionReview goes in, its `response` comes out.
Judge = Callable[[Object, Look], Object]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a webhook. `*` stands for everything."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[tuple[str, str], ...]      # with the subresource, which may be empty
    scope: str = "*"

    def matches(self, operation: str, resource: Resource, subresource: str) -> bool:
        return (
            self.scope in {"*", "Namespaced" if resource.namespaced else "Cluster"}
            and _has(self.operations, operation)
            and _has(self.groups, resource.group)
            and _has(self.versions, resource.version)
            and any(plural in {"*", resource.plural} and part in {"*", subresource} for plural, part in self.resources)
        )


@dataclass(frozen=True, slots=True)
class Service:
    """A webhook that is named by its Service."""

    namespace: str
    name: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook, as its configuration describes it."""

    key: str                                    # unique among all: configuration, name, number
    name: str
    rules: tuple[Rule, ...]
    url: str = ""
    service: Service | None = None
    authority: bytes = b""                      # PEM
    judge: Judge | None = None
    exact: bool = False                         # only the version that is asked for, no equivalent one
    namespaces: Object = field(default_factory=dict)
    objects: Object = field(default_factory=dict)
    conditions: tuple[tuple[str, str], ...] = ()        # name, expression
    ignore: bool = False                        # a failure of the webhook does not fail the request
    seconds: int = 10
    again: bool = False                         # asked once more when others changed the object after it
    dry: bool = True                            # may be asked about dry runs
    versions: tuple[str, ...] = ("v1",)

    @property
    def needs_namespace(self) -> bool:
        return _asks(self.namespaces)

    def selects(self, namespace: Mapping[str, str] | None, *things: Object | None) -> bool:
        """Whether namespace (None: there is none) and one of the objects carry the labels that are asked for."""
        if namespace is not None and not labels.holds(self.namespaces, namespace):
            return False
        return not _asks(self.objects) or any(
            thing is not None and labels.holds(self.objects, (thing.get("metadata") or {}).get("labels") or {})
            for thing in things)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A webhook that a request may concern, and the resource that it wants to see the request as."""

    hook: Hook
    seen_as: Resource


def candidates(hooks: Iterable[Hook], operation: str, resource: Resource, subresource: str,
               equivalents: Sequence[Resource] = ()) -> tuple[Candidate, ...]:
    """The webhooks with a rule for this kind of request; the resource itself goes before its equivalents."""
    found = []
    for hook in hooks:
        if any(rule.matches(operation, resource, subresource) for rule in hook.rules):
            found.append(Candidate(hook, resource))
        elif not hook.exact:
            other = next((other for rule in hook.rules for other in equivalents
                          if rule.matches(operation, other, subresource)), None)
            if other is not None:
                found.append(Candidate(hook, other))
    return tuple(found)


def hooks_of(configuration: Object, judge: Judge | None = None) -> list[Hook]:
    """The webhooks of one configuration, in their order."""
    seen: dict[str, int] = {}
    found = []
    for hook in configuration.get("webhooks") or ():
        name = str(hook.get("name"))
        number = seen[name] = seen.get(name, -1) + 1
        found.append(_hook(f"{configuration['metadata']['name']}/{name}/{number}", hook, judge))
    return found


def _hook(key: str, hook: Object, judge: Judge | None) -> Hook:
    client = hook.get("clientConfig") or {}
    service = client.get("service")
    return Hook(
        key, str(hook["name"]), tuple(_rule(rule) for rule in hook.get("rules") or ()),
        url=client.get("url") or "",
        service=None if service is None else Service(
            service.get("namespace") or "", service.get("name") or "", int(service.get("port") or 443),
            service.get("path") or "/"),
        authority=_decoded(client.get("caBundle") or ""), judge=judge,
        exact=hook.get("matchPolicy") == "Exact",
        namespaces=hook.get("namespaceSelector") or {}, objects=hook.get("objectSelector") or {},
        conditions=tuple((str(each.get("name")), str(each.get("expression")))
                         for each in hook.get("matchConditions") or ()),
        ignore=hook.get("failurePolicy") == "Ignore", seconds=int(hook.get("timeoutSeconds") or 10),
        again=hook.get("reinvocationPolicy") == "IfNeeded", dry=hook.get("sideEffects") in {"None", "NoneOnDryRun"},
        versions=tuple(hook.get("admissionReviewVersions") or ()),
    )


def _rule(rule: Object) -> Rule:
    pairs = (each.partition("/") for each in rule.get("resources") or ())
    return Rule(tuple(rule.get("operations") or ()), tuple(rule.get("apiGroups") or ()),
                tuple(rule.get("apiVersions") or ()), tuple((plural, part) for plural, _, part in pairs),
                rule.get("scope") or "*")


def _asks(selector: Object) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _has(choices: tuple[str, ...], value: str) -> bool:
    return value in choices or "*" in choices


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode()      # refused as a certificate when it is used, with a reason
