"""What each queue may have: shares by weight, or what each was promised, down a tree; and the order in which they are
served.

Four ways. By weight: the water-filling of Volcano's proportion plugin, with one thing done better: a part of a GPU is
of no use to anybody, so what cannot be divided is handed out in whole pieces (largest remainder first, then in the
order of the queues). By promise, as soon as a queue says what it deserves or names a parent (the capacity plugin): a
queue may borrow up to its capability and gives back down to what it deserves. By quota (T9k): a queue may have its
quota. By dominant share down a hierarchy that annotations draw (Volcano's drf with a hierarchy): limits are the
capabilities, and whoever has least of what its place in the hierarchy weighs is served next. Which way is read off the
queues; a switch that has to agree with them was rejected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from trainmaster.cluster.scheduler.amounts import ONE, PODS, Amounts, add, minus, plus, total
from trainmaster.cluster.scheduler.snapshot import Queue

DIVISIBLE = frozenset({"cpu", "memory", "ephemeral-storage"})
ROOT = "root"           # above all others; says nothing itself
LAST = float("inf")


class Sharing(Enum):
    WEIGHT = auto()
    PROMISE = auto()
    QUOTA = auto()
    HIERARCHY = auto()


@dataclass(slots=True, eq=False)
class Account:
    """A queue while a decision is made."""

    queue: Queue
    request: dict[str, int] = field(default_factory=dict)        # what its pods hold or want
    allocated: dict[str, int] = field(default_factory=dict)
    inqueue: dict[str, int] = field(default_factory=dict)        # promised to groups that may make their pods
    deserved: dict[str, int] = field(default_factory=dict)       # what it can claim back from others
    most: Mapping[str, int] = field(default_factory=dict)        # what it may have now
    ceiling: Mapping[str, int] | None = None                     # what it can ever have; unlisted is unlimited
    above: "Account | None" = None
    leaf: bool = True
    sharing: Sharing = Sharing.WEIGHT

    @property
    def line(self) -> Iterator["Account"]:
        """It and those above it."""
        account: Account | None = self
        while account is not None:
            yield account
            account = account.above

    @property
    def path(self) -> "tuple[Account, ...]":
        """The same from the top down."""
        return tuple(self.line)[::-1]

    @property
    def open(self) -> bool:
        return all(account.queue.open for account in self.line)

    def refuses(self, wanted: Amounts) -> "tuple[Account, str] | None":
        """The first resource of which the queue, or one above it, may not have so much. The upper is blamed first."""
        for account in self.path:
            for name, amount in wanted.items():
                if name != PODS and amount and account.allocated.get(name, 0) + amount > account.most.get(name, 0):
                    return account, name
        return None

    @property
    def overused(self) -> bool:
        """It has all that it may have, of everything that it may have anything of."""
        there = [(name, amount) for name, amount in self.most.items() if amount and name != PODS]
        return bool(there) and all(self.allocated.get(name, 0) >= amount for name, amount in there)

    @property
    def share(self) -> float:
        return share_of(self, self.allocated)

    @property
    def order(self) -> tuple[tuple[int, float, str, str], ...]:
        """From the top of the tree down: a whole branch comes before another."""
        return tuple((-account.queue.priority, account.share, account.queue.created, account.queue.name)
                     for account in self.path)


def share_of(account: Account, held: Amounts) -> float:
    """The dominant share of a queue that has so much."""
    there = [(name, amount) for name, amount in account.deserved.items() if amount and name != PODS]
    nothing = LAST if account.sharing is Sharing.PROMISE else 0.0
    return max((held.get(name, 0) / amount for name, amount in there), default=nothing)


def settle(accounts: Iterable[Account], cluster: Amounts, *, quotas: bool = False) -> None:
    """What each of these queues, all of one dialect, deserves and may have. `quotas`: these are T9k's."""
    there = list(accounts)
    sharing = _sharing(there, quotas=quotas)
    for account in there:
        account.sharing = sharing
    if sharing is Sharing.PROMISE:
        _link(there)
    if sharing is Sharing.HIERARCHY:
        _grow(there, cluster)
    for account in sorted(there, key=lambda each: sum(1 for _ in each.line)):
        account.ceiling = _ceiling(account, cluster, there)
    if sharing is Sharing.WEIGHT:
        deserve([account for account in there if account.request], cluster)
        return
    for account in there:
        account.most = account.ceiling or {}
        if sharing is Sharing.QUOTA:      # without a quota it is measured by the cluster
            account.deserved = {**account.most, **(account.queue.capability or {})}
        elif sharing is Sharing.PROMISE:
            account.deserved = dict(_sum_of(account, there, "deserved") or {})


def copies(accounts: Iterable[Account]) -> dict[str, Account]:
    """The same queues with the same pods, to be settled for another cluster. Sums are made anew."""
    return {account.queue.name: Account(account.queue, dict(account.request), dict(account.allocated))
            if account.leaf else Account(account.queue) for account in accounts}


def _sharing(accounts: list[Account], *, quotas: bool) -> Sharing:
    if quotas:
        return Sharing.QUOTA
    if any(account.queue.levels for account in accounts):
        return Sharing.HIERARCHY
    return Sharing.PROMISE if any(map(_promised, accounts)) else Sharing.WEIGHT


def _promised(account: Account) -> bool:
    return account.queue.deserved is not None or account.queue.parent not in {"", ROOT}


def _link(accounts: list[Account]) -> None:
    """Make the tree, and sum the lower queues into those above them. A parent that is not there, or that would close a
    circle, is no parent."""
    by_name = {account.queue.name: account for account in accounts}
    for account in accounts:
        parent = by_name.get(account.queue.parent) if account.queue.parent != ROOT else None
        if parent is not None and all(above is not account for above in parent.line):
            account.above = parent
            parent.leaf = False
    _sum_up(accounts)


