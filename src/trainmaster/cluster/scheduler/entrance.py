"""Who may make pods: groups that are still pending are let in (phase Inqueue), or told why not. Volcano's way alone.

A group says what it needs at least. It is let in as long as its namespace's quotas, its queue and the cluster, with a
factor above what there is, could have that beside what was promised to others. Refusing one does not hold up the next.
Three things are done better than by Volcano: what was promised to a group whose pods may use some nodes only counts for
those nodes; what the group could send away or take back counts as free where that is switched on; and a group that has
made no pods yet is asked about again, and sent back if there is no room for it any more.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from trainmaster.cluster.scheduler import dialects, filters
from trainmaster.cluster.scheduler.amounts import ONE, PODS, Amounts, add, minus, plus, total
from trainmaster.cluster.scheduler.census import ALLOCATED
from trainmaster.cluster.scheduler.demands import Demands
from trainmaster.cluster.scheduler.floor import Floor
from trainmaster.cluster.scheduler.gangs import Gang
from trainmaster.cluster.scheduler.limits import beyond
from trainmaster.cluster.scheduler.queues import Account
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.shortages import holders, queue_full


def enqueue(floor: Floor) -> Iterator[None]:
    """Let in whom there is something for, in order; stops after each."""
    there = []
    for number, gang in enumerate(floor.restless):
        if (gang.pending or gang.idle) and dialects.by_name(gang.group.key.dialect).enqueues:
            there.append((not gang.idle, floor.order(gang), number, gang))
            yield
    books = _Books(floor) if there else None
    before: Counter[Account] = Counter()      # gangs of a queue that are further in front and not let in either
    for _, _, _, gang in sorted(there):
        account = floor.account(gang)
        if books is None or account is None or not account.open or not account.leaf:
            continue      # said by `allocate`
        refused = books.refuses(gang, account)
        if refused is None:
            gang.entered = True
            books.promise(gang, account)
        else:
            before[account] += 1
            gang.refused, why = refused
            floor.why[gang] = replace(why, position=before[account])
        yield


class _Books:
    """What is used and what was promised, in the cluster and in each namespace."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._used = total(minus(node.offers, node.idle) for node in floor.trial.snapshot.nodes.values())
        self._promised = _promised(floor)
        self._spaces: dict[str, dict[str, int]] = {}

    def promise(self, gang: Gang, account: Account) -> None:
        wanted, space = gang.group.wanted or {}, gang.group.key.key.namespace
        self._promised = plus(self._promised, wanted)
        self._spaces[space] = plus(self._spaces.get(space, {}), _to_be_made(gang))
        for each in account.line:
            each.inqueue = plus(each.inqueue, wanted)

    def refuses(self, gang: Gang, account: Account) -> tuple[str, Reason] | None:
        """Volcano's words and the reason, or None."""
        if (found := self._by_quota(gang)) is not None or self._floor.late(gang):
            return found
        wanted = gang.group.wanted or {}
        narrow = _narrow(account, wanted)
        if narrow is not None:
            full, short = narrow
            return (f"queue resource quota insufficient: insufficient {', '.join(sorted(short))}",
                    queue_full(self._floor, gang, full, short))
        return self._by_cluster(gang, account, wanted)

    def _by_quota(self, gang: Gang) -> tuple[str, Reason] | None:
        space, fresh = gang.group.key.key.namespace, _to_be_made(gang)
        found = beyond(self._floor.trial.snapshot.limits.values(), space, plus(fresh, self._spaces.get(space, {})))
        if found is None:
            return None
        quota, short = found
        return (f"resource quota {quota.name} insufficient: insufficient {', '.join(sorted(short))}", Reason(
            Code.QUOTA_SHORT, least=gang.least, queue=gang.group.queue, quota=quota.name, short=short,
            ever=all(fresh[name] <= quota.hard[name] for name in short)))

    def _by_cluster(self, gang: Gang, account: Account, wanted: Amounts) -> tuple[str, Reason] | None:
        cluster, factor = self._floor.cluster, self._floor.settings.overcommit
        taken = plus(self._promised, self._used)
        if over := self._over(wanted, taken):
            taken = minus(taken, _could_be_freed(self._floor, gang, account))
            over = self._over(wanted, taken)
        if not over:
            return None
        # The factor is Volcano's business; what people lack is what is really not there.
        short = {name: wanted[name] + taken.get(name, 0) - cluster.get(name, 0) for name in over}
        return (f"resource in cluster is overused: overused {', '.join(over)}", Reason(
            Code.CLUSTER_FULL, least=gang.least, queue=account.queue.name, short=short,
            nodes=len(self._floor.trial.snapshot.nodes), holders=holders(self._floor, gang, over),
            ever=all(amount <= cluster.get(name, 0) * factor for name, amount in wanted.items())))

    def _over(self, wanted: Amounts, taken: Amounts) -> list[str]:
        cluster, factor = self._floor.cluster, self._floor.settings.overcommit
        return sorted(name for name, amount in wanted.items()
                      if amount + taken.get(name, 0) > int(cluster.get(name, 0) * factor))


