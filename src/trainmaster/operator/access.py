"""What the operator must be allowed to do, and what people get who may edit or view a namespace. Pure.

One table for every cluster: the embedded one makes these objects at its start, and an installation on another cluster
applies the same. Every rule is used and none is missing: a test plays the operator's life under them.
"""

from collections.abc import Iterable, Sequence

from trainmaster.api.groups import COSCHEDULING_GROUPS, KUBE_BATCH_GROUPS, T9K_GROUPS, VOLCANO_GROUPS
from trainmaster.api.meta import Object
from trainmaster.frameworks.registry import FRAMEWORKS

GROUP = "rbac.authorization.k8s.io"
NAMESPACE, ACCOUNT = "kubeflow", "training-operator"
ROLE = "trainmaster-operator"
_AGGREGATE = f"{GROUP}/aggregate-to-"


def rules() -> list[Object]:
    """The rules of the operator."""
    found = [
        _rule("", ("pods", "services"), ("list", "watch", "get", "create", "delete")),
        _rule("", ("events",), ("create", "patch")),
        _rule("coordination.k8s.io", ("leases",), ("get", "create", "update")),
    ]
    companions = {each for framework in FRAMEWORKS for each in framework.companion_resources}
    companions |= {VOLCANO_GROUPS, KUBE_BATCH_GROUPS, COSCHEDULING_GROUPS, T9K_GROUPS}
    found += [
        _rule(resource.group, (resource.plural,), ("list", "watch", "get", "create", "patch", "delete"))
        for resource in sorted(companions, key=lambda each: (each.group, each.plural))
    ]
    for group, plurals in _kinds():
        found += [
            _rule(group, plurals, ("list", "watch", "get", "patch", "delete")),
            _rule(group, [f"{plural}/status" for plural in plurals], ("update",)),
        ]
    return found


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