def _grow(accounts: list[Account], cluster: Amounts) -> None:
    """Make the hierarchy that the queues' annotations draw. What each place in it is measured by is the whole cluster
    times its weight, so that its share is the weighted dominant share."""
    inner: dict[str, Account] = {}
    for account in accounts:
        *upper, (_, weight) = account.queue.levels or ((account.queue.name, 1.0),)
        place, above = "", None
        for name, heavy in upper:
            place += f"/{name}"
            if place not in inner:
                inner[place] = Account(Queue(place), deserved=_weighed(cluster, heavy), most=cluster, above=above,
                                       sharing=Sharing.HIERARCHY)
            above = inner[place]
        account.above, account.deserved = above, _weighed(cluster, weight)
    _sum_up(accounts)


def _weighed(cluster: Amounts, weight: float) -> dict[str, int]:
    return {name: round(amount * weight) for name, amount in cluster.items()}


def _sum_up(accounts: list[Account]) -> None:
    own = [(account, dict(account.request), dict(account.allocated), dict(account.inqueue)) for account in accounts]
    for account, request, allocated, inqueue in own:
        for above in account.line:
            if above is not account:
                add(above.request, request)
                add(above.allocated, allocated)
                add(above.inqueue, inqueue)


def _children(account: Account, accounts: Iterable[Account]) -> list[Account]:
    return [each for each in accounts if each.above is account]


def _sum_of(account: Account, accounts: list[Account], what: str) -> Amounts | None:
    """What a queue says of itself, or what those below it say together."""
    own: Amounts | None = getattr(account.queue, what)
    if own is not None:
        return own
    below = [_sum_of(child, accounts, what) or {} for child in _children(account, accounts)]
    return total(below) if below else None


def _ceiling(account: Account, cluster: Amounts, accounts: list[Account]) -> dict[str, int]:
    """What a queue can ever have: its capability, what the one above may have, and never what is guaranteed to others
    beside it."""
    above = account.above
    free = dict(cluster if above is None or above.ceiling is None else above.ceiling)
    for other in accounts:
        if other is not account and other.above is above:
            promised = _sum_of(other, accounts, "guarantee") or {}
            free = minus(free, {name: amount for name, amount in promised.items() if name in free})
    capability = account.queue.capability or {}
    return {name: max(min(amount, capability.get(name, amount)), 0) for name, amount in free.items()}


def deserve(accounts: Iterable[Account], cluster: Amounts) -> None:
    """Share the cluster out among the queues that have jobs, by weight, none more than it wants or can have."""
    there = sorted(accounts, key=lambda account: (-account.queue.priority, account.queue.created, account.queue.name))
    for account in there:
        limits = account.ceiling if account.ceiling is not None else cluster
        account.deserved = {name: 0 for name in cluster if name in limits}
        account.most = account.deserved
    for name, amount in cluster.items():
        _fill(there, name, amount)


def _fill(accounts: list[Account], name: str, amount: int) -> None:
    """Share out one resource: those whose fair part is below what they are guaranteed get that, the others the rest."""
    wants = {account: _most(account, name) for account in accounts}
    given = dict.fromkeys(accounts, 0)
    floors = {account: min(wants[account], (account.queue.guarantee or {}).get(name, 0)) for account in accounts}
    left, pool = amount, [account for account in accounts if wants[account]]
    while raised := [account for account in pool if floors[account]
                     and floors[account] * sum(each.queue.weight for each in pool) >= left * account.queue.weight]:
        for account in raised:
            given[account] = floors[account]
            left -= floors[account]
            pool.remove(account)
    left = _pour(pool, name, left, wants, given)
    _pour([account for account in accounts if given[account] < wants[account]], name, left, wants, given)
    for account in accounts:
        account.deserved[name] = given[account]


def _pour(hungry: list[Account], name: str, left: int, wants: Mapping[Account, int], given: dict[Account, int]) -> int:
    """By weight, until all have what they want or nothing is left; what is left."""
    while left > 0 and hungry:
        parts = _parts(hungry, name, left, sum(account.queue.weight for account in hungry))
        before = left
        for account in hungry:
            part = min(parts[account], wants[account] - given[account])
            given[account] += part
            left -= part
        hungry = [account for account in hungry if given[account] < wants[account]]
        if left == before:
            break
    return left


def _most(account: Account, name: str) -> int:
    wanted = account.request.get(name, 0)
    return min(wanted, account.ceiling.get(name, wanted)) if account.ceiling is not None else wanted


def _parts(hungry: list[Account], name: str, left: int, weights: int) -> dict[Account, int]:
    exact = {account: left * account.queue.weight for account in hungry}      # in parts of `weights`
    if name in DIVISIBLE:
        return {account: amount // weights for account, amount in exact.items()}
    whole = {account: amount // weights // ONE * ONE for account, amount in exact.items()}
    spare = left // ONE * ONE - sum(whole.values())
    # Largest remainder first; `hungry` is in the order of the queues, and sorting keeps it among equals.
    for account in sorted(hungry, key=lambda each: -(exact[each] - whole[each] * weights)):
        if spare <= 0:
            break
        whole[account] += ONE
        spare -= ONE
    return whole


def charge(account: Account, amounts: Amounts) -> None:
    for each in account.line:
        each.allocated = plus(each.allocated, amounts)


def refund(account: Account, amounts: Amounts) -> None:
    for each in account.line:
        each.allocated = minus(each.allocated, amounts)
