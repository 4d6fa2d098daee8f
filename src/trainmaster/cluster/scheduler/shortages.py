"""What stands in the way of a gang, found out for people: what is short, who has it, and whether waiting helps.

Nothing here decides; it looks at the books of a decision after the gang found no place.
"""

from collections.abc import Generator, Iterable, Iterator
from heapq import nsmallest

from trainmaster.cluster.scheduler import dialects, queues
from trainmaster.cluster.scheduler.amounts import PODS, Amounts, plus, total
from trainmaster.cluster.scheduler.boards import choose
from trainmaster.cluster.scheduler.floor import Floor
from trainmaster.cluster.scheduler.gangs import Gang
from trainmaster.cluster.scheduler.queues import Account
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.snapshot import Pod

MOST_NAMED = 3      # jobs that hold what is missing


def queue_full(floor: Floor, gang: Gang, account: Account, short: Amounts) -> Reason:
    """The queue, the gang's own or one above it, may not have so much: who in it has it, and whether it ever may."""
    wanted = gang.group.wanted or total(pod.requests for pod in gang.waiting[:gang.least])
    ceiling = account.ceiling or {}
    return Reason(
        Code.QUEUE_FULL, least=gang.least, queue=account.queue.name, short=short,
        holders=holders(floor, gang, short, account),
        ever=all(wanted.get(name, 0) <= ceiling[name] for name in short if name in ceiling))


def explain(floor: Floor, gang: Gang, failed: list[Pod]) -> Iterator[None]:
    """Why no place was found: what all members that are still needed lack, together."""
    if gang in floor.why:
        return
    held = gang.census.ready
    needed = failed[:max(gang.least - held - len(gang.found), 1)]
    obstacles = gang.obstacles
    by_amount = [name for name in obstacles if name.startswith("Insufficient ") or name == "Too many pods"]
    short: dict[str, int] = {}
    if by_amount and len(by_amount) == len(obstacles):
        short = total(pod.requests for pod in needed)
    if short and (stopped := _stopped_by_queue(floor, gang, short)):
        floor.why[gang] = stopped
        return
    ever = yield from fits_empty(floor, gang)
    nodes = floor.trial.snapshot.nodes.values()
    largest = {name: max((floor.trial.idle(node).get(name, 0) for node in nodes), default=0) for name in short}
    lacked = {"pods" if name == "Too many pods" else name.removeprefix("Insufficient ") for name in by_amount}
    floor.why[gang] = Reason(
        Code.NO_NODE_FITS, least=gang.least, fitting=held + len(gang.found), queue=gang.group.queue,
        short={name: amount for name, amount in short.items() if name in lacked}, largest={
            name: amount for name, amount in largest.items() if name in lacked},
        each={name: amount for name, amount in needed[0].requests.items() if name in lacked and name in short},
        filters=dict(obstacles), nodes=len(floor.trial.snapshot.nodes), holders=holders(floor, gang, lacked),
        ever=ever)


def _stopped_by_queue(floor: Floor, gang: Gang, short: Amounts) -> Reason | None:
    """The queue's share, if that would stop the gang even with what the nodes lack: then that is what to tell."""
    account = floor.account(gang)
    if account is None or account.queue.raw is None:
        return None
    mine = gang.group.key.dialect
    there = queues.copies(other for (dialect, _), other in floor.accounts.items() if dialect == mine)
    queues.settle(there.values(), plus(floor.cluster, short), quotas=dialects.by_name(mine) is dialects.T9K)
    then = there[account.queue.name]
    missing = max(gang.least - gang.census.allocated, 0)
    wanted = total(pod.requests for pod in gang.waiting[:missing])
    for each in then.path:
        over = {name: amount + each.allocated.get(name, 0) - each.most.get(name, 0)
                for name, amount in wanted.items() if name != PODS and amount}
        if over := {name: amount for name, amount in over.items() if amount > 0}:
            return queue_full(floor, gang, each, over)
    return None


def holders(floor: Floor, gang: Gang, lacked: Iterable[str],
            account: Account | None = None) -> tuple[tuple[str, Amounts], ...]:
    """Who has most of what is missing, in that queue or anywhere, and how much."""
    names = tuple(sorted(lacked))
    first = floor.holders.get((names, account))
    if first is None:      # the same for all that lack the same, until somebody starts
        first = floor.holders[names, account] = _first_holders(floor, names, account)
    return tuple((str(other.group.key), {name: other.allocated[name] for name in names if other.allocated.get(name)})
                 for other in first if other is not gang)[:MOST_NAMED]


def _first_holders(floor: Floor, names: tuple[str, ...], account: Account | None) -> list[Gang]:
    """One more than are named: whoever asks may be among them."""
    found = []
    for number, other in enumerate(floor.gangs):
        held = sum(other.allocated.get(name, 0) for name in names)
        if held and (account is None or _within(floor, other, account)):
            found.append((-held, str(other.group.key), number))
    return [floor.gangs[number] for _, _, number in nsmallest(MOST_NAMED + 1, found)]


def _within(floor: Floor, gang: Gang, account: Account) -> bool:
    own = floor.account(gang)
    return own is not None and any(each is account for each in own.line)


def fits_empty(floor: Floor, gang: Gang) -> Generator[None, None, bool]:
    """Whether the gang would fit if no other gang's pods were there."""
    trial = yield from floor.without_others(gang)
    muster, needed = gang.muster(), gang.needed
    for pod in gang.waiting:
        if (there := choose(trial, pod, needed)) is not None:
            trial.place(pod, there.name)
            muster.add(pod)
        if muster.ready:
            return True
        yield
    return False
