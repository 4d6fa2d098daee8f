"""Why a job is as it is, in sentences: what it waits for, what failed first, what follows from it.

`explained` is pure and reads what is there: the job with its post-mortem, its pods, and the reason that the scheduler
left on its group. `explain` fetches these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from trainmaster.api import groups
from trainmaster.api.codec import decode_status
from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, Resource, metadata, name_of
from trainmaster.api.policy import ConditionType, EndedReplica, JobStatus
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import survey
from trainmaster.kube.errors import NotFound
from trainmaster.sdk.errors import NoJob
from trainmaster.sdk.replicas import JOB_NAME, Replica, replica_of
from trainmaster.sdk.submit import is_job

GROUP_KEYS = ("scheduling.k8s.io/group-name",)
LAST_WORDS = 10      # lines


@dataclass(frozen=True, slots=True)
class Explanation:
    kind: str
    name: str
    state: str                 # one word: Waiting, Running, Restarting, Succeeded, Failed, Suspended
    why: str                   # one sentence
    more: tuple[str, ...] = ()


async def explain(client: Client, name: str, namespace: str) -> list[Explanation]:
    """Every job of that name. Raises NoJob."""
    kinds = {kind.resource for kind in (await survey(client)).kinds}
    found = []
    for resource in sorted((kind for kind in kinds if is_job(kind)), key=lambda kind: kind.kind):
        try:
            job = await client.get(resource, name, namespace)
        except NotFound:
            continue
        pods = (await client.list(PODS, namespace, labels=f"{JOB_NAME}={name}")).items
        group = await _group(client, [known for known in groups.GROUPS if known in kinds], job, namespace)
        found.append(explained(resource.kind, job, pods, group))
    if not found:
        raise NoJob(f"There is no job '{name}' in namespace {namespace}.")
    return found


async def _group(client: Client, kinds: Sequence[Resource], job: Object, namespace: str) -> Object | None:
    for resource in kinds:
        for name in (_named_group(job), name_of(job)):
            try:
                if name:
                    return await client.get(resource, name, namespace)
            except NotFound:
                continue
    return None


def _named_group(job: Object) -> str:
    """The group that the templates name."""
    for field, roles in (job.get("spec") or {}).items():
        if field.endswith("ReplicaSpecs") and isinstance(roles, dict):
            for role in roles.values():
                annotations = metadata(role.get("template") or {}).get("annotations") or {}
                for key in GROUP_KEYS:
                    if annotations.get(key):
                        return str(annotations[key])
    return ""


def explained(kind: str, job: Object, pods: Sequence[Object], group: Object | None) -> Explanation:
    status = decode_status(job.get("status"))
    replicas = sorted((replica_of(pod) for pod in pods), key=lambda replica: replica.name)
    state, why = _state(status, replicas, group)
    more = [*_ends(status), *_waiting(replicas, pods)] if state != "Succeeded" else []
    return Explanation(kind, name_of(job), state, why, tuple(more))


def _state(status: JobStatus, replicas: Sequence[Replica], group: Object | None) -> tuple[str, str]:
    for ended in (ConditionType.FAILED, ConditionType.SUCCEEDED, ConditionType.SUSPENDED):
        found = status.condition(ended)
        if found is not None and found.true:
            return str(ended), found.message
    waits = _why_waiting(group)
    if waits and not any(replica.state == "Running" for replica in replicas):
        return "Waiting", waits
    running = sum(1 for replica in replicas if replica.state == "Running")
    if status.says(ConditionType.RESTARTING):
        found = status.condition(ConditionType.RESTARTING)
        return "Restarting", found.message if found else ""
    if running:
        rest = f"; the group waits: {waits}" if waits else ""
        return "Running", f"{running} of {len(replicas)} replicas run{rest}"
    if not replicas:
        return "Waiting", "no replica has been made yet"
    return "Waiting", f"none of its {len(replicas)} replicas runs yet"


def _why_waiting(group: Object | None) -> str:
    said = (metadata(group or {}).get("annotations") or {}).get(groups.WHY)
    try:
        return str(orjson.loads(said)["why"]) if said else ""
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""


def _ends(status: JobStatus) -> Iterator[str]:
    """Who failed first, how long before the others, and its last words."""
    ends = list(status.post_mortem.ended) if status.post_mortem else []
    if not ends:
        return
    first, rest = ends[0], ends[1:]
    yield f"{first.pod} failed first: {_end(first)}"
    if first.last_words:
        yield "its last words:"
        yield from (f"  {line}" for line in first.last_words.splitlines()[-LAST_WORDS:])
    for other in rest:
        yield f"{other.pod} failed {_later(first.finished_at, other.finished_at)}: {_end(other)}"


def _end(ended: EndedReplica) -> str:
    code = "" if ended.exit_code is None or ended.says else f"exit code {ended.exit_code}"
    said = [part for part in (code, ended.says, "" if ended.reason in ("", "Error") else ended.reason,
                              f"on node {ended.node}" if ended.node else "") if part]
    return ", ".join(said) or "no reason was given"


def _later(first: datetime | None, other: datetime | None) -> str:
    if first is None or other is None:
        return "after it"
    seconds = (other - first).total_seconds()
    return "in the same second" if seconds < 1 else f"{seconds:.0f} s later, perhaps as a consequence"


def _waiting(replicas: Sequence[Replica], pods: Sequence[Object]) -> Iterator[str]:
    """What replicas that do not run wait for, each thing once."""
    told: dict[str, list[str]] = {}
    by_name = {name_of(pod): pod for pod in pods}
    for replica in replicas:
        if replica.ended or replica.state == "Running":
            continue
        why = replica.why or _unscheduled(by_name[replica.pod])
        if why:
            told.setdefault(why, []).append(replica.name)
    for why, names in told.items():
        who = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        yield f"{who}: {why}"


def _unscheduled(pod: Object) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or "")
    return ""
