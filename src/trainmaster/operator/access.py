"""What the operator must be allowed to do, and what people get who may edit or view a namespace. Pure.

The rules of the operator are those of `rights`, on every cluster; the embedded one makes these objects at its start.
"""

from collections.abc import Iterable, Sequence

from trainmaster.api.meta import Object
from trainmaster.frameworks.registry import FRAMEWORKS
from trainmaster.operator import rights

GROUP = "rbac.authorization.k8s.io"
NAMESPACE, ACCOUNT = rights.NAMESPACE, rights.ACCOUNT
ROLE = "trainmaster-operator"
_AGGREGATE = f"{GROUP}/aggregate-to-"


def rules() -> list[Object]:
    """The rules of the operator, without those of a webhook: the embedded server asks `door` itself."""
    return rights.rules(right for right in (*rights.RIGHTS, *rights.OWN_RIGHTS) if not right.for_webhook)


def roles() -> list[Object]:
    """ClusterRoles: the operator's, and what `admin`, `edit` and `view` gather."""
    edits, views = [], []
    for group, plurals in _kinds():
        edits.append(_rule(group, plurals, ("create", "delete", "deletecollection", "patch", "update")))
        views.append(_rule(group, [each for plural in plurals for each in (plural, f"{plural}/status")],
                           ("get", "list", "watch")))
    return [
        _role(ROLE, rules()),
        _role("trainmaster-edit", edits, **{f"{_AGGREGATE}edit": "true"}),
        _role("trainmaster-view", views, **{f"{_AGGREGATE}view": "true"}),
    ]


def binding(namespace: str = NAMESPACE, account: str = ACCOUNT) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def _kinds() -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for framework in FRAMEWORKS:
        found.setdefault(framework.kind.resource.group, []).append(framework.kind.resource.plural)
    return [(group, sorted(set(plurals))) for group, plurals in sorted(found.items())]


def _rule(group: str, resources: Sequence[str], verbs: Iterable[str]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(name: str, rules: list[Object], **labels: str) -> Object:
    meta: Object = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
