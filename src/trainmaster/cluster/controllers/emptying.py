"""What is left of a namespace that is being deleted, and how its status says so. Pure.

Types and reasons of the conditions are those of Kubernetes; who waits for a namespace reads them there. One difference
on purpose: pods that remain are counted as content that remains. Kubernetes, which deletes them before everything else,
says that all content is removed while it waits for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.api.meta import Object, Resource, timestamp

# Of many problems the first few say what is wrong; a status has to stay small.
MOST_TOLD = 10


@dataclass(frozen=True, slots=True)
class Remains:
    """What one look found: how many objects of each kind, which finalizers hold how many, what went wrong."""

    objects: Mapping[Resource, int] = field(default_factory=dict)
    finalizers: Mapping[str, int] = field(default_factory=dict)
    undiscovered: Mapping[str, str] = field(default_factory=dict)     # group and version -> why
    failures: Sequence[str] = ()

    @property
    def nothing(self) -> bool:
        return not (self.objects or self.undiscovered or self.failures)

    @property
    def troubled(self) -> bool:
        """Whether to look again by ourselves, since no event will tell when the trouble is over."""
        return bool(self.undiscovered or self.failures)


def combined(parts: Iterable[Remains]) -> Remains:
    objects: Counter[Resource] = Counter()
    finalizers: Counter[str] = Counter()
    undiscovered: dict[str, str] = {}
    failures: list[str] = []
    for part in parts:
        objects.update(part.objects)
        finalizers.update(part.finalizers)
        undiscovered.update(part.undiscovered)
        failures += part.failures
    return Remains(objects, finalizers, undiscovered, failures)


def conditions(found: Remains, before: Sequence[Object], now: datetime) -> list[Object]:
    """All conditions of the namespace, those of others included. Moments change only with the truth."""
    kept = {condition["type"]: condition for condition in before}
    for type_, status, reason, message in _judged(found):
        was = kept.get(type_)
        same = was is not None and was.get("status") == status
        since = was.get("lastTransitionTime") if was is not None and same else timestamp(now)
        kept[type_] = {
            "type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
        }
    return list(kept.values())


def _judged(found: Remains) -> Iterable[tuple[str, str, str, str]]:
    yield _one(
        "NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "Every kind of object is known",
        "DiscoveryFailed", [f"{place}: {why}" for place, why in found.undiscovered.items()],
        "{count} of the API groups cannot be asked which kinds they have: {list}",
    )
    # Ours are parsed before they get here; the condition is one that people wait for.
    yield _one(
        "NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "Every group and version is understood",
        "GroupVersionParsingFailed", [], "",
    )
    yield _one(
        "NamespaceDeletionContentFailure", "ContentDeleted",
        "The deletion of all objects was accepted; some may still be ending",
        "ContentDeletionFailed", found.failures, "{count} kinds could not be deleted: {list}",
    )
    yield _one(
        "NamespaceContentRemaining", "ContentRemoved", "No object is left",
        "SomeResourcesRemain",
        [f"{_named(kind)} has {count} resource instances" for kind, count in found.objects.items()],
        "Objects are left: {list}",
    )
    yield _one(
        "NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "No object is held back by a finalizer",
        "SomeFinalizersRemain",
        [f"{name} in {count} resource instances" for name, count in found.finalizers.items()],
        "Finalizers hold objects back: {list}",
    )


def _one(
    type_: str, good: str, all_is_well: str, bad: str, problems: Sequence[str], sentence: str
) -> tuple[str, str, str, str]:
    if not problems:
        return type_, "False", good, all_is_well
    told = sorted(problems)[:MOST_TOLD]
    more = f", and {len(problems) - MOST_TOLD} more" if len(problems) > MOST_TOLD else ""
    return type_, "True", bad, sentence.format(count=len(problems), list=", ".join(told) + more)


def _named(resource: Resource) -> str:
    """As in `kubectl api-resources`, with the dot that Kubernetes leaves behind a kind of the core group."""
    return f"{resource.plural}.{resource.group}"
