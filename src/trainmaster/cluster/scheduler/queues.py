"""What each queue may have: deserved shares by weight, in whole devices, and the order in which queues are served.

The water-filling of Volcano's proportion plugin, with one thing done better: a part of a GPU is of no use to anybody,
so what cannot be divided is handed out in whole pieces (largest remainder first, then in the order of the queues).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.cluster.scheduler.amounts import ONE, PODS, Amounts, minus, plus
from trainmaster.cluster.scheduler.snapshot import Queue

DIVISIBLE = frozenset({"cpu", "memory", "ephemeral-storage"})


@dataclass(slots=True, eq=False)
class Account:
    """A queue while a decision is made."""

    queue: Queue
    request: dict[str, int] = field(default_factory=dict)        # what its pods hold or want
    allocated: dict[str, int] = field(default_factory=dict)
    inqueue: dict[str, int] = field(default_factory=dict)        # promised to groups that may make their pods
    deserved: dict[str, int] = field(default_factory=dict)
    ceiling: Mapping[str, int] | None = None                     # what it can ever have; unlisted is unlimited

    def allows(self, wanted: Amounts) -> str:
        """The first resource of which the queue may not have so much, or nothing."""
        for name, amount in wanted.items():
            if name != PODS and amount and self.allocated.get(name, 0) + amount > self.deserved.get(name, 0):
                return name
        return ""

    @property
    def overused(self) -> bool:
        """It has all that it deserves, of everything that it deserves anything of."""
        there = [(name, amount) for name, amount in self.deserved.items() if amount and name != PODS]
        return bool(there) and all(self.allocated.get(name, 0) >= amount for name, amount in there)

    @property
    def share(self) -> float:
        there = [(name, amount) for name, amount in self.deserved.items() if amount and name != PODS]
        return max((self.allocated.get(name, 0) / amount for name, amount in there), default=0.0)

    @property
    def order(self) -> tuple[int, float, str, str]:
        return (-self.queue.priority, self.share, self.queue.created, self.queue.name)


def ceiling(account: Account, cluster: Amounts, others: Iterable[Queue]) -> dict[str, int]:
    """What a queue can ever have: its capability, and never what is guaranteed to others."""
    free = dict(cluster)
    for other in others:
        if other is not account.queue:
            free = minus(free, {name: amount for name, amount in (other.guarantee or {}).items() if name in free})
    capability = account.queue.capability or {}
    return {name: min(amount, capability.get(name, amount)) for name, amount in free.items()}


def deserve(accounts: Iterable[Account], cluster: Amounts) -> None:
    """Share the cluster out among the queues that have jobs, by weight, none more than it wants or can have."""
    there = sorted(accounts, key=lambda account: (-account.queue.priority, account.queue.created, account.queue.name))
    for account in there:
        limits = account.ceiling if account.ceiling is not None else cluster
        account.deserved = {name: 0 for name in cluster if name in limits}
    for name, amount in cluster.items():
        _fill(there, name, amount)


def _fill(accounts: list[Account], name: str, amount: int) -> None:
    """Share out one resource."""
    wants = {account: _most(account, name) for account in accounts}
    given = {account: min(wants[account], (account.queue.guarantee or {}).get(name, 0)) for account in accounts}
    left = amount - sum(given.values())
    hungry = [account for account in accounts if given[account] < wants[account]]
    while left > 0 and hungry:
        weights = sum(account.queue.weight for account in hungry)
        parts = _parts(hungry, name, left, weights)
        before = left
        for account in hungry:
            part = min(parts[account], wants[account] - given[account])
            given[account] += part
            left -= part
        hungry = [account for account in hungry if given[account] < wants[account]]
        if left == before:
            break
    for account in accounts:
        account.deserved[name] = given[account]


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
    account.allocated = plus(account.allocated, amounts)


def refund(account: Account, amounts: Amounts) -> None:
    account.allocated = minus(account.allocated, amounts)
