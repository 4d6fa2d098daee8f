"""Who may do what: one table of roles, bindings and questions for our server and for a real one.

A question is a request that would do no harm if it were let through: its body is no JSON, its resourceVersion no
number, its object not there. So the answer says whether it was let through, and if not, in which words.
"""

from dataclasses import dataclass

from trainmaster.api.meta import Object

RBAC = "rbac.authorization.k8s.io"
MERGE = "application/merge-patch+json"

# Who they are, besides their name; everybody is also in system:authenticated.
GROUPS: dict[str, tuple[str, ...]] = {
    "hal": ("ops",),
    "mia": ("system:masters",),
    "olga": ("readers", "ops"),
    "system:anonymous": ("system:unauthenticated",),
    "probe": ("system:monitoring",),
}


def _rule(group: str, resources: str, verbs: str, names: str = "") -> Object:
    rule: Object = {"apiGroups": group.replace("core", "").split(","), "resources": resources.split(),
                    "verbs": verbs.split()}
    return {**rule, "resourceNames": names.split()} if names else rule


def _subject(text: str) -> Object:
    kind, _, name = text.partition(":")
    if kind == "account":
        namespace, _, name = name.partition("/")
        return {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    return {"kind": kind.capitalize(), "name": name, "apiGroup": RBAC}


def _binding(name: str, kind: str, role: str, *subjects: str) -> Object:
    return {"metadata": {"name": name}, "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": [_subject(each) for each in subjects]}


CLUSTER_ROLES: list[Object] = [
    {"metadata": {"name": "parts"}, "rules": [_rule("core", "pods/log", "get"), _rule("core", "pods/exec", "create"),
                                              _rule("apps", "*/scale", "get update")]},
    {"metadata": {"name": "apps"}, "rules": [_rule("apps", "*", "*")]},
    {"metadata": {"name": "paths"}, "rules": [{"nonResourceURLs": ["/metrics", "/debug/*"], "verbs": ["get"]}]},
    {"metadata": {"name": "all-paths"}, "rules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}]},
    {"metadata": {"name": "all-verbs"}, "rules": [_rule("batch", "jobs", "*")]},
    {"metadata": {"name": "all-groups"}, "rules": [_rule("*", "pods", "get list")]},
    {"metadata": {"name": "one-node"}, "rules": [_rule("core", "nodes", "get patch", "n1 n2")]},
    {"metadata": {"name": "empty"}, "rules": []},
]
CLUSTER_BINDINGS: list[Object] = [
    _binding("dan-views", "ClusterRole", "view", "user:dan"),
    _binding("gus-parts", "ClusterRole", "parts", "user:gus"),
    _binding("ops-apps", "ClusterRole", "apps", "group:ops"),
    _binding("ian-paths", "ClusterRole", "paths", "user:ian"),
    _binding("pat-paths", "ClusterRole", "all-paths", "user:pat"),
    _binding("lou-all", "ClusterRole", "cluster-admin", "user:lou"),
    _binding("kim-nothing", "ClusterRole", "nosuch", "user:kim"),
    _binding("quinn-groups", "ClusterRole", "all-groups", "user:quinn"),
    _binding("rob-node", "ClusterRole", "one-node", "user:rob"),
    _binding("sue-empty", "ClusterRole", "empty", "user:sue"),
]
ROLES: list[Object] = [
    {"metadata": {"name": "one-map"}, "rules": [
        _rule("core", "configmaps", "get list watch update patch delete create deletecollection", "a")]},
    {"metadata": {"name": "secrets"}, "rules": [_rule("core", "secrets", "get")]},
    {"metadata": {"name": "maps"}, "rules": [_rule("core", "configmaps", "get")]},
    {"metadata": {"name": "namespaces"}, "rules": [_rule("core", "namespaces namespaces/status", "get")]},
    {"metadata": {"name": "several"}, "rules": [_rule("core,apps,batch", "pods deployments jobs", "get list")]},
]
BINDINGS: list[Object] = [      # in the namespace z
    _binding("ann-views", "ClusterRole", "view", "user:ann"),
    _binding("ben-edits", "ClusterRole", "edit", "user:ben"),
    _binding("cat-administers", "ClusterRole", "admin", "user:cat"),
    _binding("fay-one-map", "Role", "one-map", "user:fay"),
    _binding("jan-jobs", "ClusterRole", "all-verbs", "user:jan"),
    _binding("robot-secrets", "Role", "secrets", "account:z/robot"),
    _binding("accounts-maps", "Role", "maps", "group:system:serviceaccounts:z"),
    _binding("nat-all", "ClusterRole", "cluster-admin", "user:nat"),
    _binding("kim-nothing", "Role", "nosuch3", "user:kim"),
    _binding("tom-namespace", "Role", "namespaces", "user:tom"),
    _binding("readers-several", "Role", "several", "group:readers"),
]
NAMESPACE = "z"


@dataclass(frozen=True, slots=True)
class Case:
    """One question: who wants to do what to what, where, and whether they may."""

    who: str
    verb: str
    resource: str          # plural, plural.group, plural/part, or a path
    where: str             # "" cluster, "z" in a namespace, "z/x" an object, "-/x" an object of the cluster
    allowed: bool

    def __str__(self) -> str:
        place = f" in {self.where}" if self.where else ""
        return f"{self.who} {'may' if self.allowed else 'may not'} {self.verb} {self.resource}{place}"

    @property
    def method(self) -> str:
        if self.resource.startswith("/"):
            return self.verb.upper()
        return {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
                "delete": "DELETE", "deletecollection": "DELETE"}[self.verb]

    @property
    def path(self) -> str:
        if self.resource.startswith("/"):
            return self.resource
        whole, _, part = self.resource.partition("/")
        plural, _, group = whole.partition(".")
        namespace, _, name = self.where.partition("/")
        if not part:      # a line may have verbs of both sorts: those on an object, and those on all of them
            name = "" if self.verb in ("list", "watch", "create", "deletecollection") else name or "x"
        parts = [f"/apis/{group}/v1" if group else "/api/v1"]
        if namespace and namespace != "-":
            parts.append(f"namespaces/{namespace}")
        return "/".join([*parts, plural, *(each for each in (name, part) if each)])

    @property
    def query(self) -> dict[str, str]:
        harmless = {"watch": {"watch": "true", "resourceVersion": "none"}, "delete": {"dryRun": "All"},
                    "deletecollection": {"dryRun": "All"}}
        return harmless.get(self.verb, {})

    @property
    def body(self) -> tuple[str, bytes]:
        """Media type and content."""
        if self.method not in ("POST", "PUT", "PATCH"):
            return "", b""
        return MERGE if self.method == "PATCH" else "application/json", b"{"


_ROBOT, _OTHER = "system:serviceaccount:z:robot", "system:serviceaccount:z:other"
_SCHEDULER = "system:kube-scheduler"
_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
_NAMESPACES = "system:serviceaccount:kube-system:namespace-controller"
_JOBS = "system:serviceaccount:kube-system:job-controller"
_DEPLOYMENTS = "system:serviceaccount:kube-system:deployment-controller"
_WRITES = "create update patch delete deletecollection"

# Who; verbs that they may use and those that they may not; resource; where.
_LINES: tuple[tuple[str, str, str, str, str], ...] = (
    ("eve", "", "get list watch create update patch delete deletecollection", "pods", "z"),
    ("eve", "", "get update patch delete", "pods", "z/x"),
    ("eve", "", "list create", "nodes", ""),
    ("eve", "", "get delete", "nodes", "-/n"),
    ("eve", "", "get list", "deployments.apps", "z"),
    ("eve", "", "list", "nosuchthings.example.com", "z"),
    ("eve", "", "get", "pods/log", "z/x"),
    ("eve", "", "create", "pods/exec", "z/x"),
    ("eve", "", "create", "pods/eviction", "z/x"),
    ("eve", "", "create", "serviceaccounts/token", "z/robot"),
    ("eve", "", "get update patch", "deployments.apps/scale", "z/x"),
    ("eve", "", "get", "/metrics", ""),
    ("eve", "", "get", "/logs/x", ""),
    ("eve", "", "get", "/", ""),
    ("eve", "", "get", "/.well-known/openid-configuration", ""),
    ("eve", "get", "post put", "/api", ""),
    ("eve", "get", "", "/apis", ""),
    ("eve", "get", "", "/apis/apps", ""),
    ("eve", "get", "", "/apis/apps/v1", ""),
    ("eve", "get", "", "/api/v1", ""),
    ("eve", "get", "", "/openapi/v2", ""),
    ("eve", "get", "", "/openapi/v3", ""),
    ("eve", "get", "", "/version", ""),
    ("eve", "get", "", "/healthz", ""),
    ("eve", "get", "", "/livez", ""),
    ("eve", "get", "", "/readyz", ""),
    ("eve", "create", "list", "selfsubjectaccessreviews.authorization.k8s.io", ""),
    ("eve", "create", "", "selfsubjectrulesreviews.authorization.k8s.io", ""),
    ("eve", "create", "", "selfsubjectreviews.authentication.k8s.io", ""),
    ("eve", "", "create", "subjectaccessreviews.authorization.k8s.io", ""),
    ("eve", "", "create", "localsubjectaccessreviews.authorization.k8s.io", "z"),
    ("eve", "", "create", "tokenreviews.authentication.k8s.io", ""),
    ("eve", "", "get list", "namespaces", ""),
    ("eve", "", "get", "namespaces", "-/z"),
    ("ann", "get list watch", _WRITES, "pods", "z"),
    ("ann", "get", "delete patch", "pods", "z/x"),
    ("ann", "", "get list", "pods", "y"),
    ("ann", "", "list", "pods", ""),
    ("ann", "", "get list watch", "secrets", "z"),
    ("ann", "", "get list", "roles.rbac.authorization.k8s.io", "z"),
    ("ann", "get list", "create delete", "deployments.apps", "z"),
    ("ann", "get", "update", "deployments.apps/scale", "z/x"),
    ("ann", "get", "", "pods/log", "z/x"),
    ("ann", "", "create", "pods/exec", "z/x"),
    ("ann", "get", "", "namespaces", "-/z"),
    ("ann", "", "get", "namespaces", "-/y"),
    ("ann", "", "list", "namespaces", ""),
    ("ann", "", "get list", "nodes", ""),
    ("ann", "get list", "create", "serviceaccounts", "z"),
    ("ann", "", "create", "serviceaccounts/token", "z/robot"),
    ("ann", "", "list", "leases.coordination.k8s.io", "z"),
    ("ben", "list watch create patch delete deletecollection", "", "pods", "z"),
    ("ben", "get", "", "secrets", "z/s"),
    ("ben", "create delete", "", "secrets", "z"),
    ("ben", "create", "", "pods/exec", "z/x"),
    ("ben", "create", "", "pods/eviction", "z/x"),
    ("ben", "create", "", "serviceaccounts/token", "z/robot"),
    ("ben", "", "create", "roles.rbac.authorization.k8s.io", "z"),
    ("ben", "", "create list", "rolebindings.rbac.authorization.k8s.io", "z"),
    ("ben", "", "create update", "resourcequotas", "z"),
    ("ben", "list", "", "resourcequotas", "z"),
    ("ben", "", "update", "namespaces", "-/z"),
    ("ben", "", "create", "pods", "y"),
    ("ben", "create", "", "jobs.batch", "z"),
    ("ben", "", "create", "pods/binding", "z/x"),
    ("ben", "update", "", "deployments.apps/scale", "z/x"),
    ("cat", "create list get delete", "", "roles.rbac.authorization.k8s.io", "z"),
    ("cat", "create list", "", "rolebindings.rbac.authorization.k8s.io", "z"),
    ("cat", "", "create", "clusterroles.rbac.authorization.k8s.io", ""),
    ("cat", "", "create", "clusterrolebindings.rbac.authorization.k8s.io", ""),
    ("cat", "create", "", "localsubjectaccessreviews.authorization.k8s.io", "z"),
    ("cat", "", "create", "subjectaccessreviews.authorization.k8s.io", ""),
    ("cat", "", "create", "resourcequotas", "z"),
    ("cat", "", "delete", "namespaces", "-/z"),
    ("cat", "get", "", "namespaces", "-/z"),
    ("cat", "", "get", "/metrics", ""),
    ("dan", "get list watch", "create", "pods", "z"),
    ("dan", "list", "", "pods", ""),
    ("dan", "list", "create", "namespaces", ""),
    ("dan", "", "list", "secrets", ""),
    ("dan", "", "list", "nodes", ""),
    ("dan", "", "list", "persistentvolumes", ""),
    ("fay", "get update patch delete", "", "configmaps", "z/a"),
    ("fay", "", "get update patch delete", "configmaps", "z/b"),
    ("fay", "", "list watch create deletecollection", "configmaps", "z"),
    ("fay", "", "get", "configmaps", "y/a"),
    ("gus", "get", "", "pods/log", "z/x"),
    ("gus", "", "get", "pods", "z/x"),
    ("gus", "create", "get", "pods/exec", "z/x"),
    ("gus", "get update", "patch", "deployments.apps/scale", "z/x"),
    ("gus", "get", "", "statefulsets.apps/scale", "y/x"),
    ("gus", "", "get", "deployments.apps", "z/x"),
    ("gus", "", "get", "replicationcontrollers/scale", "z/x"),
    ("gus", "", "get", "deployments.apps/status", "z/x"),
    ("hal", "get create delete deletecollection", "", "deployments.apps", "z"),
    ("hal", "list", "", "statefulsets.apps", ""),
    ("hal", "get update", "", "deployments.apps/scale", "y/x"),
    ("hal", "", "list", "jobs.batch", ""),
    ("hal", "", "get", "pods", "z/x"),
    ("ian", "get", "", "/metrics", ""),
    ("ian", "get", "post", "/debug/pprof", ""),
    ("ian", "", "get", "/debug", ""),
    ("ian", "", "get", "/logs/", ""),
    ("pat", "get", "", "/metrics", ""),
    ("pat", "get", "", "/anything/at/all", ""),
    ("pat", "", "list", "pods", "z"),
    ("jan", "list create watch delete deletecollection", "", "jobs.batch", "z"),
    ("jan", "", "list", "jobs.batch", "y"),
    ("jan", "", "list", "cronjobs.batch", "z"),
    ("jan", "", "get", "jobs.batch/status", "z/x"),
    (_ROBOT, "get", "delete", "secrets", "z/s"),
    (_ROBOT, "get", "list", "configmaps", "z/a"),
    (_ROBOT, "", "get", "secrets", "y/s"),
    (_ROBOT, "get", "", "/.well-known/openid-configuration", ""),
    (_ROBOT, "get", "", "/openid/v1/jwks", ""),
    (_OTHER, "", "get", "secrets", "z/s"),
    (_OTHER, "get", "", "configmaps", "z/a"),
    ("system:serviceaccount:y:robot", "", "get", "configmaps", "z/a"),
    ("kim", "", "list", "pods", "z"),
    ("kim", "", "list", "pods", "y"),
    ("kim", "", "list", "nodes", ""),
    ("kim", "", "get", "/metrics", ""),
    ("lou", "get list create delete deletecollection", "", "pods", "z"),
    ("lou", "create", "", "clusterroles.rbac.authorization.k8s.io", ""),
    ("lou", "list", "", "nosuchthings.example.com", ""),
    ("lou", "get", "", "/metrics", ""),
    ("lou", "create", "", "tokenreviews.authentication.k8s.io", ""),
    ("mia", "list create", "", "nodes", ""),
    ("mia", "get", "", "/metrics", ""),
    ("nat", "list create delete", "", "secrets", "z"),
    ("nat", "get", "", "namespaces", "-/z"),
    ("nat", "delete", "", "namespaces", "-/z"),
    ("nat", "", "list", "secrets", ""),
    ("nat", "", "get", "namespaces", "-/y"),
    ("nat", "", "get", "/metrics", ""),
    ("olga", "get list", "create", "pods", "z"),
    ("olga", "list", "", "jobs.batch", "z"),
    ("olga", "list create", "", "deployments.apps", "z"),
    ("olga", "", "list", "pods", "y"),
    ("quinn", "get list", "create", "pods", "z"),
    ("quinn", "list", "", "pods.metrics.k8s.io", "z"),
    ("rob", "get patch", "delete update", "nodes", "-/n1"),
    ("rob", "get", "", "nodes", "-/n2"),
    ("rob", "", "get", "nodes", "-/n3"),
    ("rob", "", "list", "nodes", ""),
    ("sue", "", "get", "pods", "z/x"),
    ("tom", "get", "delete", "namespaces", "-/z"),
    ("tom", "get", "update", "namespaces/status", "-/z"),
    ("tom", "", "get", "namespaces", "-/y"),
    ("probe", "get", "", "/metrics", ""),
    ("probe", "", "list", "pods", ""),
    ("system:anonymous", "get", "", "/healthz", ""),
    ("system:anonymous", "get", "", "/version", ""),
    ("system:anonymous", "", "get", "/api", ""),
    ("system:anonymous", "", "list", "pods", "z"),
    ("system:anonymous", "", "create", "selfsubjectaccessreviews.authorization.k8s.io", ""),
    (_SCHEDULER, "list watch", "create", "pods", ""),
    (_SCHEDULER, "create", "", "pods/binding", "z/x"),
    (_SCHEDULER, "patch update", "get", "pods/status", "z/x"),
    (_SCHEDULER, "", "list", "secrets", ""),
    (_SCHEDULER, "create", "list", "events", "z"),
    (_SCHEDULER, "list watch", "update", "nodes", ""),
    (_COLLECTOR, "list watch", "create", "pods", ""),
    (_COLLECTOR, "delete patch", "", "secrets", "z/x"),
    (_COLLECTOR, "delete", "", "nosuchthings.example.com", "z/x"),
    (_NAMESPACES, "delete list deletecollection watch", "create", "secrets", "z"),
    (_NAMESPACES, "update get", "patch", "namespaces/finalize", "-/z"),
    (_NAMESPACES, "", "create", "pods", "z"),
    (_JOBS, "create delete list", "update", "pods", "z"),
    (_JOBS, "update", "", "jobs.batch/status", "z/x"),
    (_JOBS, "", "list", "secrets", "z"),
    (_DEPLOYMENTS, "create list update", "", "replicasets.apps", "z"),
    (_DEPLOYMENTS, "", "create", "pods", "z"),
)

CASES: tuple[Case, ...] = tuple(
    Case(who, verb, resource, where, allowed)
    for who, yes, no, resource, where in _LINES
    for verbs, allowed in ((yes, True), (no, False)) for verb in verbs.split()
)


def groups_of(who: str) -> tuple[str, ...]:
    """The groups of somebody, as authentication would find them."""
    if who == "system:anonymous":
        return GROUPS[who]
    if who.startswith("system:serviceaccount:"):
        namespace = who.split(":")[2]
        return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return (*GROUPS.get(who, ()), "system:authenticated")
