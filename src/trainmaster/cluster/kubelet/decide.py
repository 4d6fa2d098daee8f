"""What to do next for one pod. Pure: the same pod and the same observation give the same plan at any time, in any life.

A plan is the next actions only; the shell does them, looks again and asks again. So nothing is remembered between calls
and an agent that died anywhere continues where the world stands.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from trainmaster.api.meta import Object, being_deleted
from trainmaster.cluster.kubelet import sysctls
from trainmaster.cluster.kubelet.actions import Action, MakeSandbox, Plan, Pull, Start, earliest
from trainmaster.cluster.kubelet.containers import (
    ephemeral_containers,
    hook_of,
    init_containers,
    is_sidecar,
    main_containers,
    policy_of,
    restarts,
    sidecars,
)
from trainmaster.cluster.kubelet.ending import end_failing, end_pod
from trainmaster.cluster.kubelet.observed import ContainerSeen, Observed
from trainmaster.cluster.kubelet.restarts import due, next_level


def decide(pod: Object, seen: Observed, now: datetime) -> Plan:
    """The next step for one pod."""
    if to_be_ended(pod, seen, now):
        return end_pod(pod, seen, now, remove=being_deleted(pod))
    plan = _run(pod, seen, now)
    failing = end_failing(pod, seen, now)
    return Plan(
        (*failing.actions, *plan.actions),
        earliest(plan.look_again_at, failing.look_again_at, active_deadline(pod, seen)),
    )


def to_be_ended(pod: Object, seen: Observed, now: datetime) -> bool:
    """Whether the pod as a whole must go, or is done."""
    if being_deleted(pod) or seen.draining or seen.evicted or ended(pod) or sysctls.refusal(pod) is not None:
        return True
    if failed_to_initialize(pod, seen) or finished(pod, seen):
        return True
    return past_deadline(pod, seen, now)


def past_deadline(pod: Object, seen: Observed, now: datetime) -> bool:
    """Whether a pod that would go on has done so for longer than it may."""
    if being_deleted(pod) or ended(pod) or finished(pod, seen):
        return False
    deadline = active_deadline(pod, seen)
    return deadline is not None and now >= deadline


def ended(pod: Object) -> bool:
    """Whether the phase is one that never changes again."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def finished(pod: Object, seen: Observed) -> bool:
    """Whether every main container has ended for good; sidecars do not count."""
    return all(
        (state := seen.of(container["name"])).exit is not None and not restarts(policy_of(pod, container), state)
        for container in main_containers(pod)
    )


def failed_to_initialize(pod: Object, seen: Observed) -> bool:
    """Whether an init container failed that will not come back."""
    return any(
        (end := seen.of(container["name"]).exit) is not None and end.code != 0
        for container in init_containers(pod) if policy_of(pod, container) == "Never"
    )


def initialized(pod: Object, seen: Observed) -> bool:
    """Whether every init container has succeeded and every sidecar is up; also true, for good, once a main container
    has been started."""
    if any(seen.of(container["name"]).last is not None for container in main_containers(pod)):
        return True
    return all(_done(container, seen.of(container["name"])) for container in init_containers(pod))


def active_deadline(pod: Object, seen: Observed) -> datetime | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return seen.started + timedelta(seconds=int(seconds)) if seconds is not None else None


def _done(container: Object, state: ContainerSeen) -> bool:
    """Whether the next init container may start."""
    if is_sidecar(container):
        return state.up
    return state.exit is not None and state.exit.code == 0


def _run(pod: Object, seen: Observed, now: datetime) -> Plan:
    """The normal case: start what should run and does not."""
    wanted = list(_to_start(pod, seen))
    ready = [(container, moment) for container, moment in wanted if moment is None or moment <= now]
    later = earliest(*(moment for _, moment in wanted if moment is not None and moment > now))
    if not ready:
        return Plan(look_again_at=later)
    if not seen.address:
        if seen.waiting is not None and seen.waiting.until > now:
            return Plan(look_again_at=earliest(later, seen.waiting.until))
        return Plan((MakeSandbox(),))
    actions: list[Action] = []
    for container, _ in ready:
        name, state = container["name"], seen.of(container["name"])
        if state.waiting is not None and state.waiting.until > now:
            later = earliest(later, state.waiting.until)
        elif not state.image_ready:
            actions += [] if state.pulling else [Pull(name)]
        else:
            last = state.last
            actions.append(Start(name, last.number + 1 if last else 0, next_level(last) if last else 0))
            if hook_of(container, "postStart") is not None:
                break                                          # the others wait for the end of its hook
    return Plan(tuple(actions), later)


def _to_start(pod: Object, seen: Observed) -> Iterator[tuple[Object, datetime | None]]:
    """The containers that should run and do not, each with the moment from which on it may (None: at once)."""
    if seen.address:
        yield from ((one, None) for one in ephemeral_containers(pod) if seen.of(one["name"]).last is None)
    if initialized(pod, seen):
        for container in sidecars(pod):
            if not seen.of(container["name"]).running:
                yield container, _may_start(seen.of(container["name"]))
    else:
        for container in init_containers(pod):
            state = seen.of(container["name"])
            if _done(container, state):
                continue
            if not state.running:
                yield container, _may_start(state)
            return                                             # the first that is not done; the others wait
    for container in main_containers(pod):
        state = seen.of(container["name"])
        if state.running and state.beginning:
            return                                             # the others wait for the end of its postStart hook
        if not state.running and restarts(policy_of(pod, container), state):
            yield container, _may_start(state)


def _may_start(state: ContainerSeen) -> datetime | None:
    return due(state.last) if state.last is not None else None
