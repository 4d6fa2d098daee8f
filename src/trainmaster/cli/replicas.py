"""Which pod is meant by JOB, JOB/REPLICA or JOB --replica: for commands that go into one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.sdk.errors import NoJob, NoReplica

if TYPE_CHECKING:
    from trainmaster.sdk.client import Client

FIRST = ("chief", "master", "worker")      # who leads, if nobody was named


@dataclass(frozen=True, slots=True)
class Place:
    """A pod, and what people call it."""

    namespace: str
    pod: str
    replica: str
    container: str = ""


def place(client: "Client", word: str, replica: str = "", container: str = "") -> Place:
    """The running replica that is meant; the leading one if none is named. Raises NoJob, NoReplica."""
    from trainmaster.api.core import PODS
    from trainmaster.api.meta import labels_of, name_of
    from trainmaster.kube.blocking import done
    from trainmaster.kube.errors import NotFound
    from trainmaster.sdk.replicas import JOB_NAME, replica_of
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
        return Place(client.session.namespace, name_of(pod), short, container)
    pods = {replica_of(pod).name: pod for pod in
            done(client.session.client.list(PODS, found.namespace, labels=found.pods)).items}
    running = [name for name, pod in pods.items() if replica_of(pod).state == "Running"]
    if not replica:
        leading = sorted(running, key=lambda name: (name.rpartition("-")[0] not in FIRST, *_rank(name)))
        if not leading:
            raise NoReplica(f"{found.kind} {found.namespace}/{found.name} has no replica that runs; it is "
                            f"{found.state.lower()}. `trainmaster explain {found.name}` says why.")
        replica = leading[0]
    meant = next((name for name, pod in pods.items() if replica.lower() in (name, name_of(pod))), None)
    if meant is None:
        there = ", ".join(sorted(pods)) or "none"
        raise NoReplica(f"{found.kind} {found.namespace}/{found.name} has no replica '{replica}' (found: {there}).")
    if meant not in running:
        raise NoReplica(f"{meant} of {found.kind} {found.namespace}/{found.name} does not run; it is "
                        f"{replica_of(pods[meant]).state}.")
    return Place(found.namespace, name_of(pods[meant]), meant, container)


def _rank(name: str) -> tuple[int, int]:
    role, _, index = name.rpartition("-")
    return (FIRST.index(role) if role in FIRST else len(FIRST)), int(index) if index.isdigit() else 0
