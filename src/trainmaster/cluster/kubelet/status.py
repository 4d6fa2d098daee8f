"""The status of a pod, computed anew each time from the pod and what is seen of it. Pure.

Phase, conditions and container states follow the kubelet, word for word where people or controllers read the words.
"""

import hashlib
from datetime import datetime
from typing import Any

from trainmaster.api.meta import Object, timestamp, uid_of
from trainmaster.cluster.kubelet.decide import (
    active_deadline,
    ended,
    failed_to_initialize,
    init_containers,
    init_policy,
    initialized,
    main_containers,
    restart_policy,
)
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, Observed
from trainmaster.cluster.kubelet.restarts import comes_back, delay, due, next_level

RUNTIME = "trainmaster"
# What the kubelet writes about a container whose end nobody saw.
LOST_REASON = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"
# And about a pod that is stopped because its node is.
SHUTDOWN = ("Terminated", "Pod was terminated in response to imminent node shutdown.")


def pod_status(pod: Object, seen: Observed, now: datetime, host_address: str) -> Object:
    """The whole status to be stored; fields that are not the node's are carried over."""
    before: Object = dict(pod.get("status") or {})
    init = [_container_status(pod, container, seen, now, init=True) for container in init_containers(pod)]
    main = [_container_status(pod, container, seen, now, init=False) for container in main_containers(pod)]
    after: Object = {**before, "hostIP": host_address, "hostIPs": [{"ip": host_address}]}
    after.setdefault("startTime", timestamp(seen.started))
    after.setdefault("qosClass", quality_of_service(pod))
    address = seen.address or seen.last_address
    if address:
        after["podIP"] = address
        after["podIPs"] = [{"ip": address}]
    if init:
        after["initContainerStatuses"] = init
    after["containerStatuses"] = main
    after["phase"], reason, message = _phase(pod, seen, now)
    if reason:
        after["reason"], after["message"] = reason, message
    after["conditions"] = _conditions(pod, seen, after, now)
    return after


def container_id(uid: str, container: str, attempt: int) -> str:
    digest = hashlib.sha256(f"{uid}/{container}/{attempt}".encode()).hexdigest()
    return f"{RUNTIME}://{digest}"


def quality_of_service(pod: Object) -> str:
    """Guaranteed, Burstable or BestEffort, as Kubernetes derives it from cpu and memory."""
    asked, guaranteed = False, True
    for container in init_containers(pod) + main_containers(pod):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            if name in requests or name in limits:
                asked = True
            if name not in limits or requests.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _phase(pod: Object, seen: Observed, now: datetime) -> tuple[str, str, str]:
    """Phase, and the pod's own reason and message where it has one."""
    status = pod.get("status") or {}
    if ended(pod):
        return status["phase"], str(status.get("reason", "")), str(status.get("message", ""))
    states = [seen.of(container["name"]) for container in main_containers(pod)]
    everything = [*states, *(seen.of(container["name"]) for container in init_containers(pod))]
    running = any(state.running for state in everything)
    ends = [state.exit for state in states]
    if seen.draining and not running and any(state.last is not None for state in everything):
        if all(end is not None and end.code == 0 for end in ends):
            return "Succeeded", "", ""
        return "Failed", *SHUTDOWN
    deadline = active_deadline(pod, seen)
    if deadline is not None and now >= deadline and not running:
        return "Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
    if failed_to_initialize(pod, seen):
        return "Failed", "", ""
    if not initialized(pod, seen) or any(not state.running and state.exit is None for state in states):
        return "Pending", "", ""
    finished = [end for end in ends if end is not None]
    if len(finished) < len(states):
        return "Running", "", ""
    policy = restart_policy(pod)
    if any(comes_back(policy, end.code) for end in finished):
        return "Running", "", ""
    return ("Succeeded" if all(end.code == 0 for end in finished) else "Failed"), "", ""


def _container_status(pod: Object, container: Object, seen: Observed, now: datetime, *, init: bool) -> Object:
    name = container["name"]
    state = seen.of(name)
    current, last_state = _states(pod, name, state, seen, now, init=init)
    succeeded = state.exit is not None and state.exit.code == 0
    attempt = state.last.number if state.last is not None else 0
    return {
        "name": name,
        "image": container.get("image", ""),
        "imageID": state.last.image_id if state.last is not None else "",
        "containerID": container_id(uid_of(pod), name, attempt) if state.last is not None else "",
        "restartCount": attempt,
        "started": state.running,
        "ready": succeeded if init else state.running,
        "state": current,
        "lastState": last_state,
    }


