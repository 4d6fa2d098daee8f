"""The group of a job: its name, its size, what it needs in all, and the marks by which its pods belong to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.api.policy import SchedulingPolicy
from trainmaster.gang.dialects import Dialect, Field

NO_POLICY = SchedulingPolicy()


@dataclass(frozen=True, slots=True)
class Part:
    """The members of one role."""

    word: str                # the role in names and labels
    replicas: int
    template: Object

    @property
    def spec(self) -> Object:
        return self.template.get("spec") or {}


@dataclass(frozen=True, slots=True)
class Gang:
    """A job as its scheduler sees it. The parts come with the role that matters most first."""

    job: str
    parts: tuple[Part, ...]
    policy: SchedulingPolicy = NO_POLICY

    @property
    def size(self) -> int:
        return sum(part.replicas for part in self.parts)

    @property
    def least(self) -> int:
        """How many pods must fit together."""
        return self.size if self.policy.min_available is None else self.policy.min_available


@dataclass(frozen=True, slots=True)
class Marks:
    """What a pod says about its group."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scheduler: str


def users_group(gang: Gang, spoken: Dialect) -> str:
    """The group that the user has put the pods into; empty if none. It is theirs: we make no other and change nothing.

    Upstream overwrites the name, so that pods leave the group that was made for them.
    """
    for part in gang.parts:
        meta = part.template.get("metadata") or {}
        for where, key in (("annotations", spoken.group_annotation), ("labels", spoken.group_label)):
            if key and (named := (meta.get(where) or {}).get(key)):
                return str(named)
    return ""


def name(gang: Gang, spoken: Dialect) -> str:
    return users_group(gang, spoken) or gang.job


def marks(gang: Gang, spoken: Dialect, part: Part) -> Marks:
    group = name(gang, spoken)
    labels = {spoken.group_label: group, spoken.role_label: part.word, spoken.queue_label: queue(gang, spoken)}
    annotations = {spoken.group_annotation: group, spoken.role_annotation: part.word}
    return Marks(
        {key: value for key, value in labels.items() if key and value},
        {key: value for key, value in annotations.items() if key},
        str(part.spec.get("schedulerName") or spoken.scheduler),
    )


def asks_elsewhere(gang: Gang, spoken: Dialect) -> bool:
    """Whether some template asks for another scheduler: allowed, and told."""
    return any(part.spec.get("schedulerName") not in (None, "", spoken.scheduler) for part in gang.parts)


def queue(gang: Gang, spoken: Dialect) -> str:
    return gang.policy.queue or spoken.default_queue


def spec(gang: Gang, spoken: Dialect, priorities: Mapping[str, int]) -> Object:
    """The fields of the group that are ours. `priorities` are the values of the priority classes, by name."""
    policy = gang.policy
    said: dict[Field, object] = {
        Field.SIZE: gang.least,
        Field.RESOURCES: policy.min_resources if policy.min_resources is not None else needed(gang, priorities),
        Field.QUEUE: queue(gang, spoken) or None,
        Field.PRIORITY: policy.priority_class or None,
        Field.TIMEOUT: policy.schedule_timeout_seconds,
    }
    return {field.value: said[field] for field in spoken.fields if said[field] is not None}


def needed(gang: Gang, priorities: Mapping[str, int]) -> Object:
    """What the smallest gang asks for in all: the pods of the highest priority first, then of the foremost role (B-13).

    Of each container its requests, or its limits if it has none. As upstream, without init containers and overhead.
    """
    ordered = sorted(gang.parts, key=lambda part: -priorities.get(part.spec.get("priorityClassName") or "", 0))
    asked: dict[str, list[str]] = {}
    left = gang.least
    for part in ordered:
        taken = min(part.replicas, left)
        left -= taken
        for container in part.spec.get("containers") or ():
            given = container.get("resources") or {}
            for resource, amount in (given.get("requests") or given.get("limits") or {}).items():
                asked.setdefault(resource, []).extend([str(amount)] * taken)
    return {resource: quantity.total(amounts) for resource, amounts in asked.items() if amounts}
