"""The status of a pod, computed anew each time from the pod and what is seen of it. Pure.

Phase, conditions and container states follow the kubelet, word for word where people or controllers read the words.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.api.meta import Object, being_deleted, timestamp, uid_of
from trainmaster.cluster.kubelet import sysctls
from trainmaster.cluster.kubelet.containers import (
    ephemeral_containers,
    init_containers,
    is_sidecar,
    main_containers,
    own_containers,
    policy_of,
    restarts,
    sidecars,
)
from trainmaster.cluster.kubelet.decide import active_deadline, ended, failed_to_initialize, finished, initialized
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, Observed
from trainmaster.cluster.kubelet.restarts import delay, due, next_level

RUNTIME = "trainmaster"
# What the kubelet writes about a container whose end nobody saw.
LOST_REASON = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"
# About a pod that ran for too long.
DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
# And about a pod that is stopped because its node is.
SHUTDOWN = ("Terminated", "Pod was terminated in response to imminent node shutdown.")


def pod_status(pod: Object, seen: Observed, now: datetime, host_address: str) -> Object:
    """The whole status to be stored; fields that are not the node's are carried over."""
    before: Object = dict(pod.get("status") or {})
    init = [_container_status(pod, container, seen, now, init=True) for container in init_containers(pod)]
    main = [_container_status(pod, container, seen, now, init=False) for container in main_containers(pod)]
    after: Object = {**before, "hostIP": host_address, "hostIPs": [{"ip": host_address}]}
    after.update(_looked_at(pod))
    after.setdefault("startTime", timestamp(seen.started))
    after.setdefault("qosClass", quality_of_service(pod))
    address = seen.address or seen.last_address
    if address:
        after["podIP"] = address
        after["podIPs"] = [{"ip": address}]
    if init:
        after["initContainerStatuses"] = init
    after["containerStatuses"] = main
    if beside := [_ephemeral_status(pod, container, seen, now) for container in ephemeral_containers(pod)]:
        after["ephemeralContainerStatuses"] = beside
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
    for container in own_containers(pod):
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
    well = all(state.exit is not None and state.exit.code == 0 for state in states)
    if seen.draining and not running and any(state.last is not None for state in everything):
        return ("Succeeded", "", "") if well else ("Failed", *SHUTDOWN)
    if (refused := sysctls.refusal(pod)) is not None and not running:
        return "Failed", *refused
    if seen.evicted and not running:
        return "Failed", "Evicted", seen.evicted
    deadline = active_deadline(pod, seen)
    if deadline is not None and now >= deadline and not running:
        return "Failed", *DEADLINE
    if not running:                            # a phase that is final is told when the last process is gone
        if failed_to_initialize(pod, seen):
            return "Failed", "", ""
        if finished(pod, seen):
            return ("Succeeded" if well else "Failed"), "", ""
        if being_deleted(pod) and not seen.address:      # whoever keeps the object by a finalizer waits for a last word
            return ("Succeeded" if well else "Failed"), "", ""
    if not initialized(pod, seen) or any(state.last is None or state.beginning for state in states):
        return "Pending", "", ""
    return "Running", "", ""


def _container_status(pod: Object, container: Object, seen: Observed, now: datetime, *, init: bool) -> Object:
    name = container["name"]
    state = seen.of(name)
    current, last_state = _states(pod, container, state, seen, now, init=init)
    succeeded = state.exit is not None and state.exit.code == 0
    once = init and not is_sidecar(container)
    attempt = state.last.number if state.last is not None else 0
    return {
        "name": name,
        "image": container.get("image", ""),
        "imageID": state.last.image_id if state.last is not None else "",
        "containerID": container_id(uid_of(pod), name, attempt) if state.last is not None else "",
        "restartCount": attempt,
        "started": state.running if once else state.up,
        "ready": succeeded if once else state.up and state.ready,
        "state": current,
        "lastState": last_state,
    }


def _ephemeral_status(pod: Object, container: Object, seen: Observed, now: datetime) -> Object:
    """Nothing waits for it, so it is never ready."""
    status = _container_status(pod, container, seen, now, init=False)
    return {**{field: value for field, value in status.items() if field != "started"}, "ready": False}


