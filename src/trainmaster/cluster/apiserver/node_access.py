"""What a node may do: what its pods need, and nothing of others.

Roles cannot say "the secrets of the pods that run here", so nodes have an authorizer of their own, as in Kubernetes. It
knows which ConfigMaps, Secrets, claims and accounts the pods of each node refer to, and reads that from the store's
changes when a node asks (as `authorization` does). A pod is read once, when it is bound: what it refers to stays.
Three things are wider than in Kubernetes: the node also answers the names of pods and leads the addresses of services
to them, so it may list all pods and all endpoints; and it keeps the files of pods that are gone for as long as what
they belonged to, so it may list what makes pods.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from trainmaster.api import core
from trainmaster.api.core import LEASES, NODES, OWNER_GROUPS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import failures, rbac
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.authorization import Decision
from trainmaster.cluster.apiserver.failures import quoted
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rbac import Attributes, Rule
from trainmaster.cluster.store import Closed, Lagged, Store, Subscription

USER_PREFIX = "system:node:"
GROUP = "system:nodes"
PODS = "/core/pods/"
# What the node agent does, and no more.
RULES = (
    Rule(("create", "get", "update"), ("",), ("nodes",)),
    Rule(("update",), ("",), ("nodes/status",)),
    Rule(("list", "watch"), ("",), ("pods", "services")),
    Rule(("list", "watch"), ("discovery.k8s.io",), ("endpointslices",)),
    Rule(("get", "delete"), ("",), ("pods",)),
    Rule(("update",), ("",), ("pods/status",)),
    Rule(("get", "list", "watch"), ("",), ("configmaps", "secrets", "persistentvolumeclaims")),
    Rule(("get",), ("",), ("persistentvolumes",)),
    Rule(("create",), ("",), ("serviceaccounts/token",)),
    Rule(("create", "patch"), ("",), ("events",)),
    Rule(("create", "patch"), ("coordination.k8s.io",), ("leases",)),
    Rule(("list", "watch"), OWNER_GROUPS, ("*",)),
)
_OF_PODS = frozenset({"configmaps", "secrets", "persistentvolumeclaims", "serviceaccounts"})


def node_of(who: Identity) -> str:
    """The name of the node that asks, or "" if it is none."""
    if GROUP in who.groups and who.user.startswith(USER_PREFIX):
        return who.user.removeprefix(USER_PREFIX)
    return ""


def restrict(kind: Kind, _old: Object | None, new: Object, who: Identity) -> None:
    """A node makes its own Node and lease; of what is new, no path says the name. Raises Failure 403."""
    node = node_of(who)
    if node and kind.resource in (NODES, LEASES) and new["metadata"].get("name") != node:
        name = str(new["metadata"].get("name"))
        raise failures.forbidden(kind.resource, name, f"node {quoted(node)} is not allowed to modify "
                                                      f"{kind.resource.kind.lower()} {quoted(name)}")


class Nodes:
    """An authorizer for nodes; has no opinion on others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followed: Subscription | None = None
        self._pods: dict[str, tuple[str, frozenset[tuple[str, str, str]]]] = {}
        self._needed: dict[tuple[str, str, str, str], int] = {}     # (node, resource, namespace, name) -> pods

    def decide(self, who: Identity, wanted: Attributes) -> Decision:
        node = node_of(who)
        if not node or wanted.path or not rbac.decide(RULES, wanted):
            return Decision(False)
        if wanted.resource in _OF_PODS:
            self._refresh()
            if (node, wanted.resource, wanted.namespace, wanted.name) in self._needed:
                return Decision(True)
            return Decision(False, f"no relationship found between node '{node}' and this object")
        if wanted.resource == "nodes" and wanted.name not in (node, ""):
            return Decision(False, f"node '{node}' cannot read '{wanted.name}', only its own Node object"
                            if wanted.verb == "get" else f"node '{node}' is not allowed to modify node '{wanted.name}'")
        if wanted.resource == "leases" and wanted.name not in (node, ""):
            return Decision(False, "can only access node lease with the same name as the requesting node")
        if wanted.resource == "pods" and wanted.name and wanted.verb not in ("list", "watch"):
            return self._own_pod(node, wanted)
        return Decision(True)

    def check_token(self, who: Identity, namespace: str, account: str, asked: Object) -> None:
        """A node gets tokens for the pods that run on it, and for whom these talk to. Raises Failure 403 or 404."""
        if node := node_of(who):
            spec = asked.get("spec") or {}
            if why := self._unfit(node, namespace, spec.get("boundObjectRef") or {}, spec.get("audiences") or [""]):
                raise failures.forbidden(SERVICE_ACCOUNTS, account, why)

    def _unfit(self, node: str, namespace: str, bound: Object, audiences: list[str]) -> str:
        """Why a node does not get a token that is bound to this; nothing, if it does."""
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            return "node requested token not bound to a pod"
        if not bound.get("uid"):
            return "node requested token with a pod binding without a uid"
        if (record := self._store.get(f"{PODS}{namespace}/{bound['name']}")) is None:
            raise failures.not_found(core.PODS, bound["name"])
        pod = orjson.loads(record.value)
        if bound["uid"] != pod["metadata"]["uid"]:
            return (f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
                    "The object might have been deleted and then recreated")
        if _bound_to(pod) != node:
            return "node requested token bound to a pod scheduled on a different node"
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        if audiences[0] not in _audiences(pod):
            return (f"audience {quoted(audiences[0])} not found in pod spec volume, {USER_PREFIX}{node} is not "
                    "authorized to request tokens for this audience")
        return ""

    def _own_pod(self, node: str, wanted: Attributes) -> Decision:
        record = self._store.get(f"{PODS}{wanted.namespace}/{wanted.name}")
        if record is None or _bound_to(orjson.loads(record.value)) == node:
            return Decision(True)      # a pod that is gone: it may hear so
        return Decision(False, f"no relationship found between node '{node}' and this object")

    def _refresh(self) -> None:
        try:
            if self._followed is None:
                self._read_all()
                return
            while changes := self._followed.take().changes:
                for change in changes:
                    self._put(change.key, change.value)
        except (Lagged, Closed):
            self._read_all()

    def _read_all(self) -> None:
        self._followed = self._store.subscribe(PODS, self._store.revision)
        self._pods.clear()
        self._needed.clear()
        for record in self._store.scan(PODS):
            self._put(record.key, record.value)

    def _put(self, key: str, value: bytes | None) -> None:
        if value is None:
            node, needs = self._pods.pop(key, ("", frozenset()))
            for need in needs:
                left = self._needed[node, *need] - 1
                if left:
                    self._needed[node, *need] = left
                else:
                    del self._needed[node, *need]
        elif key not in self._pods and b'"nodeName"' in value:
            pod = orjson.loads(value)
            if node := _bound_to(pod):
                needs = frozenset(needed(pod))
                self._pods[key] = (node, needs)
                for need in needs:
                    self._needed[node, *need] = self._needed.get((node, *need), 0) + 1


