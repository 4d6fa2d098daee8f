"""A snapshot and a moment in, a decision out: bindings, evictions, what to say about groups and pods. Pure.

Pods of the default scheduler go one by one; gangs go whole or not at all (`allocate`). The same snapshot gives the same
decision: ties go by name, never by chance.
"""

from collections.abc import Generator, Iterator
from datetime import datetime, timedelta

from trainmaster.api.meta import moment
from trainmaster.cluster.scheduler import dialects, filters, gangs, preemption, resting
from trainmaster.cluster.scheduler.allocate import allocate
from trainmaster.cluster.scheduler.amounts import shown
from trainmaster.cluster.scheduler.boards import choose
from trainmaster.cluster.scheduler.dialects import COSCHEDULING, KUBE_BATCH
from trainmaster.cluster.scheduler.entrance import enqueue
from trainmaster.cluster.scheduler.floor import FOREVER, Floor
from trainmaster.cluster.scheduler.gangs import INQUEUE, RUNNING, Gang
from trainmaster.cluster.scheduler.reasons import Code
from trainmaster.cluster.scheduler.settings import (
    DEFAULTS,
    Binding,
    Condition,
    Decision,
    Eviction,
    Settings,
    Told,
    Verdict,
    Waiting,
)
from trainmaster.cluster.scheduler.snapshot import Claim, Node, Pod, Snapshot, State
from trainmaster.cluster.scheduler.trial import Trial

DEFAULT = "default-scheduler"
SCHEDULING = "Scheduling"             # a phase of scheduler-plugins
TOO_LONG = timedelta(hours=48)        # after which it says so, once; it stops caring then, we do not


def decide(snapshot: Snapshot, now: datetime, settings: Settings = DEFAULTS) -> Decision:
    """The whole decision at once."""
    deciding = slices(snapshot, now, settings)
    while True:
        try:
            next(deciding)
        except StopIteration as done:
            decision: Decision = done.value
            return decision


def slices(snapshot: Snapshot, now: datetime, settings: Settings = DEFAULTS) -> Generator[None, None, Decision]:
    """The same in short pieces. The snapshot must not change between them."""
    clock = now.timestamp()
    trial = Trial(snapshot, [claim for claim in snapshot.claims if claim.until > clock])
    floor = Floor(trial, settings, now)
    yield from floor.gather()
    if settings.singles:
        trial.hold(_nominated(floor))
    yield from enqueue(floor)
    bindings: list[Binding] = []
    waiting: list[Waiting] = []
    evictions: list[Eviction] = []
    nominations: list[Binding] = []
    # Gangs first: what a gang needs in one piece is soon nibbled away, what a single pod needs is found again.
    yield from allocate(floor)
    verdicts: list[Verdict] = []
    for gang in floor.gangs:
        if (said := floor.resting.get(gang)) is not None:
            verdicts.append(said)
            continue
        verdicts.append(_verdict(floor, gang))
        resting.keep(snapshot, gang, verdicts[-1])
        if gang.placed:
            bindings += [Binding(pod.key, pod.uid, gang.placed[pod.uid])
                         for pod in gang.pods if pod.uid in gang.placed]
        yield
        yield from _pods_of(floor, gang, waiting)
    if settings.singles:
        yield from _one_by_one(trial, bindings, waiting, evictions, nominations)
    waiting += _strays(snapshot)
    return Decision(tuple(bindings), tuple(waiting), (*floor.evictions, *evictions), tuple(verdicts),
                    tuple(nominations))


def _one_by_one(trial: Trial, bindings: list[Binding], waiting: list[Waiting], evictions: list[Eviction],
                nominations: list[Binding]) -> Iterator[None]:
    there = [pod for pod in trial.snapshot.waiting.get(DEFAULT, {}).values() if not pod.gated]
    for pod in sorted(there, key=lambda each: (-each.priority, each.created, each.key)):
        node = _at_its_own(trial, pod) or choose(trial, pod)
        if node is not None:
            trial.place(pod, node.name)
            bindings.append(Binding(pod.key, pod.uid, node.name))
        else:
            counts = filters.refusal(trial, pod)
            waiting.append(Waiting(pod.key, pod.uid, dialects.available(counts, len(trial.snapshot.nodes))))
            where = yield from _preempted(trial, pod, evictions)
            if where != pod.nominated:
                nominations.append(Binding(pod.key, pod.uid, where))
        yield


