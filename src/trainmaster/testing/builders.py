"""Objects for tests in one line each: `pod("a", phase="Running")`, `node(cpu=8)`, `job(workers=2)`.

Only what a test says differs from the plainest valid object. The results are plain dictionaries, made anew each time.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.api.meta import Object, timestamp

JOB_KINDS: Mapping[str, tuple[str, str, str]] = {
    # kind -> the field of its replicas, the role of most of them, the container that trains
    "TFJob": ("tfReplicaSpecs", "Worker", "tensorflow"),
    "PyTorchJob": ("pytorchReplicaSpecs", "Worker", "pytorch"),
    "MXJob": ("mxReplicaSpecs", "Worker", "mxnet"),
    "XGBoostJob": ("xgbReplicaSpecs", "Worker", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "Worker", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "Worker", "jax"),
}


def pod(
    name: str = "pod",
    namespace: str = "default",
    *,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    owner: Object | None = None,
    node: str = "",
    phase: str = "",
    image: str = "busybox",
    command: tuple[str, ...] = ("true",),
    container: str = "main",
    requests: Mapping[str, str] | None = None,
    restart: str = "Never",
    exit_code: int | None = None,
    restarts: int = 0,
    deleted: datetime | None = None,
    revision: str = "",
    **spec: Any,
) -> Object:
    """A pod; with `exit_code` its container has ended so, and the phase follows from it."""
    about = _metadata(name, namespace, uid, labels, revision)
    if owner is not None:
        about["ownerReferences"] = [owned_by(owner)]
    if deleted is not None:
        about["deletionTimestamp"] = timestamp(deleted)
        about["deletionGracePeriodSeconds"] = 30
    main: Object = {"name": container, "image": image, "command": list(command)}
    if requests:
        main["resources"] = {"requests": dict(requests)}
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {"containers": [main], "restartPolicy": restart, **spec},
    }
    if node:
        made["spec"]["nodeName"] = node
    if exit_code is not None:
        phase = phase or ("Succeeded" if exit_code == 0 else "Failed")
    if phase:
        made["status"] = {"phase": phase, "containerStatuses": [_container(container, phase, exit_code, restarts)]}
    return made


def owned_by(owner: Object) -> Object:
    """The owner reference that a controller puts on what it makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def node(
    name: str = "node",
    *,
    cpu: int | str = 8,
    memory: str = "16Gi",
    pods: int = 110,
    resources: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    ready: bool = True,
    **spec: Any,
) -> Object:
    """A node with room; `resources` are extended ones, as `{"nvidia.com/gpu": "2"}`."""
    room = {"cpu": str(cpu), "memory": memory, "pods": str(pods), **(resources or {})}
    about = _metadata(name, "", "", {"kubernetes.io/hostname": name, **(labels or {})}, "")
    condition = {"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": about,
        "spec": dict(spec),
        "status": {"capacity": room, "allocatable": dict(room), "conditions": [condition]},
    }


def job(
    name: str = "mnist",
    namespace: str = "default",
    *,
    kind: str = "PyTorchJob",
    workers: int = 1,
    replicas: Mapping[str, int] | None = None,
    restart: str = "",
    command: tuple[str, ...] = ("python", "train.py"),
    image: str = "busybox",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    run_policy: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A kubeflow.org/v1 job. `replicas` names roles and counts, for instance `{"Master": 1, "Worker": 2}`."""
    field, role, container = JOB_KINDS[kind]
    specs: Object = {}
    for each, count in (replicas or {role: workers}).items():
        trains = {"name": container, "image": image, "command": list(command)}
        specs[each] = {"replicas": count, "template": {"spec": {"containers": [trains]}}}
        if restart:
            specs[each]["restartPolicy"] = restart
    made: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": _metadata(name, namespace, uid, labels, ""),
        "spec": {field: specs, **spec},
    }
    if run_policy is not None:
        made["spec"]["runPolicy"] = dict(run_policy)
    return made


def _metadata(name: str, namespace: str, uid: str, labels: Mapping[str, str] | None, revision: str) -> Object:
    given: Object = {
        "name": name, "namespace": namespace, "uid": uid, "labels": dict(labels or {}), "resourceVersion": revision,
    }
    return {field: value for field, value in given.items() if value}


def _container(name: str, phase: str, exit_code: int | None, restarts: int) -> Object:
    if exit_code is not None:
        state: Object = {"terminated": {"exitCode": exit_code, "reason": "Completed" if exit_code == 0 else "Error"}}
    elif phase == "Running":
        state = {"running": {}}
    else:
        state = {"waiting": {"reason": "ContainerCreating"}}
    return {"name": name, "state": state, "ready": phase == "Running", "restartCount": restarts}
