"""What an earlier life left behind: adopted where it still runs, recorded where it died, deleted where nobody wants it.

Three things may have happened while no agent was there: containers ended (their shims wrote it down), everything died
at once (a reboot, a kill of the holder: records without an end), or the runtime directory itself was lost. In the last
case the API is the only memory, and what it says of the last attempts is written back as records, so that restart
counts go on and nothing that ran counts as never started.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.api.meta import Object, moment, uid_of
from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.observed import Exit
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.settings import NodeSettings, PodPlaces
from trainmaster.cluster.kubelet.status import lost

_UID = r"(?P<uid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_LOGS = re.compile(rf"[a-z0-9-]+_[a-z0-9.-]+_{_UID}")      # namespace_name_uid
_VOLUMES = re.compile(_UID)


def remember(pod: Object, places: PodPlaces, now: datetime) -> None:
    """Write back, from the pod's status, the last attempts that the disk does not know."""
    for status in _statuses(pod):
        number = int(status.get("restartCount") or 0)
        directory = places.attempt(status["name"], number)
        if not status.get("containerID") or records.read(str(directory), records.SHIM) is not None:
            continue
        created, end = _last_attempt(status, now)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        records.write(str(directory), records.EXIT, exit_record(end))
        records.write(str(directory), records.SHIM, {
            "protocol": records.PROTOCOL, "pid": 0, "start": 0, "boot": "", "created": nanoseconds(created),
            "level": number, "image": status.get("imageID", ""),
        })


def exit_record(end: Exit) -> Object:
    """The record of an end that no shim could write."""
    return {
        "protocol": records.PROTOCOL, "code": end.code, "signal": end.signal, "started": 0,
        "finished": nanoseconds(end.finished), "reason": end.reason, "message": end.message,
    }


def orphans(settings: NodeSettings, known: set[str]) -> Iterator[Path]:
    """Logs and volumes of pods that no longer exist. (Runtime directories hold processes and are ended as pods.)

    Only what is named as we name it: a person may keep other things beside them.
    """
    for parent, pattern in ((settings.logs, _LOGS), (settings.volumes / "pods", _VOLUMES)):
        for entry in parent.iterdir() if parent.is_dir() else ():
            named = pattern.fullmatch(entry.name)
            if named is None or named.group("uid") in known or not entry.is_dir() or entry.is_symlink():
                continue
            if not (entry / records.FORMER).exists():      # kept on purpose
                yield entry


def left_behind(settings: NodeSettings, known: set[str]) -> Iterator[Object]:
    """Pods that have a runtime directory but no object any more, as far as they can be told from their record."""
    for entry in settings.pods.iterdir() if settings.pods.is_dir() else ():
        if entry.name in known:
            continue
        record = records.read(str(entry), records.POD) or {}
        pod = record.get("object")
        if isinstance(pod, dict) and uid_of(pod) == entry.name:
            yield pod
        else:
            remove(entry)      # made, but nothing was ever started in it


def pod_record(pod: Object) -> Object:
    """What is needed to end a pod and to find its files after its object is gone. No values of its environment."""
    spec = pod["spec"]
    names = {
        kind: [{name: container[name] for name in ("name", "workingDir", "volumeMounts") if name in container}
               for container in spec.get(kind) or ()]
        for kind in ("initContainers", "containers")
    }
    about = {key: pod["metadata"].get(key) for key in ("namespace", "name", "uid", "labels", "ownerReferences")}
    return {
        "protocol": records.PROTOCOL,
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": about,
                   "spec": {**names, "restartPolicy": "Never", "nodeName": spec.get("nodeName", "")}},
    }


def _statuses(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [one for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for one in status.get(kind) or ()]


def _last_attempt(status: Object, now: datetime) -> tuple[datetime, Exit]:
    state, last = status.get("state") or {}, status.get("lastState") or {}
    found = state.get("terminated") or (None if state.get("running") else last.get("terminated"))
    if not found:
        started = (state.get("running") or {}).get("startedAt")
        return (moment(started) if started else now), lost(now)
    finished = moment(found["finishedAt"]) if found.get("finishedAt") else now
    created = moment(found["startedAt"]) if found.get("startedAt") else finished
    return created, Exit(
        int(found.get("exitCode") or 0), finished, int(found.get("signal") or 0), str(found.get("reason") or ""),
        str(found.get("message") or ""),
    )


def nanoseconds(when: datetime) -> int:
    return int(when.astimezone(UTC).timestamp() * 1_000_000) * 1000