def _nominated(floor: Floor) -> list[Claim]:
    """The room that was made for pods, and that no gang may take unless one that waits is more important."""
    most = max((gang.priority for gang in floor.gangs if gang.census.line), default=0)
    return [Claim(None, pod.nominated, pod.requests, FOREVER)
            for pod in floor.trial.snapshot.waiting.get(DEFAULT, {}).values()
            if pod.nominated and not pod.gated and pod.priority >= most]


def _at_its_own(trial: Trial, pod: Pod) -> Node | None:
    """The node on which others made room for the pod, if it fits there."""
    node = trial.snapshot.nodes.get(pod.nominated) if pod.nominated else None
    return node if node is not None and not filters.obstacles(trial, pod, node) else None


def _preempted(trial: Trial, pod: Pod, evictions: list[Eviction]) -> Generator[None, None, str]:
    """Where others make room for an important pod, and who must go for it; "" if nobody does. Its place is kept in this
    decision; the next one finds them on their way."""
    if pod.priority <= 0 or not pod.preempts:
        return ""
    trial.future = True
    soon = _at_its_own(trial, pod) or choose(trial, pod)
    trial.future = False
    if soon is not None:
        trial.place(pod, soon.name)
        return soon.name
    found = yield from preemption.for_pod(trial, pod, lambda other: other.priority < pod.priority)
    if found is None:
        return ""
    node, victims = found
    for victim in victims:
        trial.evict(victim)
    trial.place(pod, node.name)
    evictions += [Eviction(victim.key, victim.uid, "preempt", victim.group) for victim in victims]
    return node.name


def _strays(snapshot: Snapshot) -> list[Waiting]:
    """Pods that name a group which is not there: they would wait for ever, so they are told."""
    found = []
    for dialect in dialects.DIALECTS:
        for pod in snapshot.waiting.get(dialect.scheduler, {}).values():
            if pod.group is not None and pod.group not in snapshot.groups:
                name = pod.group.key.name
                text = f'PodGroup "{name}" not found in namespace {pod.key.namespace}; create it, or correct the pod'
                found.append(Waiting(pod.key, pod.uid, text, dialect.scheduler))
    return found


def _pods_of(floor: Floor, gang: Gang, waiting: list[Waiting]) -> Iterator[None]:
    """What the pods of a gang that did not start are told."""
    if not (members := gang.waiting):
        return
    dialect, why, detail = dialects.by_name(gang.group.key.dialect), floor.why.get(gang), gangs.detail(gang)
    for pod in members:
        yield
        if pod.uid in gang.errors:
            text, reason = gang.errors[pod.uid], "Unschedulable"
            if dialect is KUBE_BATCH:
                text = detail if gang.group.least > 1 else text
        elif pod.uid in gang.found:
            text = f"Pod {pod.key} can possibly be assigned to {gang.found[pod.uid]}, once minAvailable is satisfied"
            reason = "Schedulable"
        elif why is not None and why.code is Code.TOO_FEW_MEMBERS and dialect is COSCHEDULING:
            text = (f"pre-filter pod {pod.key.name} cannot find enough sibling pods, current pods number: "
                    f"{gang.census.valid}, minMember of group: {gang.least}")
            reason = "Unschedulable"
        elif why is not None and why.code is Code.CLUSTER_FULL and dialect is COSCHEDULING:
            gap = ", ".join(f"{name}: {shown(name, amount)}" for name, amount in sorted(why.short.items()))
            text, reason = f"resource gap: {gap}", "Unschedulable"
        elif why is not None and why.code in {
                Code.QUEUE_MISSING, Code.QUEUE_CLOSED, Code.QUEUE_FOREIGN, Code.QUEUE_INNER, Code.QUEUE_FULL,
                Code.TOO_FEW_MEMBERS, Code.BEING_FREED}:
            text, reason = f"{gang.group.key.key.name}: {why.told()}", "Unschedulable"
        else:
            text, reason = detail, "Unschedulable"
        waiting.append(Waiting(pod.key, pod.uid, text, dialect.scheduler, reason))


