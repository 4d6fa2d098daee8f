"""What `trainmaster scheduler` may do in a cluster of others: an account, and the roles that it is bound to.

Two of the roles every Kubernetes has, for its own scheduler: nodes, pods, bindings, events, and volumes. The third is
what the embedded cluster gives its scheduler besides (`own_roles`), so there is one list of it.

    python -m trainmaster.local.scheduler_rights > deploy/scheduler/rbac.yaml
"""

import sys
from typing import Final

import yaml

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.own_roles import GROUP, SCHEDULER_ROLE, SCHEDULES

ACCOUNT: Final = "trainmaster-scheduler"
NAMESPACE: Final = "trainmaster-system"
OF_KUBERNETES: Final = ("system:kube-scheduler", "system:volume-scheduler")


def documents() -> list[Object]:
    role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": SCHEDULER_ROLE},
            "rules": [rule.document() for rule in SCHEDULES]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        role,
        *(_binding(name) for name in (SCHEDULER_ROLE, *OF_KUBERNETES)),
    ]


def _binding(role: str) -> Object:
    name = f"trainmaster:{role.removeprefix('trainmaster:').removeprefix('system:')}"
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]}


def text() -> str:
    head = "# What the scheduler may do. Written by `python -m trainmaster.local.scheduler_rights`.\n"
    return head + yaml.safe_dump_all(documents(), sort_keys=False)


if __name__ == "__main__":
    sys.stdout.write(text())
