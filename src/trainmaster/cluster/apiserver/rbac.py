"""What rules allow. Pure: rules and a question go in, yes or no comes out; whose rules they are is for others to know.

`decide` is the whole of RBAC for one request. `reach` answers it for all names at once, so that its answer can be kept
(`authorization`); `missing` is the comparison behind "nobody can give what they do not have" (`escalation`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.failures import quoted

ALL = "*"
# For every name, or for these names only.
Reach: TypeAlias = bool | frozenset[str]


class Attributes(NamedTuple):
    """What somebody wants to do: a verb on a resource, or, with a path, on something that is no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As Kubernetes prints a rule in a refusal: one group, resource, name or URL."""
        parts = (("APIGroups", self.groups), ("Resources", self.resources), ("ResourceNames", self.names),
                 ("NonResourceURLs", self.urls), ("Verbs", self.verbs))
        return "{" + ", ".join(f"{field}:{listed(values)}" for field, values in parts if values) + "}"

    def document(self) -> Object:
        fields = {"verbs": self.verbs, "apiGroups": self.groups, "resources": self.resources,
                  "resourceNames": self.names, "nonResourceURLs": self.urls}
        return {field: list(values) for field, values in fields.items() if values}


def rules_of(role: Object) -> tuple[Rule, ...]:
    return tuple(
        Rule(tuple(rule.get("verbs") or ()), tuple(rule.get("apiGroups") or ()), tuple(rule.get("resources") or ()),
             tuple(rule.get("resourceNames") or ()), tuple(rule.get("nonResourceURLs") or ()))
        for rule in role.get("rules") or ()
    )


def decide(rules: Iterable[Rule], wanted: Attributes) -> bool:
    """Whether one of the rules allows it."""
    found = reach(rules, wanted)
    return found if isinstance(found, bool) else wanted.name in found


def reach(rules: Iterable[Rule], wanted: Attributes) -> Reach:
    """For which names the rules allow it, whatever name is asked about."""
    named: set[str] = set()
    for rule in rules:
        if not (ALL in rule.verbs or wanted.verb in rule.verbs):
            continue
        if wanted.path:
            if any(_url_covers(url, wanted.path) for url in rule.urls):
                return True
        elif (ALL in rule.groups or wanted.group in rule.groups) and _has_resource(rule, wanted):
            if not rule.names:
                return True
            named.update(rule.names)
    return frozenset(named) if named else False


def missing(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What the wanted rules allow and those held do not; one rule per resource and name, in the order of their text."""
    lacking: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for atom in _atoms(wanted):
        if not any(_covers(rule, atom) for rule in held):
            verbs = lacking.setdefault((atom.groups, atom.resources, atom.names, atom.urls), [])
            verbs.extend(verb for verb in atom.verbs if verb not in verbs)
    return sorted((Rule(tuple(verbs), *place) for place, verbs in lacking.items()), key=str)


def listed(values: Iterable[str]) -> str:
    """`["a" "b"]`, the way Go prints a list of strings."""
    return "[" + " ".join(quoted(value) for value in values) + "]"


def _has_resource(rule: Rule, wanted: Attributes) -> bool:
    if ALL in rule.resources:
        return True
    if not wanted.subresource:
        return wanted.resource in rule.resources
    return f"{wanted.resource}/{wanted.subresource}" in rule.resources or f"*/{wanted.subresource}" in rule.resources


def _url_covers(url: str, path: str) -> bool:
    return url in (ALL, path) or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


def _atoms(rules: Iterable[Rule]) -> Iterator[Rule]:
    """The same rules, each for one group, resource, name or URL and one verb."""
    for rule in rules:
        for url in rule.urls:
            for verb in rule.verbs:
                yield Rule((verb,), urls=(url,))
        for group in rule.groups:
            for resource in rule.resources:
                for verb in rule.verbs:
                    for name in rule.names or ("",):
                        yield Rule((verb,), (group,), (resource,), (name,) if name else ())


def _covers(rule: Rule, atom: Rule) -> bool:
    if not (ALL in rule.verbs or atom.verbs[0] in rule.verbs):
        return False
    if atom.urls:
        return any(_url_covers(url, atom.urls[0]) for url in rule.urls)
    resource = atom.resources[0]
    _, slash, part = resource.partition("/")
    return (
        (ALL in rule.groups or atom.groups[0] in rule.groups)
        and (ALL in rule.resources or resource in rule.resources or (bool(slash) and f"*/{part}" in rule.resources))
        and (not rule.names or (bool(atom.names) and atom.names[0] in rule.names))
    )