def _promised(floor: Floor) -> dict[str, int]:
    """What was promised to groups that are let in; to those whose pods may use some nodes only, no more than these
    nodes can give."""
    pools: dict[frozenset[str] | None, dict[str, int]] = {}
    known: dict[Demands, frozenset[str] | None] = {}      # the same for all jobs of one sort
    for gang in floor.restless:
        if gang.promised:
            demands = gang.pods[0].demands
            if demands not in known:
                known[demands] = _pool(floor, demands)
            add(pools.setdefault(known[demands], {}), gang.promised)
    nodes, factor = floor.trial.snapshot.nodes, floor.settings.overcommit
    promised = pools.pop(None, {})
    for pool, amounts in pools.items():
        assert pool is not None
        offers = total(nodes[name].offers for name in pool)
        used = total(minus(nodes[name].offers, nodes[name].idle) for name in pool)
        add(promised, {name: min(amount, max(int(offers.get(name, 0) * factor) - used.get(name, 0), 0))
                       for name, amount in amounts.items()})
    return promised


def _pool(floor: Floor, demands: Demands) -> frozenset[str] | None:
    """The nodes that pods ask for by their labels; None if they take any."""
    if demands.node_terms is None and not demands.node_selector.requirements:
        return None
    return frozenset(name for name, node in floor.trial.snapshot.nodes.items() if not filters.by_nature(demands, node))


def _could_be_freed(floor: Floor, gang: Gang, account: Account) -> dict[str, int]:
    """What would go for this gang if its pods were there: lesser gangs of its queue, and what other queues have beyond
    what they deserve, as far as its own deserves it."""
    freed: dict[str, int] = {}
    if floor.settings.preempt:
        for other in floor.gangs:
            if floor.account(other) is account and other.priority < gang.priority:
                add(freed, total(pod.requests for pod in other.pods if pod.state in ALLOCATED and pod.preemptable))
    if floor.settings.reclaim:
        lent = total({name: max(amount - other.deserved.get(name, 0), 0) for name, amount in other.allocated.items()}
                     for (dialect, _), other in floor.accounts.items()
                     if dialect == gang.group.key.dialect and other is not account and other.leaf
                     and other.queue.reclaimable)
        add(freed, {name: min(amount, max(account.deserved.get(name, 0) - account.allocated.get(name, 0), 0))
                    for name, amount in lent.items()})
    return freed


def _to_be_made(gang: Gang) -> dict[str, int]:
    """What the pods that are still to be made would add to the use of a quota."""
    left = minus(gang.group.wanted or {}, total(pod.requests for pod in gang.pods))
    return {**{name: max(amount, 0) for name, amount in left.items()},
            PODS: max(gang.least - len(gang.pods), 0) * ONE}


def _narrow(account: Account, wanted: Amounts) -> tuple[Account, dict[str, int]] | None:
    """The queue, it or one above it, whose capability is too small for what is wanted, and by how much."""
    for each in account.path:
        over = {name: amount + each.allocated.get(name, 0) + each.inqueue.get(name, 0) - (each.ceiling or {})[name]
                for name, amount in wanted.items()
                if name in (each.ceiling or {}) and name in (each.queue.capability or {})}
        if short := {name: amount for name, amount in over.items() if amount > 0}:
            return each, short
    return None
