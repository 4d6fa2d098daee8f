"""What the cluster's own controllers may do, each under its own name, where Kubernetes has no role that fits.

Kubernetes reads for all its controllers under one identity that may list everything; ours read for themselves, so each
gets what it reads as well. A controller whose Kubernetes role says all it needs has no line here. The names are those
of service accounts in kube-system.
"""

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.rbac import Rule

GROUP = "rbac.authorization.k8s.io"
PREFIX = "trainmaster:controller:"
NAMESPACE = "kube-system"
_META = {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
         "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}}
_READ = ("list", "watch")
_ROOT_CERTIFICATE = ("kube-root-ca.crt",)

CONTROLLERS: dict[str, tuple[Rule, ...]] = {
    "kinds": (Rule(_READ, ("apiextensions.k8s.io",), ("customresourcedefinitions",)),),
    "everywhere": (
        Rule(_READ, ("",), ("namespaces",)),
        Rule(_READ, ("",), ("serviceaccounts",), ("default",)),
        Rule(_READ, ("",), ("configmaps",), _ROOT_CERTIFICATE),
        Rule(("create",), ("",), ("configmaps", "serviceaccounts")),
        Rule(("update", "delete"), ("",), ("configmaps",), _ROOT_CERTIFICATE),
    ),
    "account-tokens": (
        Rule((*_READ, "update", "delete"), ("",), ("secrets",)),
        Rule(("get",), ("",), ("serviceaccounts",)),
        Rule(("create",), ("",), ("serviceaccounts/token",)),
    ),
    # Deployments, replica sets and the like share what they follow, and so one name.
    "workloads": (
        Rule((*_READ, "get", "create", "update", "patch", "delete"), ("apps",),
             ("deployments", "replicasets", "statefulsets", "controllerrevisions")),
        Rule((*_READ, "get", "update", "patch", "delete"), ("batch",), ("jobs",)),
        Rule((*_READ, "get", "update", "patch"), ("",), ("replicationcontrollers",)),
        Rule((*_READ, "get", "create", "update", "patch", "delete"), ("",), ("pods", "persistentvolumeclaims")),
        Rule(("update", "patch"), ("apps",), ("deployments/status", "replicasets/status", "statefulsets/status")),
        Rule(("update", "patch"), ("batch",), ("jobs/status",)),
        Rule(("update", "patch"), ("",), ("replicationcontrollers/status",)),
        Rule(_READ, ("policy",), ("poddisruptionbudgets",)),
        Rule(("get",), ("*",), ("*/scale",)),      # how many pods there should be, of whatever kind
        Rule(("update",), ("policy",), ("poddisruptionbudgets/status",)),
        Rule(("create", "patch"), ("",), ("events",)),
    ),
    "resourcequota-controller": (Rule(("get",), ("",), ("resourcequotas",)),),
    "simulated-nodes": (
        Rule(("create", "list", "delete"), ("",), ("nodes",)),
        Rule(("patch",), ("",), ("nodes/status", "pods/status")),
        Rule((*_READ, "delete"), ("",), ("pods",)),
    ),
    "event-expiry": (Rule((*_READ, "delete"), ("",), ("events",)),),
    "endpoints": (
        Rule(_READ, ("",), ("services", "pods")),
        Rule((*_READ, "create", "update", "delete"), ("",), ("endpoints",)),
        Rule((*_READ, "create", "update", "delete"), ("discovery.k8s.io",), ("endpointslices",)),
    ),
}
# Besides the role that Kubernetes gives its scheduler: gangs and queues, in every dialect.
SCHEDULER, SCHEDULER_ROLE = "system:kube-scheduler", "trainmaster:scheduler"
_DIALECTS = ("scheduling.volcano.sh", "scheduling.incubator.k8s.io", "scheduling.sigs.dev",
             "scheduling.x-k8s.io", "scheduler.tensorstack.dev")
SCHEDULES = (
    Rule((*_READ, "create", "patch"), _DIALECTS, ("podgroups", "queues")),
    Rule(("patch",), _DIALECTS, ("podgroups/status", "queues/status")),
    Rule((*_READ, "delete"), ("bus.volcano.sh",), ("commands",)),
    Rule(_READ, ("scheduling.k8s.io",), ("priorityclasses",)),
    Rule(("patch",), ("",), ("pods",)),
    Rule(_READ, ("",), ("resourcequotas",)),
    # What made a pod: its annotations, whether it wants pods at all, and its rest when the pod is too old.
    Rule(("get", "patch"), ("apps",), ("deployments", "replicasets", "statefulsets")),
    Rule(("get",), ("apps",), ("daemonsets",)),
    Rule(("get", "patch"), ("batch",), ("jobs",)),
    Rule(("get", "patch"), ("kubeflow.org", "batch.tensorstack.dev", "tensorstack.dev"), ("*",)),
    Rule(("delete",), _DIALECTS, ("podgroups",)),
)
# In the namespace `default` only: where the API server announces itself.
ANNOUNCER = "announcer"
ANNOUNCES = (
    Rule((*_READ, "update"), ("",), ("services", "endpoints"), ("kubernetes",)),
    Rule((*_READ, "update"), ("discovery.k8s.io",), ("endpointslices",), ("kubernetes",)),
    Rule(("create",), ("",), ("services", "endpoints")),
    Rule(("create",), ("discovery.k8s.io",), ("endpointslices",)),
)


def roles() -> dict[str, list[Object]]:
    """The same as objects, by the plural of their kind."""
    return {
        "clusterroles": [_role(SCHEDULER_ROLE, SCHEDULES),
                         *(_role(f"{PREFIX}{name}", rules) for name, rules in CONTROLLERS.items())],
        "clusterrolebindings": [_binding(SCHEDULER_ROLE, "ClusterRole", _USER),
                                *(_binding(f"{PREFIX}{name}", "ClusterRole", _account(name)) for name in CONTROLLERS)],
        "roles": [_in("default", _role(f"{PREFIX}{ANNOUNCER}", ANNOUNCES))],
        "rolebindings": [_in("default", _binding(f"{PREFIX}{ANNOUNCER}", "Role", _account(ANNOUNCER)))],
    }


def _role(name: str, rules: tuple[Rule, ...]) -> Object:
    return {"metadata": {"name": name, **_META}, "rules": [rule.document() for rule in rules]}


_USER = {"kind": "User", "name": SCHEDULER, "apiGroup": GROUP}


def _account(name: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}


def _binding(name: str, kind: str, subject: Object) -> Object:
    return {"metadata": {"name": name, **_META}, "subjects": [subject],
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}}


def _in(namespace: str, thing: Object) -> Object:
    return {**thing, "metadata": {"name": thing["metadata"]["name"], "namespace": namespace, **_META}}
