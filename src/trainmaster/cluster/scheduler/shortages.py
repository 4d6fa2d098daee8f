"""What stands in the way of a gang, found out for people: what is short, who has it, and whether waiting helps.

Nothing here decides; it looks at the books of a decision after the gang found no place.
"""

from collections.abc import Iterable

from trainmaster.cluster.scheduler import dialects, queues
from trainmaster.cluster.scheduler.amounts import PODS, Amounts, plus, total
from trainmaster.cluster.scheduler.boards import choose
from trainmaster.cluster.scheduler.floor import Floor
from trainmaster.cluster.scheduler.gangs import ALLOCATED, Gang
from trainmaster.cluster.scheduler.queues import Account
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.snapshot import Pod, State
from trainmaster.cluster.scheduler.trial import Trial

MOST_NAMED = 3      # jobs that hold what is missing


def queue_full(floor: Floor, gang: Gang, account: Account, short: Amounts) -> Reason:
    """The queue, the gang's own or one above it, may not have so much: who in it has it, and whether it ever may."""
    wanted = gang.group.wanted or total(pod.requests for pod in gang.waiting[:gang.least])
    ceiling = account.ceiling or {}
    return Reason(
        Code.QUEUE_FULL, least=gang.least, queue=account.queue.name, short=short,
        holders=holders(floor, gang, short, account),
        ever=all(wanted.get(name, 0) <= ceiling[name] for name in short if name in ceiling))


def explain(floor: Floor, gang: Gang, failed: list[Pod]) -> None:
    """Why no place was found: what all members that are still needed lack, together."""
    if gang in floor.why:
        return
    held = sum(1 for pod in gang.pods if pod.state in ALLOCATED or pod.state is State.SUCCEEDED)
    needed = failed[:max(gang.least - held - len(gang.found), 1)]
    obstacles = gang.obstacles
    by_amount = [name for name in obstacles if name.startswith("Insufficient ") or name == "Too many pods"]
    short: dict[str, int] = {}
    if by_amount and len(by_amount) == len(obstacles):
        short = total(pod.requests for pod in needed)
    if short and (stopped := _stopped_by_queue(floor, gang, short)):
        floor.why[gang] = stopped
        return
    nodes = floor.trial.snapshot.nodes.values()
    largest = {name: max((floor.trial.idle(node).get(name, 0) for node in nodes), default=0) for name in short}
    lacked = {"pods" if name == "Too many pods" else name.removeprefix("Insufficient ") for name in by_amount}
    floor.why[gang] = Reason(
        Code.NO_NODE_FITS, least=gang.least, fitting=held + len(gang.found), queue=gang.group.queue,
        short={name: amount for name, amount in short.items() if name in lacked}, largest={
            name: amount for name, amount in largest.items() if name in lacked},
        each={name: amount for name, amount in needed[0].requests.items() if name in lacked and name in short},
        filters=dict(obstacles), nodes=len(floor.trial.snapshot.nodes), holders=holders(floor, gang, lacked),
        ever=fits_empty(floor, gang))


def _stopped_by_queue(floor: Floor, gang: Gang, short: Amounts) -> Reason | None:
    """The queue's share, if that would stop the gang even with what the nodes lack: then that is what to tell."""
    account = floor.account(gang)
    if account is None or account.queue.raw is None:
        return None
    mine = gang.group.key.dialect
    there = queues.copies(other for (dialect, _), other in floor.accounts.items() if dialect == mine)
    queues.settle(there.values(), plus(floor.cluster, short), quotas=dialects.by_name(mine) is dialects.T9K)
    then = there[account.queue.name]
    missing = max(gang.least - sum(1 for pod in gang.pods if pod.state in ALLOCATED), 0)
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
    found = []
    for other in floor.gangs:
        own = floor.account(other)
        if other is gang or (account is not None and (own is None or all(each is not account for each in own.line))):
            continue
        held = other.allocated
        if there := {name: held[name] for name in lacked if held.get(name)}:
            found.append((-sum(there.values()), str(other.group.key), there))
    return tuple((name, there) for _, name, there in sorted(found, key=lambda each: each[:2])[:MOST_NAMED])


def alone(floor: Floor, gang: Gang) -> Trial:
    """The nodes as they would be if no other gang's pods were there."""
    trial = Trial(floor.trial.snapshot)
    for other in floor.gangs:
        for pod in other.pods:
            if other is not gang and pod.placed:
                trial.evict(pod)
    return trial


def fits_empty(floor: Floor, gang: Gang) -> bool:
    """Whether the gang would fit if no other gang's pods were there."""
    trial = alone(floor, gang)
    placed, needed = [], gang.needed
    for pod in gang.waiting:
        if (there := choose(trial, pod, needed)) is not None:
            trial.place(pod, there.name)
            placed.append(pod)
    return gang.ready(placed)
