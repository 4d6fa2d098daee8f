"""What a namespace may still have by its ResourceQuotas, as far as it matters for letting a gang in.

The API server refuses each pod that is over a quota, one by one, so that a gang let in without looking could be made by
half. Looked at before, it waits whole and says for what. Quotas for some pods only (scopes) are left to the server.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trainmaster.api.meta import Object, name_of, namespace_of
from trainmaster.cluster.scheduler.amounts import PODS, Amounts, amounts

REQUESTS, COUNT_PODS = "requests.", "count/pods"


@dataclass(frozen=True, slots=True)
class Limit:
    """One ResourceQuota."""

    name: str
    namespace: str
    hard: Amounts
    used: Amounts

    def short(self, wanted: Amounts) -> dict[str, int]:
        """What is missing of it."""
        found = {name: amount + self.used.get(name, 0) - self.hard[name]
                 for name, amount in wanted.items() if name in self.hard}
        return {name: amount for name, amount in found.items() if amount > 0}


def read_limit(raw: Object) -> Limit | None:
    """None for one that is about some pods only."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    return Limit(name_of(raw), namespace_of(raw), _asked(spec.get("hard")), _asked(status.get("used")))


def _asked(listed: Object | None) -> dict[str, int]:
    """The amounts that pods ask for, by the names that pods use; the strictest where one is listed twice."""
    found: dict[str, int] = {}
    for name, amount in amounts(listed).items():
        plain = PODS if name == COUNT_PODS else name.removeprefix(REQUESTS)
        if "/" in plain and plain.startswith("count/"):
            continue
        found[plain] = min(amount, found.get(plain, amount))
    return found


def beyond(limits: Iterable[Limit], namespace: str, wanted: Amounts) -> tuple[Limit, dict[str, int]] | None:
    """The first quota of a namespace that has not so much left, and what it lacks."""
    for limit in sorted((each for each in limits if each.namespace == namespace), key=lambda each: each.name):
        if short := limit.short(wanted):
            return limit, short
    return None
