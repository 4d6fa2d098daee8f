"""Who may do what, now: roles and bindings from the store, by the people and groups they name.

Kept true by the store's own subscriptions, read when a question comes: a binding that was written is in force for the
very next request, nothing runs in the background, and a request that follows no change costs two dictionary look-ups.
For each identity the answers of `rbac.reach` are remembered until a role or binding changes, which is rare. Rejected: a
task that follows the store, which lags behind the answer that its writer already got.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import rbac
from trainmaster.cluster.apiserver.auth import ACCOUNT_PREFIX, MASTERS, Identity
from trainmaster.cluster.apiserver.failures import quoted
from trainmaster.cluster.apiserver.rbac import Attributes, Reach, Rule
from trainmaster.cluster.store import Closed, Lagged, Store, Subscription

_GROUP = "/rbac.authorization.k8s.io/"
ROLES, CLUSTER_ROLES = f"{_GROUP}roles/", f"{_GROUP}clusterroles/"
BINDINGS, CLUSTER_BINDINGS = f"{_GROUP}rolebindings/", f"{_GROUP}clusterrolebindings/"
# Identities and answers that are remembered; beyond, everything is forgotten and learned again.
MOST_IDENTITIES = 4096
MOST_ANSWERS = 4096


@dataclass(frozen=True, slots=True)
class Decision:
    """Yes, or no and what there is to say about it besides."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Says yes or no."""

    def decide(self, who: Identity, wanted: Attributes) -> Decision: ...


@dataclass(frozen=True, slots=True)
class Binding:
    key: str
    namespace: str                          # "" for a cluster role binding
    role: str                               # the key of the role
    subjects: tuple[tuple[str, str], ...]   # ("User" or "Group", name)


@dataclass(slots=True)
class Held:
    """What one identity has: its bindings, and the answers that were worked out from them."""

    bindings: tuple[Binding, ...]
    answers: dict[tuple[str, ...], Reach] = field(default_factory=dict)


class Either:
    """Several authorizers: one yes is enough."""

    def __init__(self, *authorizers: Authorizer) -> None:
        self._authorizers = authorizers

    def decide(self, who: Identity, wanted: Attributes) -> Decision:
        reasons = []
        for authorizer in self._authorizers:
            if (decision := authorizer.decide(who, wanted)).allowed:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(False, "\n".join(reasons)) if reasons else _NO


