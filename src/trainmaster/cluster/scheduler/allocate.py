"""Gangs onto nodes: who is tried next, and a whole gang or nothing.

The order of things is Volcano's (enqueue, which is `entrance`, allocate, backfill), with its gaps closed: members that
ask for nothing are placed in the same statement, a gang that lost a member comes before new ones, room that is being
given back is kept for the gang that waits for it, and the first in line cannot be overtaken for ever.
"""

import heapq
from collections.abc import Generator, Iterator
from dataclasses import replace

from trainmaster.cluster.scheduler import dialects, filters, queues
from trainmaster.cluster.scheduler.amounts import Amounts, minus, plus, total
from trainmaster.cluster.scheduler.boards import choose
from trainmaster.cluster.scheduler.floor import FOREVER, Floor
from trainmaster.cluster.scheduler.gangs import Gang, Muster
from trainmaster.cluster.scheduler.queues import Account
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.shortages import explain, holders, queue_full
from trainmaster.cluster.scheduler.snapshot import Claim, Pod
from trainmaster.cluster.scheduler.victims import push_out


def allocate(floor: Floor) -> Iterator[None]:
    """Try gangs until none is left that could start. Stops after each, so that nobody waits for a long decision."""
    lines: dict[Account, list[tuple[tuple[object, ...], int, Gang]]] = {}
    for number, gang in enumerate(floor.restless):
        if _may_try(floor, gang):
            account = floor.account(gang)
            assert account is not None
            lines.setdefault(account, []).append((floor.order(gang), number, gang))
        yield
    for line in lines.values():
        heapq.heapify(line)
    positions = {gang: place + 1 for line in lines.values() for place, (_, _, gang) in enumerate(sorted(line))}
    yield
    while lines:
        account = min(lines, key=lambda each: each.order)
        line = lines[account]
        if not line or (account.overused and account.queue.raw is not None):
            for _, _, gang in sorted(line):
                if all(pod.best_effort for pod in gang.waiting):      # asks for nothing that the queue could lack
                    while gang.waiting and (yield from _try(floor, gang, account)):
                        yield
                else:
                    yield from _refuse_for_queue(floor, gang, account)
                yield
            del lines[account]
            continue
        _, number, gang = heapq.heappop(line)
        started = yield from _try(floor, gang, account)
        if started and gang.waiting:
            heapq.heappush(line, (floor.order(gang), number, gang))
        elif not started:
            if gang in floor.why and positions.get(gang, 1) > 1:
                floor.why[gang] = replace(floor.why[gang], position=positions[gang])
            yield from _keep_room(floor, gang)
            if account.queue.fifo:
                del lines[account]
        yield


def _may_try(floor: Floor, gang: Gang) -> bool:
    dialect = dialects.by_name(gang.group.key.dialect)
    account = floor.account(gang)
    unplaced = gang.waiting
    if account is None:
        floor.why[gang] = Reason(Code.QUEUE_MISSING, least=gang.least, queue=gang.group.queue)
        return False
    spaces, space = account.queue.spaces, gang.group.key.key.namespace
    if spaces is not None and not spaces.matches(floor.trial.snapshot.spaces.get(space, {})):
        if unplaced or not gang.pods:
            floor.why[gang] = Reason(Code.QUEUE_FOREIGN, least=gang.least, queue=gang.group.queue)
        return False
    if not account.open or not account.leaf:
        if unplaced or not gang.pods:
            code = Code.QUEUE_CLOSED if account.leaf else Code.QUEUE_INNER
            floor.why[gang] = Reason(code, least=gang.least, queue=gang.group.queue)
        return False
    if dialect.enqueues and gang.pending and not gang.entered:
        return False
    if unplaced and not gang.complete:
        floor.why[gang] = Reason(Code.TOO_FEW_MEMBERS, least=gang.least, fitting=gang.census.valid,
                                 queue=gang.group.queue)
        return False
    if unplaced and dialect is dialects.COSCHEDULING and (gap := _gap(floor, gang)):
        floor.why[gang] = Reason(Code.CLUSTER_FULL, least=gang.least, queue=gang.group.queue, short=gap,
                                 nodes=len(floor.trial.snapshot.nodes), holders=holders(floor, gang, gap),
                                 ever=all(amount <= floor.cluster.get(name, 0)
                                          for name, amount in (gang.group.wanted or {}).items()))
        return False
    return bool(unplaced)


def _gap(floor: Floor, gang: Gang) -> dict[str, int]:
    """What the cluster as a whole lacks of the group's minResources; what its own pods hold counts for it."""
    if gang.group.wanted is None:
        return {}
    free = total(node.idle for node in floor.trial.snapshot.nodes.values())
    gap = minus(gang.group.wanted, plus(free, gang.allocated))
    return {name: amount for name, amount in gap.items() if amount > 0}


