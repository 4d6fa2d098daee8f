"""Whether quotas have room for an object, and what they say afterwards. Pure.

Words of refusals are those of Kubernetes, to the letter: people search for them, and programs match them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from trainmaster.api.meta import Object, Resource, name_of
from trainmaster.cluster.quota import amounts, scopes
from trainmaster.cluster.quota.amounts import NONE, Amounts
from trainmaster.cluster.quota.usage import NAMED, container_usage, names_of, usage


class Exceeded(Exception):
    """A quota does not take the object. The message says which and why; `quota` is its name."""

    def __init__(self, quota: Object, message: str) -> None:
        super().__init__(message)
        self.quota = name_of(quota)


def charged(
    quotas: Iterable[Object], resource: Resource, thing: Object, old: Object | None, now: datetime
) -> list[Object]:
    """The quotas that change, with what they have used then. `old` is the object before an update. Raises Exceeded."""
    interested = [(quota, names) for quota in quotas if (names := _interest(quota, resource, thing))]
    for quota, names in interested:
        _check_named(quota, resource, thing, names)
        known = (quota.get("status") or {}).get("used") or {}
        if any(name not in known for name in names):
            raise Exceeded(quota, f"status unknown for quota: {name_of(quota)}, resources: {','.join(sorted(names))}")
    if not interested:
        return []
    more = usage(resource, thing, now)
    if old is not None:
        more = amounts.minus(more, usage(resource, old, now))
    more = {name: each for name, each in more.items() if each.value}
    return [changed for quota, names in interested if (changed := _taken(quota, amounts.only(more, names))) is not None]


def counted(quota: Object, found: Iterable[tuple[Resource, Sequence[Object]]], now: datetime) -> Object:
    """The status of a quota, from all objects of the kinds that it counts."""
    status, hard = quota.get("status") or {}, (quota.get("spec") or {}).get("hard") or {}
    used = amounts.read(status.get("used"))
    for resource, things in found:
        total: Amounts = dict.fromkeys(names_of(resource, hard), NONE)
        for thing in things:
            if scopes.covers(quota, resource, thing):
                own = usage(resource, thing, now)
                total |= {name: total[name].plus(each) for name, each in own.items() if name in total}
        used |= total
    return {"hard": dict(hard), "used": amounts.shown(amounts.only(used, sorted(hard)))}


def _interest(quota: Object, resource: Resource, thing: Object) -> list[str]:
    """The names under which a quota counts this object. Its status says so: the spec may not be in force yet."""
    hard = (quota.get("status") or {}).get("hard") or {}
    names = names_of(resource, hard)
    return names if names and scopes.covers(quota, resource, thing) else []


def _check_named(quota: Object, resource: Resource, thing: Object, names: Sequence[str]) -> None:
    """Each container must say how much of a limited resource it wants; nobody else can."""
    wanted = NAMED.intersection(names)
    if resource.group or resource.plural != "pods" or not wanted:
        return
    spec = thing.get("spec") or {}
    whole = container_usage(spec.get("resources") or {}).keys()
    missing: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for name in wanted - container_usage(container.get("resources") or {}).keys() - whole:
            missing.setdefault(name, set()).add(str(container.get("name")))
    if missing:
        told = "; ".join(f"{name} for: {','.join(sorted(who))}" for name, who in sorted(missing.items()))
        raise Exceeded(quota, f"failed quota: {name_of(quota)}: must specify {told}")


def _taken(quota: Object, more: Amounts) -> Object | None:
    if not more:
        return None
    status = quota["status"]
    used, hard = amounts.read(status["used"]), amounts.read(status["hard"])
    after = amounts.plus(used, more)
    over = [name for name in more if after[name].value > hard[name].value]
    if over:
        asked, had, limit = (amounts.listed(amounts.only(each, over)) for each in (more, used, hard))
        raise Exceeded(
            quota, f"exceeded quota: {name_of(quota)}, requested: {asked}, used: {had}, limited: {limit}"
        )
    return {**quota, "status": {**status, "used": amounts.shown(after)}}
