"""What would become of a job that is not submitted: whether it starts, what is short, and whose end would make room.

The operator's own plan makes its pods and the scheduler's own `decide` places them, on a snapshot of the cluster as it
is now: a second opinion about fitting would be wrong sooner or later. `forecast` is pure; `fetch` reads the cluster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.api.core import NODES, PODS, PRIORITY_CLASSES, RESOURCE_QUOTAS
from trainmaster.api.membership import JOB_NAME
from trainmaster.api.meta import Object, Resource, labels_of, metadata, name_of, namespace_of, timestamp
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.amounts import requests, total
from trainmaster.cluster.scheduler.decide import decide
from trainmaster.cluster.scheduler.dialects import DIALECTS, VOLCANO, Dialect
from trainmaster.cluster.scheduler.limits import beyond, read_limit
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.settings import Decision
from trainmaster.cluster.scheduler.snapshot import Queue, Snapshot, read_pod
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.operator.preview import preview

MOST_TRIED = 50          # running jobs whose end is tried
_UID = "forecast"


@dataclass(frozen=True, slots=True)
class There:
    """A cluster as it is: its objects."""

    nodes: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    classes: Sequence[Object] = ()
    groups: Sequence[tuple[Dialect, Object]] = ()
    queues: Sequence[tuple[Dialect, Object]] = ()
    quotas: Sequence[Object] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """`starts` now, or waits (`why`); with `after`, the job whose end makes room."""

    starts: bool
    pods: int
    nodes: tuple[str, ...] = ()
    why: str = ""
    after: str = ""
    instead: tuple[str, ...] = field(default_factory=tuple)      # pods that would be sent away for it

    def told(self) -> str:
        """One sentence."""
        if self.starts:
            away = f", and {len(self.instead)} pods of less priority would have to go" if self.instead else ""
            return f"{self.pods} pod{'s' if self.pods > 1 else ''} on {_some(self.nodes)}{away}"
        return f"{self.why}{f'; fits when {self.after} ends' if self.after else ''}"


async def fetch(client: Client) -> There:
    """Everything that the scheduler looks at."""
    async def all_of(resource: Resource) -> list[Object]:
        try:
            return (await client.list(resource)).items
        except NotFound:
            return []

    groups = [(dialect, item) for dialect in DIALECTS for item in await all_of(dialect.groups)]
    queues = [(dialect, item) for dialect in DIALECTS if dialect.queues is not None
              for item in await all_of(dialect.queues)]
    return There(await all_of(NODES), await all_of(PODS), await all_of(PRIORITY_CLASSES), groups, queues,
                 await all_of(RESOURCE_QUOTAS))


def forecast(job: Object, there: There, now: datetime) -> Forecast | None:
    """None for an object that is no job, or that has a mistake."""
    pods = [made for made in preview(_named(job), now) if made["kind"] == "Pod"]
    if not pods:
        return None
    group = _group(job, len(pods), now)
    members = [_member(pod, name_of(group), number, now) for number, pod in enumerate(pods)]
    if (forbidden := _over_quota(there, members, group)) is not None:
        return Forecast(False, len(members), why=forbidden.told())
    first = _decided(there, members, group, now)
    found = _read(first, members, group)
    if found.starts or "even if nothing else ran" in found.why:
        return found
    return Forecast(False, found.pods, why=found.why, after=_whose_end(there, members, group, now))


def _over_quota(there: There, members: Sequence[Object], group: Object) -> Reason | None:
    """Whether the namespace may not have all of the pods: then they would not even be made."""
    wanted = total(requests(pod) for pod in members)
    limits = [limit for quota in there.quotas if (limit := read_limit(quota)) is not None]
    found = beyond(limits, namespace_of(group), wanted)
    if found is None:
        return None
    limit, short = found
    return Reason(Code.QUOTA_SHORT, least=len(members), quota=limit.name, short=short,
                  ever=all(wanted[name] <= limit.hard[name] for name in short))


def _whose_end(there: There, members: Sequence[Object], group: Object, now: datetime) -> str:
    """The job that has run longest of those whose end alone makes room; nobody's if it takes several."""
    running: dict[tuple[str, str], str] = {}
    for pod in there.pods:
        job = labels_of(pod).get(JOB_NAME)
        if job and (pod.get("spec") or {}).get("nodeName"):
            began = str(metadata(pod).get("creationTimestamp") or "")
            key = (namespace_of(pod), job)
            running[key] = min(running.get(key, began), began)
    for namespace, name in sorted(running, key=lambda key: running[key])[:MOST_TRIED]:
        rest = [pod for pod in there.pods
                if (namespace_of(pod), labels_of(pod).get(JOB_NAME)) != (namespace, name)]
        without = There(there.nodes, rest, there.classes, there.groups, there.queues)
        if _read(_decided(without, members, group, now), members, group).starts:
            return name if namespace == namespace_of(group) else f"{namespace}/{name}"
    return ""


