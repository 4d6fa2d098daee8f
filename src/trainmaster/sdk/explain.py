"""Why a job is as it is, in sentences: what it waits for, what failed first, what follows from it.

`explained` is pure and reads what is there: the job with its post-mortem, its pods, the reason that the scheduler left
on its group, and what the node complained of. `explain` fetches these.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from trainmaster.api import groups
from trainmaster.api.codec import decode_status
from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.membership import JOB_NAME
from trainmaster.api.meta import Object, Resource, controller_of, metadata, name_of, namespace_of, uid_of
from trainmaster.api.policy import ConditionType, JobStatus
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import survey
from trainmaster.kube.errors import NotFound
from trainmaster.progress import curves
from trainmaster.sdk import ends, shortages
from trainmaster.sdk.ends import LAST_WORDS
from trainmaster.sdk.errors import NoJob
from trainmaster.sdk.happenings import in_order
from trainmaster.sdk.jobs import is_training
from trainmaster.sdk.pulse import QUIET, Pulse, hangs, last_lines, pulses
from trainmaster.sdk.pulse import told as pulse_told
from trainmaster.sdk.replicas import AGAIN_AND_AGAIN, Replica, end_in_words, last_end, replica_of
from trainmaster.sdk.session import some
from trainmaster.sdk.usage import usage

MOST_READ = 4        # logs of failed pods that are read for their last words


@dataclass(frozen=True, slots=True)
class Explanation:
    kind: str
    name: str
    state: str                 # one word: Waiting, Running, Silent, Hung, Restarting, Succeeded, Failed, Suspended
    why: str                   # one sentence
    more: tuple[str, ...] = ()
    progress: tuple[str, ...] = ()      # how far one that runs is, if it says so


async def explain(client: Client, name: str, namespace: str, *, now: datetime | None = None,
                  quiet: float = QUIET) -> list[Explanation]:
    """Every job of that name. With the moment (`now`) it is also seen whether one that runs does anything, which is in
    doubt after `quiet` seconds of silence. Raises NoJob."""
    kinds = {kind.resource for kind in (await survey(client)).kinds}
    found = []
    for resource in sorted((kind for kind in kinds if is_training(kind)), key=lambda kind: kind.kind):
        try:
            job = await client.get(resource, name, namespace)
        except NotFound:
            continue
        labels = f"{JOB_NAME}={name}"
        pods = [pod for pod in (await client.list(PODS, namespace, labels=labels)).items if not _is_twins(pod, job)]
        group = await _group(client, [known for known in groups.GROUPS if known in kinds], job, namespace)
        pods = await _with_last_words(client, pods)
        told = explained(resource.kind, job, pods, group, await _complaints(client, job, pods))
        if told.state == "Running" and now is not None:
            used = await usage(client, namespace, labels)
            told = _alive(told, job, await pulses(client, pods, used, now, quiet), now, quiet)
        found.append(told)
    if not found:
        raise NoJob(f"There is no job '{name}' in namespace {namespace}.")
    return found


async def _with_last_words(client: Client, pods: Sequence[Object]) -> list[Object]:
    """The pods, with the end of their logs where they failed, or do so again and again, and nobody wrote it down."""
    failed = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Failed"
              or replica_of(pod).state == AGAIN_AND_AGAIN][:MOST_READ]
    if not failed:
        return list(pods)
    words = {uid_of(pod): await last_lines(client, pod, LAST_WORDS) for pod in failed}
    return [_saying(pod, words[uid_of(pod)]) if words.get(uid_of(pod)) else pod for pod in pods]


def _saying(pod: Object, words: str) -> Object:
    statuses = [
        {**each, state: {"terminated": {**ended, "message": ended.get("message") or words}}}
        if (ended := (each.get(state := "state") or {}).get("terminated")
            or (each.get(state := "lastState") or {}).get("terminated")) else each
        for each in pod["status"].get("containerStatuses") or ()
    ]
    return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}


def _alive(told: Explanation, job: Object, found: Sequence[Pulse], now: datetime, quiet: float) -> Explanation:
    reported = curves.of(job)
    if reported is not None and (now - reported.updated).total_seconds() < quiet:
        return replace(told, progress=tuple(curves.told(reported, now)))
    state, why = told.state, told.why
    if hangs(found, quiet):
        state, why = "Hung", f"{why}, but they neither print nor compute"
    elif found and all(each.silent >= quiet and each.cpu is None for each in found):
        state, why = "Silent", f"{why}, but they print nothing"
    return replace(told, state=state, why=why, more=(*told.more, *pulse_told(found, quiet)))


async def _group(client: Client, kinds: Sequence[Resource], job: Object, namespace: str) -> Object | None:
    for resource in kinds:
        for name in (_named_group(job), name_of(job)):
            try:
                if name and not _is_twins(found := await client.get(resource, name, namespace), job):
                    return found
            except NotFound:
                continue
    return None


def _named_group(job: Object) -> str:
    """The group that the templates name."""
    for field, roles in (job.get("spec") or {}).items():
        if field.endswith("ReplicaSpecs") and isinstance(roles, dict):
            for role in roles.values():
                annotations = metadata(role.get("template") or {}).get("annotations") or {}
                if annotations.get(groups.GROUP_NAME):
                    return str(annotations[groups.GROUP_NAME])
    return ""


def _is_twins(thing: Object, job: Object) -> bool:
    """Whether it belongs to a job of the same name that is of another kind."""
    owner = controller_of(thing)
    return owner is not None and owner.get("name") == name_of(job) and owner.get("kind") != job.get("kind")


async def _complaints(client: Client, job: Object, pods: Sequence[Object]) -> dict[str, str]:
    """What was said last against each pod that has not started, such as a volume that cannot be mounted, or, if there
    is none yet, against the job: by UID."""
    pending = {uid_of(pod) for pod in pods if (pod.get("status") or {}).get("phase") == "Pending"}
    if pods and not pending:
        return {}
    kind = "Pod" if pods else str(job.get("kind"))
    pending |= set() if pods else {uid_of(job)}
    fields = f"involvedObject.kind={kind},type=Warning"
    events = (await client.list(EVENTS, namespace_of(job), fields=fields)).items
    return {uid: str(event.get("message") or "").strip() for event in sorted(events, key=in_order)
            if (uid := (event.get("involvedObject") or {}).get("uid")) in pending}


def explained(kind: str, job: Object, pods: Sequence[Object], group: Object | None,
              complaints: Mapping[str, str] = MappingProxyType({})) -> Explanation:
    status = decode_status(job.get("status"))
    replicas = sorted((replica_of(pod) for pod in pods), key=lambda replica: replica.name)
    state, why = _state(status, replicas, group)
    remembered = status.post_mortem.ended if status.post_mortem else ()
    more = [*_restarts(replicas, pods), *ends.told(ends.ends_of(remembered, pods)),
            *_waiting(replicas, pods, complaints)] if state != "Succeeded" else []
    if state == "Waiting" and not replicas and (complaint := complaints.get(uid_of(job))):
        more.append(complaint)
    if state == "Waiting" and (advice := shortages.remedy(why)):
        more.append(advice)
    return Explanation(kind, name_of(job), state, why, tuple(more))


def _state(status: JobStatus, replicas: Sequence[Replica], group: Object | None) -> tuple[str, str]:
    for ended in (ConditionType.FAILED, ConditionType.SUCCEEDED, ConditionType.SUSPENDED):
        found = status.condition(ended)
        if found is not None and found.true:
            return str(ended), found.message
    waits = groups.why_waiting(group or {})
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
    if failing := [replica.name for replica in replicas if replica.state == AGAIN_AND_AGAIN]:
        return "Restarting", f"{some(failing, 4)} {'ends' if len(failing) == 1 else 'end'} each time after the start"
    return "Waiting", ("its replica does not run yet" if len(replicas) == 1 else
                       f"none of its {len(replicas)} replicas runs yet")


def _restarts(replicas: Sequence[Replica], pods: Sequence[Object]) -> Iterator[str]:
    """Replicas that were started again in place, and how the first of them ended before."""
    by_name = {name_of(pod): pod for pod in pods}
    told = False
    for replica in replicas:
        if not replica.restarts or replica.ended:
            continue
        last = last_end(by_name[replica.pod])
        after = f", last after: {end_in_words(by_name[replica.pod], last)}" if last else ""
        yield f"{replica.name} was started again {replica.restarts} time{'s' if replica.restarts > 1 else ''}{after}"
        if last and not told:
            told = True
            yield from ends.words_told(str(last.get("message") or ""), str(last.get("reason") or ""))


def _waiting(replicas: Sequence[Replica], pods: Sequence[Object], complaints: Mapping[str, str]) -> Iterator[str]:
    """What replicas that do not run wait for, each thing once."""
    told: dict[str, list[str]] = {}
    by_name = {name_of(pod): pod for pod in pods}
    for replica in replicas:
        if replica.ended or replica.state == "Running":
            continue
        pod = by_name[replica.pod]
        why = replica.why or complaints.get(uid_of(pod), "")
        if why:
            told.setdefault(why, []).append(replica.name)
    for why, names in told.items():
        yield f"{some(names, 4)}: {why}"
