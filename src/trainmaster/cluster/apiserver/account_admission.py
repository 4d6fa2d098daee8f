"""The account that a pod runs as, and the way into the API server that comes with it.

A pod that names no account runs as `default`; one whose account is not there is refused; and unless pod or account say
no, each of its containers finds a token, the server's certificate and its namespace where client libraries look for
them. All of that is written into the pod, as in Kubernetes, so that the node has nothing to know but volumes. Letting
the node add the files by itself was rejected: what a pod can read would not be in its specification.
"""

from collections.abc import Callable

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import accounts, failures, mountable

DEFAULT = "default"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
PREFIX = "kube-api-access-"
MIRROR = "kubernetes.io/config.mirror"

Suffix = Callable[[], str]          # the end of a name, by chance


def name_of(pod: Object) -> str:
    return str(pod["spec"].get("serviceAccountName") or DEFAULT)


def is_mirror(pod: Object) -> bool:
    """Whether a node only shows here what it runs on its own account."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def admit(pod: Object, account: Object | None, choose: Suffix) -> None:
    """Give a new pod what its account brings; doing it twice changes nothing. Raises Failure 403."""
    spec, name = pod["spec"], name_of(pod)
    if is_mirror(pod):
        _refuse(pod, _beyond_a_node(spec))
        return
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    if account is None:
        where = f"{pod['metadata']['namespace']}/{name}"
        _refuse(pod, f"error looking up service account {where}: serviceaccount {failures.quoted(name)} not found")
        return
    _refuse(pod, mountable.refusal(spec, account))
    if _wants_token(spec, account):
        _mount(spec, choose)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]


def check(pod: Object, account: Object | None) -> None:
    """Whether a pod that runs may get the containers it is about to. Raises Failure 403."""
    if account is not None:
        _refuse(pod, mountable.refusal(pod["spec"], account))


def _refuse(pod: Object, why: str) -> None:
    if why:
        raise failures.forbidden(PODS, pod["metadata"].get("name", ""), why)


def _beyond_a_node(spec: Object) -> str:
    """What a pod that a node runs on its own account cannot have, as nobody here vouches for it."""
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if next(mountable.secrets_of(spec), None) is not None:
        return "a mirror pod may not reference secrets"
    if any("serviceAccountToken" in source for volume in spec.get("volumes") or ()
           for source in (volume.get("projected") or {}).get("sources") or ()):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _wants_token(spec: Object, account: Object) -> bool:
    for said in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if said is not None:
            return bool(said)
    return True


def _mount(spec: Object, choose: Suffix) -> None:
    """Mount the volume wherever nothing else is; it is there only if somebody mounts it."""
    lacking = [container for field in ("initContainers", "containers") for container in spec.get(field) or ()
               if all(mount.get("mountPath") != PLACE for mount in container.get("volumeMounts") or ())]
    if not lacking:
        return
    names = [str(volume.get("name")) for volume in spec.get("volumes") or ()]
    name = next((each for each in names if each.startswith(PREFIX)), "")
    if not name:
        name = PREFIX + choose()
        spec["volumes"] = [*(spec.get("volumes") or ()), _volume(name)]
    for container in lacking:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()),
                                     {"name": name, "readOnly": True, "mountPath": PLACE}]


def _volume(name: str) -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": accounts.OF_PODS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}}
