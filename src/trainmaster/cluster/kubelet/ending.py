"""How containers are ended: hook, request, grace, kill; sidecars last, in reverse order. Pure.

The grace is one budget for all of it: what a preStop hook or the wait for others takes is gone, but for two seconds
that everybody gets between the request and the kill.
"""

from datetime import datetime, timedelta

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.actions import Action, EndSandbox, Kill, Plan, Remove, RunHook, Terminate, earliest
from trainmaster.cluster.kubelet.containers import all_containers, hook_of, is_sidecar, sidecars
from trainmaster.cluster.kubelet.observed import ContainerSeen, Observed

DEFAULT_GRACE = timedelta(seconds=30)
EVICTED_GRACE = timedelta(seconds=1)
LEAST_GRACE = timedelta(seconds=2)
# A kill that was not followed by an end within this time is repeated on the shim itself.
STUBBORN = timedelta(seconds=10)


def end_pod(pod: Object, seen: Observed, now: datetime, *, remove: bool) -> Plan:
    """End what runs, then the sandbox, at last the object."""
    grace = min(grace_of(pod), EVICTED_GRACE) if seen.evicted else grace_of(pod)
    waiting = _waiting(pod, seen)
    actions: list[Action] = []
    later: datetime | None = None
    for container in all_containers(pod):
        state = seen.of(container["name"])
        if state.running:
            turn = container["name"] not in waiting
            action, moment = _end(container, state, seen.stopping, grace, now, turn=turn)
            actions += [action] if action is not None else []
            later = earliest(later, moment)
    if any(seen.of(container["name"]).running for container in all_containers(pod)):
        return Plan(tuple(actions), later)
    if seen.address:
        return Plan((EndSandbox(),))
    return Plan((Remove(),)) if remove else Plan()


def end_failing(pod: Object, seen: Observed, now: datetime) -> Plan:
    """End the containers whose attempt failed a probe or its postStart hook, while the others go on."""
    found = [
        _end(container, state, None, _grace_for(pod, container, state.verdict), now, turn=True)
        for container in all_containers(pod) if (state := seen.of(container["name"])).running and state.verdict
    ]
    return Plan(tuple(action for action, _ in found if action), earliest(*(moment for _, moment in found)))


def grace_of(pod: Object) -> timedelta:
    """How long a container may take to end by itself: what the deletion says, else what the pod does."""
    return _first(pod["metadata"].get("deletionGracePeriodSeconds"), pod["spec"].get("terminationGracePeriodSeconds"))


def _grace_for(pod: Object, container: Object, verdict: str) -> timedelta:
    probe = container.get(f"{verdict}Probe") or {}
    return _first(probe.get("terminationGracePeriodSeconds"), pod["spec"].get("terminationGracePeriodSeconds"))


def _first(*seconds: int | None) -> timedelta:
    return next((timedelta(seconds=max(0, int(each))) for each in seconds if each is not None), DEFAULT_GRACE)


def _waiting(pod: Object, seen: Observed) -> set[str]:
    """The sidecars whose turn has not come: somebody who may still need them runs."""
    def running(container: Object) -> bool:
        return seen.of(container["name"]).running

    beside = sidecars(pod)
    names = {container["name"] for container in beside}
    others = any(running(container) for container in all_containers(pod) if container["name"] not in names)
    return {
        container["name"] for at, container in enumerate(beside) if others or any(map(running, beside[at + 1:]))
    }


def _end(
    container: Object, state: ContainerSeen, begun: datetime | None, grace: timedelta, now: datetime, *, turn: bool
) -> tuple[Action | None, datetime | None]:
    """The next step for one container, or when to look again."""
    name = container["name"]
    if state.killed is not None:
        if now >= state.killed + STUBBORN:
            return Kill(name, shim=True), None
        return None, state.killed + STUBBORN
    if not grace:
        return Kill(name), None
    hooked = hook_of(container, "preStop") is not None
    shared = hooked or is_sidecar(container)       # a hook or others may have used up the grace before the request
    began = earliest(begun, state.hook.begun if state.hook else None, state.terminating) or now
    deadline = began + grace
    if state.terminating is not None:
        kill_at = max(deadline, state.terminating + LEAST_GRACE) if shared else deadline
        return (Kill(name), None) if now >= kill_at else (None, kill_at)
    if hooked and state.hook is None:
        return RunHook(name, max(deadline - now, LEAST_GRACE)), None
    if now < deadline and (not turn or (state.hook is not None and not state.hook.over)):
        return None, deadline
    return Terminate(name, max(deadline - now, LEAST_GRACE) if shared else grace), None

