"""What to do next for one pod. Pure: the same pod and the same observation give the same plan at any time, in any life.

A plan is the next actions only; the shell does them, looks again and asks again. So nothing is remembered between calls
and an agent that died anywhere continues where the world stands.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from trainmaster.api.meta import Object, being_deleted
from trainmaster.cluster.kubelet.observed import ContainerSeen, Observed
from trainmaster.cluster.kubelet.restarts import comes_back, due, next_level

DEFAULT_GRACE = timedelta(seconds=30)
# A kill that was not followed by an end within this time is repeated on the shim itself.
STUBBORN = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class MakeSandbox:
    """Volumes, namespaces, address."""


@dataclass(frozen=True, slots=True)
class EndSandbox:
    """Nothing runs or will: give namespaces and address back."""


@dataclass(frozen=True, slots=True)
class Pull:
    """Prepare the image of a container, in the background."""

    container: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start an attempt of a container."""

    container: str
    attempt: int
    level: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask a container to end."""

    container: str
    grace: timedelta


@dataclass(frozen=True, slots=True)
class Kill:
    """Make a container end; `shim` too when that did not help before."""

    container: str
    shim: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """The pod's processes are gone: the object may go too."""


Action: TypeAlias = MakeSandbox | EndSandbox | Pull | Start | Terminate | Kill | Remove


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in the order to be done, and when to look again if nothing happens until then."""

    actions: tuple[Action, ...] = ()
    look_again_at: datetime | None = None


def decide(pod: Object, seen: Observed, now: datetime) -> Plan:
    """The next step for one pod. The first rule with an opinion wins, so their order is their precedence."""
    if being_deleted(pod):
        return _stop(pod, seen, now, _grace(pod), remove=True)
    if seen.draining:
        return _stop(pod, seen, now, _grace(pod), remove=False)
    if ended(pod) or failed_to_initialize(pod, seen):
        return _stop(pod, seen, now, _grace(pod), remove=False)
    deadline = active_deadline(pod, seen)
    if deadline is not None and now >= deadline:
        return _stop(pod, seen, now, _grace(pod), remove=False)
    plan = _run(pod, seen, now)
    return Plan(plan.actions, _earliest(plan.look_again_at, deadline if _anything_left(pod, seen) else None))


def ended(pod: Object) -> bool:
    """Whether the phase is one that never changes again."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def init_containers(pod: Object) -> list[Object]:
    return list(pod["spec"].get("initContainers") or ())


def main_containers(pod: Object) -> list[Object]:
    return list(pod["spec"].get("containers") or ())


def restart_policy(pod: Object) -> str:
    return str(pod["spec"].get("restartPolicy") or "Always")


def init_policy(pod: Object) -> str:
    """An init container must succeed once: `Always` means for it what `OnFailure` does."""
    return "Never" if restart_policy(pod) == "Never" else "OnFailure"


def failed_to_initialize(pod: Object, seen: Observed) -> bool:
    """Whether an init container failed that will not come back."""
    return init_policy(pod) == "Never" and any(
        (end := seen.of(container["name"]).exit) is not None and end.code != 0 for container in init_containers(pod)
    )


def initialized(pod: Object, seen: Observed) -> bool:
    """Whether every init container has succeeded; also true, for good, once a main container has been started."""
    if any(seen.of(container["name"]).last is not None for container in main_containers(pod)):
        return True
    return all(
        (end := seen.of(container["name"]).exit) is not None and end.code == 0 for container in init_containers(pod)
    )


def active_deadline(pod: Object, seen: Observed) -> datetime | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return seen.started + timedelta(seconds=int(seconds)) if seconds is not None else None


def _run(pod: Object, seen: Observed, now: datetime) -> Plan:
    """The normal case: start what should run and does not."""
    wanted = list(_to_start(pod, seen))
    if not wanted:
        idle = not any(seen.of(container["name"]).running for container in _all(pod))
        return Plan((EndSandbox(),)) if idle and seen.address and not _anything_left(pod, seen) else Plan()
    ready = [(name, moment) for name, moment in wanted if moment is None or moment <= now]
    later = _earliest(*(moment for _, moment in wanted if moment is not None and moment > now))
    if not ready:
        return Plan(look_again_at=later)
    if not seen.address:
        if seen.waiting is not None and seen.waiting.until > now:
            return Plan(look_again_at=_earliest(later, seen.waiting.until))
        return Plan((MakeSandbox(),))
    actions: list[Action] = []
    for name, _ in ready:
        container = seen.of(name)
        if container.waiting is not None and container.waiting.until > now:
            later = _earliest(later, container.waiting.until)
        elif not container.image_ready:
            actions += [] if container.pulling else [Pull(name)]
        else:
            last = container.last
            actions.append(Start(name, last.number + 1 if last else 0, next_level(last) if last else 0))
    return Plan(tuple(actions), later)


def _to_start(pod: Object, seen: Observed) -> Iterator[tuple[str, datetime | None]]:
    """The containers that should run and do not, each with the moment from which on it may (None: at once)."""
    if not initialized(pod, seen):
        for container in init_containers(pod):
            state = seen.of(container["name"])
            if state.running:
                return
            if state.exit is None or state.exit.code != 0:      # the first that has not succeeded; the others wait
                yield container["name"], _may_start(state)
                return
    for container in main_containers(pod):
        state = seen.of(container["name"])
        if not state.running and (state.exit is None or comes_back(restart_policy(pod), state.exit.code)):
            yield container["name"], _may_start(state)


def _may_start(state: ContainerSeen) -> datetime | None:
    return due(state.last) if state.last is not None else None


def _anything_left(pod: Object, seen: Observed) -> bool:
    """Whether anything runs or is still to be run."""
    return any(seen.of(container["name"]).running for container in _all(pod)) or any(True for _ in _to_start(pod, seen))


def _stop(pod: Object, seen: Observed, now: datetime, grace: timedelta, *, remove: bool) -> Plan:
    """End what runs: ask, wait for the grace period, then make it. Afterwards the sandbox, at last the object."""
    actions: list[Action] = []
    later: datetime | None = None
    for container in _all(pod):
        name, state = container["name"], seen.of(container["name"])
        if not state.running:
            continue
        if state.terminating is None:
            actions.append(Terminate(name, grace) if grace else Kill(name))
        elif now >= state.terminating + grace and state.killed is None:
            actions.append(Kill(name))
        elif state.killed is not None and now >= state.killed + STUBBORN:
            actions.append(Kill(name, shim=True))
        else:
            later = _earliest(later, state.killed + STUBBORN if state.killed else state.terminating + grace)
    if actions or any(seen.of(container["name"]).running for container in _all(pod)):
        return Plan(tuple(actions), later)
    if seen.address:
        return Plan((EndSandbox(),))
    return Plan((Remove(),)) if remove else Plan()


def _grace(pod: Object) -> timedelta:
    """How long a container may take to end by itself: what the deletion says, else what the pod does."""
    for seconds in (
        pod["metadata"].get("deletionGracePeriodSeconds"), pod["spec"].get("terminationGracePeriodSeconds"),
    ):
        if seconds is not None:
            return timedelta(seconds=max(0, int(seconds)))
    return DEFAULT_GRACE


def _all(pod: Object) -> list[Object]:
    return init_containers(pod) + main_containers(pod)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
