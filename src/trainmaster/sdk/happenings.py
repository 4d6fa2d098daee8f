"""Events: of a job (about itself, its pods and services, its group; the gone ones, too), or of everything."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.meta import Object, moment_if_any, name_of, namespace_of, revision_of, uid_of
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.session import Session


@dataclass(frozen=True, slots=True)
class Happening:
    """One event, as people read it."""

    time: datetime | None
    type: str            # Normal or Warning
    reason: str
    about: str           # pod/mnist-worker-0
    message: str
    count: int = 1
    name: str = ""       # of the event itself
    namespace: str = ""


async def everything(session: Session, namespace: str) -> list[Happening]:
    """Of a namespace, or of all if it is empty; the oldest first."""
    events = (await session.client.list(EVENTS, namespace)).items
    return [happening(each) for each in sorted(events, key=in_order)]


async def happenings(session: Session, job: Job) -> list[Happening]:
    """The oldest first."""
    pods = (await session.client.list(PODS, job.namespace, labels=job.pods)).items
    ours = {job.uid, *map(uid_of, pods)}
    events = (await session.client.list(EVENTS, job.namespace)).items
    found = sorted((each for each in events if _concerns(each, job, ours)), key=in_order)
    return [happening(each) for each in found]


def happening(event: Object) -> Happening:
    about = event.get("involvedObject") or {}
    series = event.get("series") or {}
    return Happening(
        _latest(event), str(event.get("type", "")), str(event.get("reason", "")),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}", str(event.get("message", "")).strip(),
        int(series.get("count") or event.get("count") or 1), name_of(event), namespace_of(event),
    )


def _concerns(event: Object, job: Job, ours: set[str]) -> bool:
    """By UID; or, for pods that are gone and for the group, by names that only this job gives, since it was made."""
    about, time = event.get("involvedObject") or {}, _latest(event)
    if about.get("uid") in ours:
        return True
    if time is not None and job.created is not None and time < job.created:
        return False
    kind, name = str(about.get("kind", "")), str(about.get("name", ""))
    if kind == "PodGroup":
        return name == job.name
    if kind not in ("Pod", "Service"):
        return False
    parts = name.removeprefix(f"{job.name}-").rpartition("-")
    roles = {role.name.lower() for role in job.roles()}
    return name.startswith(f"{job.name}-") and parts[0] in roles and parts[2].isdigit()


def _latest(event: Object) -> datetime | None:
    for text in ((event.get("series") or {}).get("lastObservedTime"), event.get("lastTimestamp"),
                 event.get("eventTime"), (event.get("metadata") or {}).get("creationTimestamp")):
        if (found := moment_if_any(text)) is not None:
            return found
    return None


def in_order(event: Object) -> tuple[float, int]:
    """By time, which has whole seconds only; then by when it was written, where revisions are numbers."""
    time, revision = _latest(event), revision_of(event)
    return time.timestamp() if time else 0.0, int(revision) if revision.isdigit() else 0