def _try(floor: Floor, gang: Gang, account: Account) -> Generator[None, None, bool]:
    """Place what the gang needs to be ready, or one more member if it is; nothing at all if that cannot be."""
    if gang in floor.leaving:
        return False
    trial, members = floor.trial, gang.waiting
    was_ready, muster = gang.ready, gang.muster()
    mark = trial.mark()
    placed, failed = yield from _place(floor, gang, account, members, muster, surplus=was_ready)
    if placed and muster.ready:
        for pod in placed:
            gang.settle(pod, trial.placed[pod.uid])
        floor.holders.clear()
        return True
    gang.found = {step.pod.uid: step.node for step in trial.back(mark)}
    queues.refund(account, total(pod.requests for pod in placed))
    if was_ready:
        return False      # the rest waits, and the gang runs without it
    if (yield from _fits_later(floor, gang, account, members)) or (yield from push_out(floor, gang, account, members)):
        return False
    yield from explain(floor, gang, failed)
    return False


def _place(floor: Floor, gang: Gang, account: Account, members: list[Pod], muster: Muster, *,
           surplus: bool) -> Generator[None, None, tuple[list[Pod], list[Pod]]]:
    """Put members on nodes until the gang is ready: those that found a place, who are mustered, and those that did
    not."""
    placed: list[Pod] = []
    failed: list[Pod] = []
    roles: set[tuple[str, Amounts | int]] = set()
    needed = gang.needed
    for pod in members:
        if placed and (surplus or (muster.ready and not pod.best_effort)):
            break
        yield
        kind = (pod.role, id(pod.demands))
        there = choose(floor.trial, pod, needed)
        short = account.refuses(pod.requests) if there is not None and account.queue.raw is not None else None
        if there is not None and not short:
            floor.trial.place(pod, there.name)
            queues.charge(account, pod.requests)
            placed.append(pod)
            muster.add(pod)
            continue
        failed.append(pod)
        if short:
            full, what = short
            gang.errors[pod.uid] = f"queue {full.queue.name} may not have more {what}"
            floor.why[gang] = queue_full(floor, gang, full, {
                what: pod.requests[what] + full.allocated.get(what, 0) - full.most.get(what, 0)})
        elif kind in roles and pod.role:
            gang.errors[pod.uid] = (f"Task {pod.key.name} with role spec {pod.role} has already predicated failed, "
                                    "skip")
        else:
            counts = filters.refusal(floor.trial, pod)
            gang.obstacles = gang.obstacles or counts
            gang.errors[pod.uid] = dialects.by_name(gang.group.key.dialect).refusal(
                counts, len(floor.trial.snapshot.nodes))
        roles.add(kind)
    return placed, failed


def _fits_later(floor: Floor, gang: Gang, account: Account, members: list[Pod]) -> Generator[None, None, bool]:
    """Whether it fits once the pods that are ending are gone. Then its places are kept, or others would take them, and
    count for its queue."""
    trial = floor.trial
    if not any(node.releasing for node in trial.snapshot.nodes.values()):
        return False
    mark, placed, needed, muster = trial.mark(), list[Pod](), gang.needed, gang.muster()
    trial.future = True
    for pod in members:
        there = choose(trial, pod, needed)
        if there is not None and not (account.queue.raw is not None and account.refuses(pod.requests)):
            trial.place(pod, there.name)
            queues.charge(account, pod.requests)
            placed.append(pod)
            muster.add(pod)
        yield
    trial.future = False
    if not muster.ready:
        trial.back(mark)
        queues.refund(account, total(pod.requests for pod in placed))
        return False
    gang.held = True
    floor.why[gang] = Reason(Code.BEING_FREED, least=gang.least, fitting=len(gang.found), queue=gang.group.queue)
    return True


def _refuse_for_queue(floor: Floor, gang: Gang, account: Account) -> Iterator[None]:
    if gang.ready or (yield from push_out(floor, gang, account, gang.waiting)):      # there may be lesser ones in it
        return
    wanted = total(pod.requests for pod in gang.waiting[:gang.least])
    short = {name: amount + account.allocated.get(name, 0) - account.most.get(name, 0)
             for name, amount in wanted.items()}
    floor.why[gang] = queue_full(floor, gang, account, {name: amount for name, amount in short.items() if amount > 0})


def _keep_room(floor: Floor, gang: Gang) -> Iterator[None]:
    """For a gang that has waited too long: nobody behind it takes room that it will need."""
    patience = min(floor.settings.patience or FOREVER, gang.group.patience or FOREVER)
    if patience == FOREVER or gang.held or gang.ready or not gang.group.created:
        return
    if floor.waited(gang) < patience or gang not in floor.why or not floor.why[gang].ever \
            or floor.why[gang].code is not Code.NO_NODE_FITS:
        return
    trial = yield from floor.without_others(gang)
    mark, needed = trial.mark(), gang.waiting[:gang.least]
    for pod in needed:
        if (there := choose(trial, pod, needed)) is not None:
            trial.place(pod, there.name)
        yield
    floor.trial.hold(Claim(gang.group.key, step.node, step.pod.requests, FOREVER) for step in trial.steps[mark:])
    floor.trial.growth += 1
