"""Who may do what, as objects: Role, ClusterRole and their bindings. Nothing here enforces them."""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks, columns, labels, names, other_columns
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

GROUP = "rbac.authorization.k8s.io"


def _rule_faults(rule: Object, path: str, *, namespaced: bool) -> Iterator[Cause]:
    paths, resources = rule.get("nonResourceURLs") or [], rule.get("resources") or []
    groups, named = rule.get("apiGroups") or [], rule.get("resourceNames") or []
    if not rule.get("verbs"):
        yield causes.required(f"{path}.verbs", "verbs must contain at least one value")
    if paths:
        if namespaced:
            yield causes.invalid(f"{path}.nonResourceURLs", paths,
                                 "namespaced rules cannot apply to non-resource URLs")
        if groups or resources or named:
            yield causes.invalid(f"{path}.nonResourceURLs", paths,
                                 "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not groups:
        yield causes.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not resources:
        yield causes.required(f"{path}.resources", "resource rules must supply at least one resource")


def _role_rules(role: Object, _old: Object | None) -> Iterator[Cause]:
    for index, rule in enumerate(role.get("rules") or ()):
        yield from _rule_faults(rule, f"rules[{index}]", namespaced=True)


def _cluster_role_rules(role: Object, _old: Object | None) -> Iterator[Cause]:
    for index, rule in enumerate(role.get("rules") or ()):
        yield from _rule_faults(rule, f"rules[{index}]", namespaced=False)
    aggregated = role.get("aggregationRule")
    if aggregated is not None and not aggregated.get("clusterRoleSelectors"):
        yield causes.required("aggregationRule.clusterRoleSelectors",
                              "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate((aggregated or {}).get("clusterRoleSelectors") or ()):
        path = f"aggregationRule.clusterRoleSelectors[{index}]"
        faults = list(labels.rules(selector, path))
        yield from faults
        if faults:
            yield causes.invalid(path, None, "invalid label selector.")


def _binding_defaults(binding: Object) -> None:
    reference = binding.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in binding.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in {"User", "Group"}:
            subject["apiGroup"] = GROUP


def _binding_rules(binding: Object, old: Object | None) -> Iterator[Cause]:
    yield from _reference_faults(binding, old, ("Role", "ClusterRole"))


def _cluster_binding_rules(binding: Object, old: Object | None) -> Iterator[Cause]:
    yield from _reference_faults(binding, old, ("ClusterRole",))


def _reference_faults(binding: Object, old: Object | None, kinds: tuple[str, ...]) -> Iterator[Cause]:
    reference = binding["roleRef"]
    yield from checks.choice(reference.get("apiGroup"), "roleRef.apiGroup", (GROUP,))
    yield from checks.choice(reference.get("kind") or "", "roleRef.kind", kinds)
    name = reference.get("name") or ""
    if not name:
        yield causes.required("roleRef.name")
    else:
        yield from names.refused("roleRef.name", name, names.path_segment(name))
    for index, subject in enumerate(binding.get("subjects") or ()):
        yield from _subject_faults(subject, f"subjects[{index}]")
    if old is not None and reference != old.get("roleRef"):
        told = {"APIGroup": reference.get("apiGroup"), "Kind": reference.get("kind"), "Name": name}
        yield causes.invalid("roleRef", told, "cannot change roleRef")


def _subject_faults(subject: Object, path: str) -> Iterator[Cause]:
    kind, name, group = subject.get("kind") or "", subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        yield causes.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from names.refused(f"{path}.name", name, names.subdomain(name))
        if group:
            yield causes.unsupported(f"{path}.apiGroup", group, ("",))
        if not subject.get("namespace"):
            yield causes.required(f"{path}.namespace")
    elif kind in {"User", "Group"}:
        yield from checks.choice(group, f"{path}.apiGroup", (GROUP,))
    else:
        yield causes.unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


def _bound_here(binding: Object) -> None:
    """An account without a namespace is one of the binding's own."""
    _binding_defaults(binding)
    for subject in binding.get("subjects") or ():
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            subject["namespace"] = binding["metadata"].get("namespace", "")


KINDS: tuple[Kind, ...] = (
    row(f"{GROUP}/v1", "roles", naming=names.path_segment, rules=_role_rules, columns=columns.DEFINITION),
    row(f"{GROUP}/v1", "clusterroles", naming=names.path_segment, rules=_cluster_role_rules,
        columns=columns.DEFINITION),
    row(f"{GROUP}/v1", "rolebindings", naming=names.path_segment, defaults=_bound_here, rules=_binding_rules,
        columns=other_columns.BINDING),
    row(f"{GROUP}/v1", "clusterrolebindings", naming=names.path_segment, defaults=_binding_defaults,
        rules=_cluster_binding_rules, columns=other_columns.BINDING),
)
