"""The state of a decision about groups: all gangs, all queues with what they hold, and one trial.

What `allocate` and `victims` share.
"""

from collections.abc import Generator, Iterator
from datetime import datetime

from trainmaster.api.meta import moment
from trainmaster.cluster.scheduler import census, dialects, queues, resting
from trainmaster.cluster.scheduler.amounts import add, minus, plus, total
from trainmaster.cluster.scheduler.gangs import INQUEUE, Gang, share
from trainmaster.cluster.scheduler.queues import Account
from trainmaster.cluster.scheduler.reasons import Reason
from trainmaster.cluster.scheduler.settings import Eviction, Settings, Verdict
from trainmaster.cluster.scheduler.snapshot import Group, GroupKey, Pod, Queue
from trainmaster.cluster.scheduler.trial import Trial

FOREVER = float("inf")


class Floor:
    """All gangs, all queues and one trial: the state of a decision about groups."""

    def __init__(self, trial: Trial, settings: Settings, now: datetime) -> None:
        self.trial = trial
        self.settings = settings
        self.now = now
        self.evictions: list[Eviction] = []
        self.sent: set[str] = set()      # UIDs of the pods that go for sure; the books of their queues know it
        self.why: dict[Gang, Reason] = {}
        self.cluster = total(node.offers for node in trial.snapshot.nodes.values())
        self.gangs: list[Gang] = []
        self.restless: list[Gang] = []            # those of them that this decision is about
        self.resting: dict[Gang, Verdict] = {}    # the others, and what was said about them
        self.leaving: set[Gang] = set()           # pods of these are sent away: they get nothing now
        self.by_key: dict[GroupKey, Gang] = {}
        self.accounts: dict[tuple[str, str], Account] = {}
        self.holders: dict[tuple[tuple[str, ...], Account | None], list[Gang]] = {}      # kept by `shortages`
        self._emptied: Trial | None = None
        self._empty_mark = 0

    def gather(self) -> Iterator[None]:
        """Take in all groups and queues, stopping after each: with thousands of pods this takes a while."""
        snapshot = self.trial.snapshot
        for (dialect, name), queue in snapshot.queues.items():
            self.accounts[dialect, name] = Account(queue)
        for group in snapshot.groups.values():
            if _implied(group):
                self.accounts.setdefault((group.key.dialect, group.queue), Account(Queue(group.queue)))
            gang = self.by_key[group.key] = self._gang(group)
            self.gangs.append(gang)
            if (account := self.account(gang)) is not None:
                wants = gang.group.wanted or {}
                can_be = all(amount <= self.cluster.get(name, 0) for name, amount in wants.items())
                _enter(gang, account, borrowing=self.settings.reclaim and can_be)
            yield
        by_dialect: dict[str, list[Account]] = {}
        for (dialect, _name), account in self.accounts.items():
            by_dialect.setdefault(dialect, []).append(account)
        for dialect, accounts in by_dialect.items():
            queues.settle(accounts, self.cluster, quotas=dialects.by_name(dialect) is dialects.T9K)
            yield

    def _gang(self, group: Group) -> Gang:
        """Where groups have no priority of their own (scheduler-plugins), that of their pods counts."""
        snapshot = self.trial.snapshot
        named = snapshot.queues.get((group.key.dialect, group.queue))
        found = census.taken(snapshot, group.key, named.nodes if named is not None else None)
        own = dialects.by_name(group.key.dialect) is not dialects.COSCHEDULING
        priority = snapshot.priority_of(group) if own else found.priority
        rest = resting.known(snapshot, group, found, priority)
        if rest is not None:
            self.resting[rest.gang] = rest.verdict
            return rest.gang
        gang = Gang(group, found, priority)
        self.restless.append(gang)
        return gang

    def without_others(self, gang: Gang) -> Generator[None, None, Trial]:
        """The cluster with none but this gang's pods of all that belong to gangs. The same trial is used for all, since
        there may be thousands of pods: whoever asks takes back what was tried before."""
        if self._emptied is None:
            self._emptied = Trial(self.trial.snapshot)
            for other in self.gangs:
                for pod in other.pods:
                    if pod.placed:
                        self._emptied.evict(pod)
                yield
            self._empty_mark = self._emptied.mark()
        self._emptied.back(self._empty_mark)
        for pod in gang.pods:
            if pod.placed:
                self._emptied.place(pod, pod.node)
        return self._emptied

    def account(self, gang: Gang) -> Account | None:
        return self.accounts.get((gang.group.key.dialect, gang.group.queue))

    def waited(self, gang: Gang) -> float:
        """Seconds since the group was made."""
        return (self.now - moment(gang.group.created)).total_seconds() if gang.group.created else 0.0

    def late(self, gang: Gang) -> bool:
        """Whether the time is over after which it was promised to be let in."""
        return gang.group.patience is not None and self.waited(gang) >= gang.group.patience

    def order(self, gang: Gang) -> tuple[object, ...]:
        """Who is tried first: the important, the damaged, those that do not run yet, those that were promised a start,
        those that have least, the oldest."""
        patience = gang.group.patience
        left = FOREVER if patience is None or gang.ready else patience - self.waited(gang)
        return (-gang.priority, not gang.damaged, gang.ready, left, share(gang.allocated, self.cluster),
                gang.group.created, gang.group.key.key, gang.group.uid)

    def account_of(self, pod: Pod) -> Account | None:
        """The queue that a running pod takes from."""
        gang = self.by_key.get(pod.group) if pod.group is not None else None
        return self.account(gang) if gang is not None else None


def _enter(gang: Gang, account: Account, *, borrowing: bool) -> None:
    """What a gang holds and wants, in the books of its queue; where queues take back what they lent, also what those
    want that may not make their pods yet."""
    there = gang.census
    for amounts in (there.held, there.wanted):
        add(account.request, amounts)
    add(account.allocated, there.held)
    if borrowing and gang.pending and not gang.pods:      # or nobody would give back what it is to be let in for
        add(account.request, gang.group.wanted or {})
    if gang.group.phase == INQUEUE and gang.group.wanted and not gang.idle:      # one without pods is asked about again
        rest = minus(minus(gang.group.wanted, gang.allocated), there.gated)      # the gated need no room yet
        gang.promised = {name: max(left, 0) for name, left in rest.items()}
        account.inqueue = plus(account.inqueue, gang.promised)


def _implied(group: Group) -> bool:
    """Whether its queue needs no object: where there are none, and the one that T9k's jobs are in by default."""
    dialect = dialects.by_name(group.key.dialect)
    return not dialect.queued or (dialect is dialects.T9K and group.queue == dialects.DEFAULT_QUEUE)