def _states(
    pod: Object, name: str, state: ContainerSeen, seen: Observed, now: datetime, *, init: bool
) -> tuple[Object, Object]:
    uid = uid_of(pod)
    earlier = _terminated(uid, name, state.previous) if state.previous is not None else {}
    if state.last is None:
        return _waiting(pod, state, seen, init=init), {}
    if state.running:
        return {"running": {"startedAt": timestamp(state.last.created)}}, earlier
    end = state.exit
    assert end is not None
    policy = init_policy(pod) if init else restart_policy(pod)
    if ended(pod) or seen.draining or not comes_back(policy, end.code):
        return _terminated(uid, name, state.last), earlier
    if state.waiting is not None:
        return {"waiting": {"reason": state.waiting.reason, "message": state.waiting.message}}, _terminated(
            uid, name, state.last
        )
    if due(state.last) > now:
        seconds = round(delay(next_level(state.last)).total_seconds())
        shown = f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
        where = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({uid})"
        message = f"back-off {shown} restarting failed container={name} pod={where}"
        return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}, _terminated(uid, name, state.last)
    return _terminated(uid, name, state.last), earlier


def _waiting(pod: Object, state: ContainerSeen, seen: Observed, *, init: bool) -> Object:
    if state.waiting is not None:
        return {"waiting": {"reason": state.waiting.reason, "message": state.waiting.message}}
    if init_containers(pod) and (init or not initialized(pod, seen)):
        return {"waiting": {"reason": "PodInitializing"}}
    return {"waiting": {"reason": "ContainerCreating"}}


def _terminated(uid: str, name: str, attempt: Attempt) -> Object:
    end = attempt.ended
    assert end is not None
    found: Object = {
        "exitCode": end.code,
        "reason": end.reason or ("Completed" if end.code == 0 else "Error"),
        "startedAt": timestamp(attempt.created),
        "finishedAt": timestamp(end.finished),
        "containerID": container_id(uid, name, attempt.number),
    }
    if end.signal:
        found["signal"] = end.signal
    if end.message:
        found["message"] = end.message
    return {"terminated": found}


def _conditions(pod: Object, seen: Observed, status: Object, now: datetime) -> list[Object]:
    phase = status["phase"]
    incomplete = [one["name"] for one in status.get("initContainerStatuses", ()) if not one["ready"]]
    unready = [one["name"] for one in status["containerStatuses"] if not one["ready"]]
    if phase == "Succeeded":
        ready: dict[str, Any] = {"status": "False", "reason": "PodCompleted"}
    elif phase == "Failed":
        ready = {"status": "False", "reason": "PodFailed"}
    elif unready:
        ready = {
            "status": "False", "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(unready)}]",
        }
    else:
        ready = {"status": "True"}
    if initialized(pod, seen):
        init: dict[str, Any] = {"status": "True", **({"reason": "PodCompleted"} if phase == "Succeeded" else {})}
    else:
        init = {
            "status": "False", "reason": "ContainersNotInitialized",
            "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
        }
    wanted = {
        "PodReadyToStartContainers": {"status": "True" if seen.address else "False"},
        "Initialized": init,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }
    before = {one.get("type"): one for one in (pod.get("status") or {}).get("conditions") or ()}
    others = [one for kind, one in before.items() if kind not in wanted]
    return [_condition(kind, facts, before.get(kind), now) for kind, facts in wanted.items()] + others


def _condition(kind: str, facts: dict[str, Any], before: Object | None, now: datetime) -> Object:
    """A condition's time moves only when its truth does."""
    same = before is not None and before.get("status") == facts["status"]
    since = (before or {}).get("lastTransitionTime") if same else None
    return {"type": kind, "lastProbeTime": None, "lastTransitionTime": since or timestamp(now), **facts}


def lost(now: datetime) -> Exit:
    """The end of a container that nobody saw: killed, as far as anybody can tell."""
    return Exit(137, now, reason=LOST_REASON, message=LOST_MESSAGE)