def _verdict(floor: Floor, gang: Gang) -> Verdict:
    dialect = dialects.by_name(gang.group.key.dialect)
    why = floor.why.get(gang)
    ready = gang.ready
    stuck = not ready and bool(gang.pods) and bool(gang.waiting or gang.damaged) and not _comes_back(floor, gang)
    if dialect is COSCHEDULING:
        phase = _coscheduling_phase(gang)
    else:
        phase = gangs.phase(gang, unschedulable=stuck and bool(why))
        if phase == gangs.PENDING and gang.entered and dialect.enqueues:
            phase = INQUEUE
    condition, events = _said(gang, phase, dialect, why.code if why else None)
    if dialect is COSCHEDULING and _too_long(gang, phase, floor.now):
        events.append(Told("Warning", "Timeout", "schedule time longer than 48 hours"))
    states = gang.census.states
    return Verdict(
        gang.group, phase, running=states[State.RUNNING], succeeded=states[State.SUCCEEDED],
        failed=states[State.FAILED], members=len(gang.pods), condition=condition, events=events,
        why=None if ready or phase == gangs.COMPLETED else why, pending=states[State.PENDING] + states[State.BOUND],
        allocated=gang.allocated, complete=gang.complete, ready=ready, occupied=gang.census.owners)


def _too_long(gang: Gang, phase: str, now: datetime) -> bool:
    since = gang.group.tried_since
    return bool(since) and phase in {gangs.PENDING, SCHEDULING} and now - moment(since) >= TOO_LONG


def _said(gang: Gang, phase: str, dialect: dialects.Dialect, code: Code | None) -> tuple[Condition | None, list[Told]]:
    """The condition and the events of a group."""
    if dialect is COSCHEDULING or phase == gangs.COMPLETED:
        return None, []
    if gang.ready:
        events = [Told("Normal", "Scheduled", "pod group is ready")] if phase == RUNNING and gang.placed else []
        return Condition("Scheduled", "tasks in gang are ready to be scheduled", ""), events
    events = [Told("Normal", "Unschedulable", gang.refused)] if gang.refused else []
    if code is Code.TOO_FEW_MEMBERS and gang.pods:
        text = f"Not enough valid tasks for gang-scheduling, valid: {gang.census.valid}, min: {gang.least}"
        return Condition("Unschedulable", "NotEnoughTasks", text), events
    in_condition, in_event = gangs.unschedulable(gang)
    text = _crude(gang) if dialect is KUBE_BATCH else gangs.detail(gang)
    if gang.pods or gang.refused:
        said = f"{in_event}/{len(gang.pods)} tasks in gang unschedulable: {text}"
        events.append(Told("Warning", "Unschedulable", said))
    if not gang.pods or not gang.waiting:
        return None, events
    said = f"{in_condition}/{len(gang.pods)} tasks in gang unschedulable: {text}"
    return Condition("Unschedulable", "NotEnoughResources", said), events


def _crude(gang: Gang) -> str:
    return next(iter(gang.errors.values()), "0 nodes are available")


def _comes_back(floor: Floor, gang: Gang) -> bool:
    """It lost members a moment ago and still has its claim on what they had."""
    return any(claim.group == gang.group.key and claim.until > floor.now.timestamp()
               for claim in floor.trial.snapshot.claims)


def _coscheduling_phase(gang: Gang) -> str:
    """As the controller of scheduler-plugins has it. Failed and finished are for good there; here until somebody makes
    new pods."""
    now = gang.group.phase
    if now in {"Failed", "Finished"} and all(pod.state in {State.SUCCEEDED, State.FAILED} for pod in gang.pods):
        return now
    states = gang.census.states
    running, done, failed = states[State.RUNNING], states[State.SUCCEEDED], states[State.FAILED]
    if len(gang.pods) < gang.least:
        return "Pending"
    if failed and failed + running + done >= gang.least:
        return "Failed"
    if done >= gang.least:
        return "Finished"
    return "Running" if running + done >= gang.least else SCHEDULING

