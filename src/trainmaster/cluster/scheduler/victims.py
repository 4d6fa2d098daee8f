"""Which gangs may send which away: within a queue by importance, between queues what was borrowed, T9k's by queue.

`preemption` finds the fewest on the nodes; here stands who may be asked at all, and that nobody goes unless the queues
then let the other start.
"""

from collections.abc import Callable, Generator

from trainmaster.cluster.scheduler import preemption, queues
from trainmaster.cluster.scheduler.amounts import PODS, Amounts, minus, plus, total
from trainmaster.cluster.scheduler.floor import Floor
from trainmaster.cluster.scheduler.gangs import Gang
from trainmaster.cluster.scheduler.queues import Account
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.settings import Eviction
from trainmaster.cluster.scheduler.snapshot import Pod


def push_out(floor: Floor, gang: Gang, account: Account, members: list[Pod]) -> Generator[None, None, bool]:
    """By preemption within the queue, then by reclaiming from other queues, if either is switched on."""
    needed = members[:max(gang.least - gang.census.allocated, 0)]
    if not needed or not all(pod.preempts for pod in needed):
        return False
    ways: list[tuple[str, Callable[[Pod], bool]]] = []
    if floor.settings.preempt:
        outranked = _outranked if account.sharing is queues.Sharing.QUOTA else _lesser
        ways.append(("preempt", lambda pod: outranked(floor, gang, pod)))
    if floor.settings.reclaim and not account.overused and account.sharing is not queues.Sharing.QUOTA:
        wanted = total(pod.requests for pod in needed)
        ways.append(("reclaim", lambda pod: _borrowed(floor, gang, account, wanted, pod)))
    for why, allowed in ways:
        mark = floor.trial.mark()
        victims = yield from preemption.for_gang(floor.trial, needed, allowed)
        if victims is not None and not _allowed_after(floor, account, needed, victims, claimed=why == "reclaim"):
            floor.trial.back(mark)      # the queue would stop it: nobody is sent away for nothing
        elif victims is not None:
            floor.evictions += [Eviction(pod.key, pod.uid, why, pod.group) for pod in victims]
            for pod in victims:
                if pod.group is not None:
                    floor.leaving.add(floor.by_key[pod.group])
                if (loser := floor.account_of(pod)) is not None:
                    queues.refund(loser, pod.requests)
                floor.sent.add(pod.uid)
            gang.held = True
            queues.charge(account, total(pod.requests for pod in needed))      # the next of its queue gets what is left
            floor.why[gang] = Reason(Code.BEING_FREED, least=gang.least, queue=gang.group.queue)
            return True
    return False


def _allowed_after(floor: Floor, account: Account, needed: list[Pod], victims: list[Pod], *, claimed: bool) -> bool:
    """Whether the queue, and those above it, may have the gang once the victims are gone; what is claimed back, only up
    to what the queue deserves."""
    if account.queue.raw is None:
        return True
    wanted = total(pod.requests for pod in needed)
    for each in account.line:
        given = total(pod.requests for pod in victims if _below(floor, pod, each))
        held = plus(minus(each.allocated, given), wanted)
        owed = claimed and each is account and account.sharing is not queues.Sharing.HIERARCHY
        limit = each.deserved if owed else each.most
        if any(held.get(name, 0) > limit.get(name, 0) for name, amount in wanted.items() if amount and name != PODS):
            return False
    return True


def _below(floor: Floor, pod: Pod, account: Account) -> bool:
    """Whether what the pod has counts for this queue."""
    own = floor.account_of(pod)
    return own is not None and any(each is account for each in own.line)


def _lesser(floor: Floor, gang: Gang, pod: Pod) -> bool:
    """A pod of a less important gang of the same queue that may be sent away."""
    group = floor.trial.snapshot.groups.get(pod.group) if pod.group is not None else None
    return (group is not None and group is not gang.group and not floor.by_key[group.key].placed
            and (pod.best_effort or not all(each.best_effort for each in gang.waiting))
            and group.key.dialect == gang.group.key.dialect
            and group.queue == gang.group.queue and pod.preemptable and pod.priority < preemption.CRITICAL
            and floor.trial.snapshot.priority_of(group) < gang.priority)


def _borrowed(floor: Floor, gang: Gang, account: Account, wanted: Amounts, pod: Pod) -> bool:
    """A pod of a queue that has more than it deserves and gives back. In a tree every queue above it that is not above
    the other as well must have too much: what moves within such a branch is that branch's own affair."""
    group = floor.trial.snapshot.groups.get(pod.group) if pod.group is not None else None
    if group is None or group.key.dialect != gang.group.key.dialect or pod.priority >= preemption.CRITICAL \
            or floor.by_key[group.key].placed:
        return False
    other = floor.account_of(pod)
    if other is None or other is account or not other.queue.reclaimable:
        return False
    if account.sharing is queues.Sharing.HIERARCHY:
        return _heavier(floor, account, wanted, other, pod)
    shared = set(account.line)
    return all(_has_too_much(floor, each, pod) for each in other.line if each not in shared)


def _left(floor: Floor, account: Account) -> dict[str, int]:
    """What a queue has beside what would be taken from it now."""
    return minus(account.allocated, total(going.requests for going in floor.trial.going
                                          if going.uid not in floor.sent and _below(floor, going, account)))


def _has_too_much(floor: Floor, account: Account, pod: Pod) -> bool:
    left, kept = _left(floor, account), account.queue.guarantee or {}
    return any(left.get(name, 0) > account.deserved.get(name, 0) for name in pod.requests if name != PODS) and all(
        left.get(name, 0) - amount >= kept[name] for name, amount in pod.requests.items() if name in kept)


def _heavier(floor: Floor, account: Account, wanted: Amounts, other: Account, pod: Pod) -> bool:
    """Whether the other's branch would still not be behind ours if the pod went and our gang came, where the two
    branches part. Then giving it back could never be asked for in turn."""
    ours, theirs = next((pair for pair in zip(account.path, other.path, strict=False) if pair[0] is not pair[1]),
                        (account, other))
    after = queues.share_of(ours, plus(_left(floor, ours), wanted))
    return after <= queues.share_of(theirs, minus(_left(floor, theirs), pod.requests))


def _outranked(floor: Floor, gang: Gang, pod: Pod) -> bool:
    """T9k's way: a pod of a less important queue that gives up what it has; never one of the same queue."""
    own, other = floor.account(gang), floor.account_of(pod)
    if own is None or other is None or pod.group is None or floor.by_key[pod.group].placed:
        return False
    return (pod.group.dialect == gang.group.key.dialect and other.queue.reclaimable
            and pod.priority < preemption.CRITICAL and other.queue.priority < own.queue.priority)