def _decided(there: There, members: Iterable[Object], group: Object, now: datetime) -> Decision:
    made = Snapshot()
    for node in there.nodes:
        made.put_node(node)
    for pod in (*there.pods, *members):
        made.put_pod(read_pod(pod, dialects.group_of(pod)))
    for dialect, raw in (*there.groups, (VOLCANO, group)):
        read = dialects.read_group(raw, dialect)
        made.groups[read.key] = read
    for dialect, raw in there.queues:
        made.queues[dialect.name, name_of(raw)] = dialects.read_queue(raw)
    made.queues.setdefault((VOLCANO.name, "default"), Queue("default"))
    made.classes = {name_of(each): each for each in there.classes}
    return decide(made, now)


def _read(decision: Decision, members: Sequence[Object], group: Object) -> Forecast:
    ours = {metadata(pod)["uid"] for pod in members}
    nodes = tuple(dict.fromkeys(each.node for each in decision.bindings if each.uid in ours))
    placed = sum(1 for each in decision.bindings if each.uid in ours)
    gone = tuple(str(each.pod) for each in decision.evictions)
    verdict = next((each for each in decision.verdicts if each.group.uid == metadata(group)["uid"]), None)
    why = verdict.why.told() if verdict is not None and verdict.why is not None else "nobody says why"
    return Forecast(placed == len(members), len(members), nodes, why, instead=gone if placed == len(members) else ())


def _named(job: Object) -> Object:
    about = metadata(job)
    name = about.get("name") or f"{about.get('generateName', 'job-')}x"
    return {**job, "metadata": {**about, "name": name, "namespace": about.get("namespace") or "default", "uid": _UID}}


def _group(job: Object, members: int, now: datetime) -> Object:
    asked = ((job.get("spec") or {}).get("runPolicy") or {}).get("schedulingPolicy") or {}
    spec: Object = {"minMember": asked.get("minAvailable") or members, "queue": asked.get("queue") or "default"}
    if asked.get("priorityClass"):
        spec["priorityClassName"] = asked["priorityClass"]
    about = metadata(_named(job))
    return {"metadata": {"name": about["name"], "namespace": about["namespace"], "uid": _UID,
                         "creationTimestamp": timestamp(now)}, "spec": spec, "status": {"phase": "Inqueue"}}


def _member(pod: Object, group: str, number: int, now: datetime) -> Object:
    about = metadata(pod)
    annotations = {**(about.get("annotations") or {}), **dialects.tied(VOLCANO, group)["annotations"]}
    return {**pod, "metadata": {**about, "uid": f"{_UID}-{number}", "annotations": annotations,
                                "creationTimestamp": timestamp(now)},
            "spec": {**pod["spec"], "schedulerName": VOLCANO.scheduler}, "status": {"phase": "Pending"}}


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more nodes" if len(names) > 3 else "")