class Rbac:
    """Roles and bindings of a store. The first question reads them all, later ones what changed since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followed: tuple[Subscription, ...] = ()
        self._roles: dict[str, tuple[Rule, ...]] = {}
        self._bindings: dict[str, Binding] = {}
        self._by_subject: dict[tuple[str, str], dict[str, Binding]] = {}
        self._held: dict[tuple[str, tuple[str, ...]], Held] = {}

    def decide(self, who: Identity, wanted: Attributes) -> Decision:
        if MASTERS in who.groups or self.allows(who, wanted):
            return _YES
        problems = self._problems(who, wanted.namespace)
        return Decision(False, f"RBAC: {_told(problems)}") if problems else _NO

    def allows(self, who: Identity, wanted: Attributes) -> bool:
        held = self._of(who)
        verb, group, resource, part, namespace, _name, path = wanted
        question = (verb, group, resource, part, namespace, path)      # without the name, so that answers stay few
        found = held.answers.get(question)
        if found is None:
            if len(held.answers) >= MOST_ANSWERS:
                held.answers.clear()
            found = held.answers[question] = rbac.reach(self._rules(held, wanted.namespace), wanted)
        return found if isinstance(found, bool) else wanted.name in found

    def why(self, who: Identity, wanted: Attributes) -> str:
        """The binding that allows it, in the words of Kubernetes; "" if none does."""
        for binding in self._of(who).bindings:
            if (not binding.namespace or binding.namespace == wanted.namespace) \
                    and rbac.decide(self._roles.get(binding.role, ()), wanted):
                return f"RBAC: allowed by {_described(binding, who)}"
        return ""

    def rules(self, who: Identity, namespace: str) -> list[Rule]:
        """All rules that hold for somebody in a namespace, or with "" in the whole cluster."""
        return list(self._rules(self._of(who), namespace))

    def role(self, key: str) -> tuple[Rule, ...] | None:
        """The rules of a role by its key, or None if there is none."""
        self._refresh()
        return self._roles.get(key)

    def _of(self, who: Identity) -> Held:
        for followed in self._followed:
            if followed.due:
                self._refresh()
                break
        if not self._followed:
            self._refresh()
        key = (who.user, who.groups)
        held = self._held.get(key)
        if held is None:
            if len(self._held) >= MOST_IDENTITIES:
                self._held.clear()
            named = [("User", who.user), *(("Group", group) for group in who.groups)]
            bound = {key: each for subject in named for key, each in self._by_subject.get(subject, {}).items()}
            ordered = sorted(bound.values(), key=lambda each: (bool(each.namespace), each.key))
            held = self._held[key] = Held(tuple(ordered))
        return held

    def _rules(self, held: Held, namespace: str) -> Iterator[Rule]:
        for binding in held.bindings:
            if not binding.namespace or binding.namespace == namespace:
                yield from self._roles.get(binding.role, ())

    def _problems(self, who: Identity, namespace: str) -> list[str]:
        """Bindings of this identity whose role is not there."""
        return [
            f'{"clusterrole" if each.role.startswith(CLUSTER_ROLES) else "role"}.rbac.authorization.k8s.io '
            f"{quoted(each.role.rpartition('/')[2])} not found"
            for each in self._of(who).bindings
            if each.role not in self._roles and (not each.namespace or each.namespace == namespace)
        ]

    def _refresh(self) -> None:
        try:
            if not self._followed:
                self._read_all()
                return
            for followed in self._followed:
                while changes := followed.take().changes:
                    for change in changes:
                        self._put(change.key, change.value)
        except (Lagged, Closed):
            self._read_all()

    def _read_all(self) -> None:
        for followed in self._followed:
            followed.close()
        prefixes = (ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS)
        self._followed = tuple(self._store.subscribe(prefix, self._store.revision) for prefix in prefixes)
        self._roles.clear()
        self._bindings.clear()
        self._by_subject.clear()
        self._held.clear()
        for prefix in prefixes:
            for record in self._store.scan(prefix):
                self._put(record.key, record.value)

    def _put(self, key: str, value: bytes | None) -> None:
        self._held.clear()
        thing = None if value is None else orjson.loads(value)
        if key.startswith((ROLES, CLUSTER_ROLES)):
            if thing is None:
                self._roles.pop(key, None)
            else:
                self._roles[key] = rbac.rules_of(thing)
            return
        if (known := self._bindings.pop(key, None)) is not None:
            for subject in known.subjects:
                self._by_subject.get(subject, {}).pop(key, None)
        if thing is not None:
            binding = self._bindings[key] = binding_of(key, thing)
            for subject in binding.subjects:
                self._by_subject.setdefault(subject, {})[key] = binding


def binding_of(key: str, thing: Object) -> Binding:
    namespace = thing["metadata"].get("namespace", "")
    subjects = tuple(subject for each in thing.get("subjects") or () if (subject := _subject(each, namespace)))
    return Binding(key, namespace, role_key(thing["roleRef"], namespace), subjects)


def role_key(reference: Object, namespace: str) -> str:
    """The key of the role that a binding in this namespace refers to."""
    name = reference.get("name") or ""
    return f"{CLUSTER_ROLES}{name}" if reference.get("kind") == "ClusterRole" else f"{ROLES}{namespace}/{name}"


def _subject(subject: Object, namespace: str) -> tuple[str, str] | None:
    kind, name = subject.get("kind"), subject.get("name") or ""
    if kind == "ServiceAccount":
        place = subject.get("namespace") or namespace
        return ("User", f"{ACCOUNT_PREFIX}{place}:{name}") if place else None
    return (kind, name) if kind in ("User", "Group") else None


def _described(binding: Binding, who: Identity) -> str:
    name = binding.key.rpartition("/")[2]
    role = "ClusterRole" if binding.role.startswith(CLUSTER_ROLES) else "Role"
    kind, subject = next(each for each in binding.subjects
                         if each == ("User", who.user) or (each[0] == "Group" and each[1] in who.groups))
    if subject.startswith(ACCOUNT_PREFIX):
        namespace, _, account = subject.removeprefix(ACCOUNT_PREFIX).partition(":")
        kind, subject = "ServiceAccount", f"{account}/{namespace}"
    where = f"RoleBinding {quoted(f'{name}/{binding.namespace}')}" if binding.namespace \
        else f"ClusterRoleBinding {quoted(name)}"
    return f"{where} of {role} {quoted(binding.role.rpartition('/')[2])} to {kind} {quoted(subject)}"


def _told(problems: Iterable[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


_YES, _NO = Decision(True), Decision(False)
