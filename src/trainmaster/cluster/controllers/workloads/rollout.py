"""From one revision of a Deployment to the next: which sets grow and shrink, by how much. Pure.

The rules are those of Kubernetes: never more pods than replicas plus surge, never fewer available than replicas less
what may be missing; old pods that do not work go first. A step is taken on what the sets report, so the next is taken
when they report again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from trainmaster.api.meta import Json, Object, being_deleted, metadata, name_of
from trainmaster.cluster.controllers.workloads import revisions
from trainmaster.cluster.controllers.workloads.pods import created
from trainmaster.cluster.controllers.workloads.replicas import wanted


@dataclass(slots=True)
class Sizes:
    """The sets of a deployment while a step is decided."""

    deployment: Object
    new: Object | None
    old: list[Object]                       # oldest first
    creates: Object | None = None           # the new set, if it is to be made
    sizes: dict[str, int] = field(default_factory=dict)      # by name, of those that are to be set
    deletes: list[Object] = field(default_factory=list)

    @property
    def replicas(self) -> int:
        return wanted(self.deployment)

    @property
    def all(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new else [])]

    def size(self, one: Object) -> int:
        return self.sizes.get(name_of(one), wanted(one))

    def total(self, sets: Iterable[Object]) -> int:
        return sum(map(self.size, sets))

    def active(self, sets: Iterable[Object]) -> list[Object]:
        return [one for one in sets if self.size(one) > 0]

    def resize(self, one: Object, size: int) -> None:
        self.sizes[name_of(one)] = size


def bounds(deployment: Object) -> tuple[int, int]:
    """How many pods may be there beyond the replicas, and how many may be missing."""
    replicas, strategy = wanted(deployment), deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate" or not replicas:
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), replicas, up=True)
    missing = _share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    if not surge and not missing:
        missing = 1      # shares that round to nothing must not stop everything
    return surge, min(missing, replicas)


def decide(deployment: Object, sets: Sequence[Object]) -> Sizes:
    """The next step of a deployment that is not being deleted."""
    new = revisions.newest(deployment, sets)
    old = sorted((one for one in sets if new is None or name_of(one) != name_of(new)), key=created)
    step = Sizes(deployment, new, old)
    if deployment["spec"].get("paused"):
        _scale(step)
        _clean(step)
    elif _is_resized(step):
        _scale(step)
    elif (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        _recreate(step)
    else:
        _roll(step)
    return step


def is_complete(deployment: Object, status: Object) -> bool:
    replicas = wanted(deployment)
    counts = [int(status.get(name) or 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    seen = int(status.get("observedGeneration") or 0) >= int(metadata(deployment).get("generation") or 0)
    return counts == [replicas] * 3 and seen


def available(sets: Iterable[Object]) -> int:
    return _sum(sets, "availableReplicas")


def _sum(sets: Iterable[Object], name: str) -> int:
    return sum(int((one.get("status") or {}).get(name) or 0) for one in sets)


def _roll(step: Sizes) -> None:
    if step.new is None:
        step.new = step.creates = revisions.made(step.deployment, step.old)
        _grow_new(step)
        return
    if _grow_new(step) or _shrink_old(step):
        return
    if is_complete(step.deployment, step.deployment.get("status") or {}):
        _clean(step)


def _grow_new(step: Sizes) -> bool:
    """Size the new set, up as far as the surge allows; whether there was something to do."""
    new = step.new
    assert new is not None, "a set is made before it grows"
    has = step.size(new)
    if has == step.replicas:
        return False
    size = step.replicas
    if has < size:
        surge, _ = bounds(step.deployment)
        room = step.replicas + surge - step.total(step.all)
        size = has if room <= 0 else has + min(room, step.replicas - has)
    if size == has:
        return False
    step.resize(new, size)
    return True


def _shrink_old(step: Sizes) -> bool:
    active, new = step.active(step.old), step.new
    assert new is not None, "old sets shrink when the new one is there"
    if not active:
        return False
    _, missing = bounds(step.deployment)
    least = step.replicas - missing
    may_go = step.total(step.all) - least - (step.size(new) - available([new]))
    if may_go <= 0:
        return False
    done = 0
    for one in active:                       # those that do not work anyway
        broken = step.size(one) - available([one])
        if done < may_go and broken > 0:
            less = min(may_go - done, broken)
            step.resize(one, step.size(one) - less)
            done += less
    spare = available(step.all) - least
    for one in active:
        if spare > 0 and step.size(one):
            less = min(step.size(one), spare)
            step.resize(one, step.size(one) - less)
            spare, done = spare - less, done + less
    return done > 0


def _recreate(step: Sizes) -> None:
    active = step.active(step.old)
    for one in active:
        step.resize(one, 0)
    if active or _sum(step.old, "replicas") or _sum(step.old, "terminatingReplicas"):
        return      # one revision at a time: the pods of the old one must be gone
    if step.new is None:
        step.new = step.creates = revisions.made(step.deployment, step.old)
    if step.size(step.new) != step.replicas:
        step.resize(step.new, step.replicas)
    elif is_complete(step.deployment, step.deployment.get("status") or {}):
        _clean(step)


def _is_resized(step: Sizes) -> bool:
    """Whether the deployment has another number of replicas than when its sets were sized."""
    return any(revisions.desired(one) not in (None, step.replicas) for one in step.active(step.all))


def _scale(step: Sizes) -> None:
    """Take a new number of replicas to the sets; while a rollout is under way, to each its share."""
    active = step.active(step.all)
    if len(active) <= 1:
        one = active[0] if active else step.new or (step.old[-1] if step.old else None)
        if one is not None:
            step.resize(one, step.replicas)
    elif _is_saturated(step):
        for old in step.active(step.old):
            step.resize(old, 0)
    elif (step.deployment["spec"].get("strategy") or {}).get("type") != "Recreate":
        _share_out(step, active)


def _is_saturated(step: Sizes) -> bool:
    new = step.new
    return new is not None and revisions.desired(new) == step.size(new) == available([new]) == step.replicas


def _share_out(step: Sizes, active: list[Object]) -> None:
    surge, _ = bounds(step.deployment)
    more = (step.replicas + surge if step.replicas else 0) - step.total(active)
    # The largest get the rest; of equals, those that grow are the younger ones, those that shrink the older.
    by_age = sorted(active, key=created, reverse=more > 0)
    ordered = sorted(by_age, key=step.size, reverse=True)
    added = 0
    for one in ordered:
        part = _part(step, one, surge) if more and more != added else 0
        part = min(part, more - added) if more > 0 else max(part, more - added)
        step.resize(one, step.size(one) + part)
        added += part
    step.resize(ordered[0], max(0, step.size(ordered[0]) + more - added))


def _part(step: Sizes, one: Object, surge: int) -> int:
    """By how much a set grows or shrinks if all keep their proportions."""
    size = step.size(one)
    if not step.replicas:
        return -size
    before = revisions.most(one) or int((step.deployment.get("status") or {}).get("replicas") or 0)
    return floor(size * (step.replicas + surge) / before + 0.5) - size if before else 0


def _clean(step: Sizes) -> None:
    """Forget the oldest revisions that nobody keeps."""
    limit = step.deployment["spec"].get("revisionHistoryLimit")
    left = [one for one in step.old if not being_deleted(one)]
    if limit is None or len(left) <= limit:
        return
    for one in sorted(left, key=revisions.revision)[: len(left) - limit]:
        status = one.get("status") or {}
        seen = int(status.get("observedGeneration") or 0) >= int(metadata(one).get("generation") or 0)
        if not step.size(one) and not status.get("replicas") and seen:
            step.deletes.append(one)


def _share(value: Json, whole: int, *, up: bool) -> int:
    if isinstance(value, str):
        exact = int(value.removesuffix("%")) * whole / 100
        return ceil(exact) if up else floor(exact)
    return int(value or 0)
