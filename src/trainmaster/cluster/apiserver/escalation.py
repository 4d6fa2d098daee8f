"""Nobody gives what they do not have: who writes a role must hold its rules, who binds one must hold the role's.

The verbs `escalate` on roles and `bind` on a role lift this for those who are trusted with it.
"""

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import authorization, failures, rbac
from trainmaster.cluster.apiserver.auth import MASTERS, Identity
from trainmaster.cluster.apiserver.authorization import Rbac
from trainmaster.cluster.apiserver.failures import quoted
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rbac import Attributes, Rule

GROUP = "rbac.authorization.k8s.io"
_EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
_ROLES = frozenset({"roles", "clusterroles"})


class Escalation:
    def __init__(self, access: Rbac) -> None:
        self._access = access

    def check(self, kind: Kind, old: Object | None, new: Object, who: Identity) -> None:
        """Raises Failure 403 or 404."""
        if kind.resource.group != GROUP or MASTERS in who.groups:
            return
        if kind.resource.plural in _ROLES:
            self._role(kind, old, new, who)
        else:
            self._binding(kind, old, new, who)

    def _role(self, kind: Kind, old: Object | None, new: Object, who: Identity) -> None:
        name, namespace = new["metadata"]["name"], new["metadata"].get("namespace", "")
        if old is not None and _same(old, new, "rules") and _same(old, new, "aggregationRule"):
            return
        wanted = Attributes("escalate", GROUP, kind.resource.plural, "", namespace, name)
        if self._access.allows(who, wanted):
            return
        if new.get("aggregationRule") and not (old and _same(old, new, "aggregationRule")) \
                and rbac.missing(self._access.rules(who, ""), _EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise failures.forbidden(kind.resource, name, why)
        self._held(kind, name, namespace, rbac.rules_of(new), who)

    def _binding(self, kind: Kind, old: Object | None, new: Object, who: Identity) -> None:
        name, namespace = new["metadata"]["name"], new["metadata"].get("namespace", "")
        if old is not None and _same(old, new, "roleRef") and _same(old, new, "subjects"):
            return
        reference = new["roleRef"]
        plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
        if self._access.allows(who, Attributes("bind", GROUP, plural, "", namespace, reference.get("name") or "")):
            return
        rules = self._access.role(authorization.role_key(reference, namespace))
        if rules is None:
            raise failures.not_found(kind.resource, reference.get("name") or "")
        self._held(kind, name, namespace, rules, who)

    def _held(self, kind: Kind, name: str, namespace: str, wanted: tuple[Rule, ...], who: Identity) -> None:
        lacking = rbac.missing(self._access.rules(who, namespace), wanted)
        if lacking:
            told = "\n".join(map(str, lacking))
            raise failures.forbidden(kind.resource, name, (
                f"user {quoted(who.user)} (groups={rbac.listed(who.groups)}) is attempting to grant RBAC permissions "
                f"not currently held:\n{told}"))


def _same(old: Object, new: Object, field: str) -> bool:
    return (old.get(field) or None) == (new.get(field) or None)
