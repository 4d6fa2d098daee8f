"""Which pod is meant by JOB, JOB/REPLICA or JOB --replica: for commands that go into one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.sdk.errors import NoJob, NoReplica

if TYPE_CHECKING:
    from trainmaster.api.meta import Object
    from trainmaster.sdk.client import Client
    from trainmaster.sdk.jobs import Job

FIRST = ("chief", "master", "worker")      # who leads, if nobody was named


@dataclass(frozen=True, slots=True)
class Place:
    """A pod, and what people call it."""

    namespace: str
    pod: str
    replica: str
    container: str = ""
    node: str = ""          # of a pod that has ended: who still has its files


def place(client: "Client", word: str, replica: str = "", container: str = "", *, ended: bool = False) -> Place:
    """The running replica that is meant; the leading one if none is named. With `ended`, one that has ended will do.
    Raises NoJob, NoReplica."""
    from trainmaster.api.core import PODS
    from trainmaster.api.membership import JOB_NAME
    from trainmaster.api.meta import labels_of, name_of
    from trainmaster.kube.blocking import done
    from trainmaster.kube.errors import NotFound
    from trainmaster.sdk.replicas import replica_of
    from trainmaster.sdk.session import named

    job, _, last = word.rpartition("/")
    if job and ("/" in job or named(job, done(client.session.served())) is None):
        word, replica = job, last
    try:
        found = client.get(word)
    except NoJob:
        try:      # the name of a pod will do
            pod = done(client.session.client.get(PODS, word.removeprefix("pod/"), client.session.namespace))
        except NotFound:
            pod = {}
        if not pod:
            raise
        short = replica_of(pod).name if JOB_NAME in labels_of(pod) else name_of(pod)
        return _placed(pod, client.session.namespace, short, container)
    pods = {replica_of(pod).name: pod for pod in
            done(client.session.client.list(PODS, found.namespace, labels=found.pods)).items}
    if ended:
        pods = {**_gone(client, found, list(pods.values())), **pods}
    running = [name for name, pod in pods.items() if replica_of(pod).state == "Running"]
    running = running or [name for name, pod in pods.items() if ended and _node_of_ended(pod)]
    if not replica:
        leading = sorted(running, key=lambda name: (name.rpartition("-")[0] not in FIRST, *_rank(name)))
        if not leading:
            state = f"{'has' if found.finished else 'is'} {found.state.lower()}"
            raise NoReplica(f"{found.kind} {found.namespace}/{found.name} has no replica that runs; it {state}. "
                            f"`trainmaster explain {found.name}` says why.")
        replica = leading[0]
    meant = next((name for name, pod in pods.items() if replica.lower() in (name, name_of(pod))), None)
    if meant is None:
        there = ", ".join(sorted(pods)) or "none"
        raise NoReplica(f"{found.kind} {found.namespace}/{found.name} has no replica '{replica}' (found: {there}).")
    if meant not in running and not (ended and _node_of_ended(pods[meant])):
        raise NoReplica(f"{meant} of {found.kind} {found.namespace}/{found.name} does not run; it is "
                        f"{replica_of(pods[meant]).state}.")
    return _placed(pods[meant], found.namespace, meant, container)


def _gone(client: "Client", job: "Job", pods: "list[Object]") -> "dict[str, Object]":
    """Replicas whose pods are gone and whose files are not, each as a pod that has ended."""
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.former import last_pods
    from trainmaster.sdk.replicas import replica_of

    return {replica_of(record).name: {**record, "status": {"phase": "Failed"}, "spec": {
                "nodeName": node, "containers": [{"name": name} for name in record["containers"]]}}
            for record, node in done(last_pods(client.session.client, job, pods, files=True))}


def _placed(pod: "Object", namespace: str, replica: str, container: str) -> Place:
    node, containers = _node_of_ended(pod), pod["spec"].get("containers") or [{"name": ""}]
    return Place(namespace, str(pod["metadata"]["name"]), replica,
                 container or (str(containers[0]["name"]) if node else ""), node)


def _node_of_ended(pod: "Object") -> str:
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return str(pod["spec"].get("nodeName") or "") if over else ""


def _rank(name: str) -> tuple[int, int]:
    role, _, index = name.rpartition("-")
    return (FIRST.index(role) if role in FIRST else len(FIRST)), int(index) if index.isdigit() else 0