def _states(
    pod: Object, container: Object, state: ContainerSeen, seen: Observed, now: datetime, *, init: bool
) -> tuple[Object, Object]:
    uid, name = uid_of(pod), container["name"]
    earlier = _terminated(uid, name, state.previous) if state.previous is not None else {}
    if state.last is None or (state.running and state.beginning):
        return _waiting(pod, state, seen, init=init), earlier
    if state.running:
        return {"running": {"startedAt": timestamp(state.last.created)}}, earlier
    end = state.exit
    assert end is not None
    if ended(pod) or seen.draining or seen.stopping is not None or not restarts(policy_of(pod, container), state):
        return _terminated(uid, name, state.last), earlier
    if state.waiting is not None:
        return {"waiting": {"reason": state.waiting.reason, "message": state.waiting.message}}, _terminated(
            uid, name, state.last
        )
    wait = delay(next_level(state.last))
    if wait and due(state.last) > now:         # a clock that was set back makes no wait of none
        seconds = round(wait.total_seconds())
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
    incomplete = [one["name"] for one in status.get("initContainerStatuses", ())
                  if not (one["started"] if one["name"] in _names(sidecars(pod)) else one["ready"])]
    if initialized(pod, seen):
        init: dict[str, Any] = {"status": "True", **({"reason": "PodCompleted"} if phase == "Succeeded" else {})}
    else:
        init = {
            "status": "False", "reason": "ContainersNotInitialized",
            "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
        }
    before = {one.get("type"): one for one in (pod.get("status") or {}).get("conditions") or ()}
    ready = _containers_ready(pod, status)
    wanted = {
        "PodReadyToStartContainers": {"status": "True" if seen.address else "False"},
        "Initialized": init,
        "Ready": _gated(pod, before) or ready if ready["status"] == "True" else ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }
    if seen.evicted:
        wanted["DisruptionTarget"] = {"status": "True", "reason": "TerminationByKubelet", "message": seen.evicted}
    others = [one for kind, one in before.items() if kind not in wanted]
    looked_at = _looked_at(pod)
    return [_condition(kind, {**facts, **looked_at}, before.get(kind), now) for kind, facts in wanted.items()] + others


def _looked_at(pod: Object) -> Object:
    """Which state of the specification this is about, where the server counts them."""
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation else {}


def _containers_ready(pod: Object, status: Object) -> dict[str, Any]:
    if status["phase"] == "Succeeded":
        return {"status": "False", "reason": "PodCompleted"}
    if status["phase"] == "Failed":
        return {"status": "False", "reason": "PodFailed"}
    counted = _names(sidecars(pod)) | _names(main_containers(pod))
    statuses = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    unready = [one["name"] for one in statuses if one["name"] in counted and not one["ready"]]
    if unready:
        return {
            "status": "False", "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(unready)}]",
        }
    return {"status": "True"}


def _gated(pod: Object, conditions: Mapping[Any, Object]) -> dict[str, Any] | None:
    """What else the pod waits for: conditions that others set."""
    told = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate.get("conditionType")
        found = conditions.get(kind)
        if found is None:
            told.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found.get("status") != "True":
            told.append(f'the status of pod readiness gate "{kind}" is not "True", but {found.get("status")}')
    if not told:
        return None
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(told)}


def _names(containers: list[Object]) -> set[str]:
    return {container["name"] for container in containers}


def _condition(kind: str, facts: dict[str, Any], before: Object | None, now: datetime) -> Object:
    """A condition's time moves only when its truth does."""
    same = before is not None and before.get("status") == facts["status"]
    since = (before or {}).get("lastTransitionTime") if same else None
    return {"type": kind, "lastProbeTime": None, "lastTransitionTime": since or timestamp(now), **facts}


def lost(now: datetime) -> Exit:
    """The end of a container that nobody saw: killed, as far as anybody can tell."""
    return Exit(137, now, reason=LOST_REASON, message=LOST_MESSAGE)
