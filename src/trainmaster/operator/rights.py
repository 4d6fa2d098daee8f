"""What the operator may do in a cluster: every rule with the code that needs it, and the manifests made of them.

Fewer than kubeflow's operator asks for: no secret is read but those of the operator's own namespace, and nobody's roles
are written. The lease, which the role of kubeflow's lacks, is a right in the own namespace too. A test runs
the operator with these rights on a real API server and fails for a rule that is missing, and for one that nobody uses.

    python -m trainmaster.operator.rights > deploy/operator/rbac.yaml
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from trainmaster.api.core import (
    AUTOSCALERS,
    EVENTS,
    LEASES,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    SERVICES,
    VALIDATING_WEBHOOKS,
)
from trainmaster.api.groups import GROUPS
from trainmaster.api.meta import Object, Resource
from trainmaster.frameworks.registry import FRAMEWORKS
from trainmaster.operator import door

ACCOUNT: Final = "training-operator"      # as kubeflow's, so that what others bind to it goes on
NAMESPACE: Final = "kubeflow"
LABELS: Final = {"app": "training-operator"}
JOBS: Final = tuple(framework.kind.resource for framework in FRAMEWORKS)
ALWAYS, COLLISION, SELDOM, ADMISSION = "always", "when names collide", "seldom", "asked by the API server"


@dataclass(frozen=True, slots=True)
class Right:
    """Some verbs on some kinds. `when` says how its use can be seen: in any run, or only when things go wrong."""

    resources: tuple[Resource, ...]
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    when: str = ALWAYS
    names: tuple[str, ...] = ()     # of single objects; all if empty

    @property
    def for_webhook(self) -> bool:
        return self.why.startswith("operator.webhook")


RIGHTS: Final = (
    Right(JOBS, ("list", "watch"), "runtime.informer: what there is to do"),
    Right(JOBS, ("delete",), "operator.apply: jobs whose time to live is over"),
    Right(JOBS, ("patch",), "operator.ledger: the post-mortem as an annotation where a foreign definition prunes it"),
    Right(JOBS, ("get",), "operator.apply: whose name it is by now", when=COLLISION),
    Right(JOBS, ("update",), "operator.ledger: the status", subresource="status"),
    Right(JOBS, ("update",), "blockOwnerDeletion in owner references, where the cluster guards it",
          subresource="finalizers", when=ADMISSION),
    Right((PODS, SERVICES), ("list", "watch"), "runtime.informer: those that carry our labels"),
    Right((PODS, SERVICES), ("create", "delete"), "operator.apply: replicas and their names"),
    Right((PODS, SERVICES), ("get",), "operator.apply: whose name it is", when=COLLISION),
    Right((EVENTS,), ("create",), "runtime.recorder: what people read in kubectl describe"),
    Right((EVENTS,), ("patch",), "runtime.recorder: the same again is counted"),
    Right((AUTOSCALERS,), ("list", "watch", "create", "delete", "patch"), "operator.companions: elastic PyTorchJobs"),
    Right((AUTOSCALERS,), ("get",), "operator.companions: whose name it is", when=COLLISION),
    Right(GROUPS, ("list", "watch", "create", "delete", "patch"), "operator.companions: gangs"),
    Right((PRIORITY_CLASSES,), ("list", "watch"), "operator.companions: whose resources a gang needs first"),
    Right(GROUPS, ("get",), "operator.companions: whose name it is", when=COLLISION),
    Right((VALIDATING_WEBHOOKS,), ("get", "list", "watch", "update"),
          "operator.webhook: our authority in its configuration", names=(door.NAME,)),
)
OWN_RIGHTS: Final = (
    Right((LEASES,), ("get", "create", "update"), "runtime.leader: --leader-elect"),
    Right((SECRETS,), ("get", "update"), "operator.webhook: its certificate"),
    Right((SECRETS,), ("create",), "operator.webhook: its certificate, where no secret was made for it", when=SELDOM),
)


def documents(namespace: str = NAMESPACE, *, only: str = "") -> list[Object]:
    """The manifests: account, roles and bindings. With `only` for one namespace, as --namespace; without the webhook,
    whose configuration belongs to no namespace.
    """
    subject = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]
    wide, kind = ("", "ClusterRole") if not only else (only, "Role")
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _about(ACCOUNT, namespace)},
        _role(kind, ACCOUNT, wide, [right for right in RIGHTS if not only or right.resources[0].namespaced]),
        _binding(f"{kind}Binding", ACCOUNT, wide, kind, subject),
        _role("Role", f"{ACCOUNT}-own", namespace, OWN_RIGHTS),
        _binding("RoleBinding", f"{ACCOUNT}-own", namespace, "Role", subject),
    ]


def granted(rights: Iterable[Right] = (*RIGHTS, *OWN_RIGHTS)) -> Iterator[tuple[str, str, str, Right]]:
    """Every single thing that is allowed: group, plural (with subresource), verb, and the right that allows it."""
    for right in rights:
        for resource in right.resources:
            for verb in right.verbs:
                yield resource.group, _plural(resource, right), verb, right


def _role(kind: str, name: str, namespace: str, rights: Iterable[Right]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": _about(name, namespace),
        "rules": rules(rights),
    }


def rules(rights: Iterable[Right]) -> list[Object]:
    """One rule for all plurals of a group that have the same verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for group, plural, verb, right in granted(rights):
        verbs.setdefault((group, plural, right.names), set()).add(verb)
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, plural, names), allowed in verbs.items():
        together.setdefault((group, names, tuple(sorted(allowed))), []).append(plural)
    return [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": list(allowed)}
        | ({"resourceNames": list(names)} if names else {})
        for (group, names, allowed), plurals in together.items()
    ]


def _plural(resource: Resource, right: Right) -> str:
    return f"{resource.plural}/{right.subresource}" if right.subresource else resource.plural


def _binding(kind: str, name: str, namespace: str, role: str, subjects: list[Object]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": _about(name, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name}, "subjects": subjects,
    }


def _about(name: str, namespace: str) -> Object:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}


def text() -> str:
    head = "# What the operator may do. Written by `python -m trainmaster.operator.rights`; the reasons are there.\n"
    return head + yaml.safe_dump_all(documents(), sort_keys=False)


if __name__ == "__main__":
    sys.stdout.write(text())
