"""How a pod on a simulated node is at a moment. Pure.

It runs as soon as it is bound and ends when its annotations say so; without them it runs until it is deleted.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.api.meta import Object, being_deleted, metadata, moment, timestamp

SECONDS = "trainmaster.dev/simulated-seconds"
EXIT_CODE = "trainmaster.dev/simulated-exit-code"
LONGEST = 10 * 365 * 86_400.0      # seconds; longer is for ever
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with a pod now: nothing, a new status, or its removal; and when to look again."""

    status: Object | None = None
    remove: bool = False
    again: datetime | None = None


def step(pod: Object, address: str, now: datetime) -> Step:
    status = pod.get("status") or {}
    if being_deleted(pod):
        return Step(remove=True)
    if status.get("phase") in ENDED:
        return Step()
    if status.get("phase") != "Running":
        return Step(status=_status(pod, "Running", address, now, {"running": {"startedAt": timestamp(now)}}))
    annotations = metadata(pod).get("annotations") or {}
    try:
        lasts = float(annotations[SECONDS])
        code = int(annotations.get(EXIT_CODE) or 0)
    except (KeyError, ValueError):
        return Step()
    if not 0 <= lasts <= LONGEST:      # also what is no number
        return Step()
    began = moment(status["startTime"]) if status.get("startTime") else now
    ends = began + timedelta(seconds=lasts)
    if ends > now:
        return Step(again=ends)
    over = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": timestamp(began),
            "finishedAt": timestamp(now)}
    phase = "Succeeded" if code == 0 else "Failed"
    return Step(status=_status(pod, phase, address, now, {"terminated": over}))


def _status(pod: Object, phase: str, address: str, now: datetime, state: Object) -> Object:
    running = phase == "Running"
    status = pod.get("status") or {}
    conditions = [{"type": type_, "status": "True" if running or type_ in {"Initialized", "PodScheduled"} else "False",
                   "lastProbeTime": None, "lastTransitionTime": timestamp(now)}
                  for type_ in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]
    containers = [{"name": each["name"], "image": each.get("image", ""), "imageID": "", "ready": running,
                   "started": running, "restartCount": 0, "state": state}
                  for each in pod["spec"].get("containers") or ()]
    return {"phase": phase, "conditions": conditions, "containerStatuses": containers, "podIP": address,
            "podIPs": [{"ip": address}], "startTime": status.get("startTime") or timestamp(now)}