def needed(pod: Object) -> Iterator[tuple[str, str, str]]:
    """(resource, namespace, name) of what a pod refers to."""
    namespace, spec = pod["metadata"].get("namespace", ""), pod["spec"]
    yield "serviceaccounts", namespace, str(spec.get("serviceAccountName") or "default")
    for each in spec.get("imagePullSecrets") or ():
        yield "secrets", namespace, str(each.get("name"))
    for volume in spec.get("volumes") or ():
        for resource, name in _of_volume(volume):
            yield resource, namespace, name
        if "ephemeral" in volume:
            yield "persistentvolumeclaims", namespace, f"{pod['metadata'].get('name')}-{volume.get('name')}"
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            for resource, name in _of_container(container):
                yield resource, namespace, name


def _of_volume(volume: Object) -> Iterator[tuple[str, str]]:
    sources: list[Object] = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    for source in sources:
        if found := source.get("configMap"):
            yield "configmaps", str(found.get("name"))
        if found := source.get("secret"):
            yield "secrets", str(found.get("secretName") or found.get("name"))
        if found := source.get("persistentVolumeClaim"):
            yield "persistentvolumeclaims", str(found.get("claimName"))


def _of_container(container: Object) -> Iterator[tuple[str, str]]:
    for each in container.get("envFrom") or ():
        yield from _references(each, "configMapRef", "secretRef")
    for each in container.get("env") or ():
        yield from _references(each.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")


def _references(source: dict[str, Any], config_map: str, secret: str) -> Iterator[tuple[str, str]]:
    if found := source.get(config_map):
        yield "configmaps", str(found.get("name"))
    if found := source.get(secret):
        yield "secrets", str(found.get("name"))


def _audiences(pod: Object) -> set[str]:
    """For whom a pod wants tokens of its account in its volumes; "" is the API server."""
    sources = (each for volume in pod["spec"].get("volumes") or ()
               for each in (volume.get("projected") or {}).get("sources") or ())
    return {str(found.get("audience") or "") for each in sources if (found := each.get("serviceAccountToken"))}


def _bound_to(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")
