"""How each gang scheduler wants to be told: the kind of its groups, their fields, and the marks on pods."""

from dataclasses import dataclass, replace
from enum import StrEnum

from trainmaster.api import groups
from trainmaster.api.meta import Object, Resource


class Field(StrEnum):
    """What a group can say about itself, under the name that it has there."""

    SIZE = "minMember"
    RESOURCES = "minResources"
    QUEUE = "queue"
    PRIORITY = "priorityClassName"
    TIMEOUT = "scheduleTimeoutSeconds"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one scheduler expects."""

    resource: Resource
    scheduler: str                    # the name that pods ask for
    fields: tuple[Field, ...]         # what we write into a group; other fields are other people's (B-23)
    group_annotation: str = ""        # on pods: the name of their group
    role_annotation: str = ""         # on pods: their role
    group_label: str = ""             # the same two as labels, and the queue
    role_label: str = ""
    queue_label: str = ""
    default_queue: str = ""           # the queue of jobs that name none
    holds: bool = False               # pods are made only once the scheduler has let their group in


# Phases of a group that has not been let in yet. Anything else has been, whatever it became since.
WAITING = ("", "Pending")

VOLCANO = Dialect(
    resource=groups.VOLCANO_GROUPS,
    scheduler="volcano",
    fields=(Field.SIZE, Field.RESOURCES, Field.QUEUE, Field.PRIORITY),
    group_annotation=groups.GROUP_NAME,
    role_annotation=groups.TASK_SPEC,
    default_queue="default",
    holds=True,
)
KUBE_BATCH = Dialect(
    resource=groups.KUBE_BATCH_GROUPS,
    scheduler="kube-batch",
    fields=(Field.SIZE, Field.QUEUE, Field.PRIORITY),
    group_annotation=groups.GROUP_NAME,
)
T9K = Dialect(
    resource=groups.T9K_GROUPS,
    scheduler="t9k-scheduler",
    fields=(Field.SIZE, Field.QUEUE),
    group_label=groups.T9K_GROUP,
    role_label=groups.T9K_ROLE,
    queue_label=groups.T9K_QUEUE,
    default_queue="default",
)
SCHEDULER_PLUGINS = Dialect(
    resource=groups.COSCHEDULING_GROUPS,
    scheduler="scheduler-plugins-scheduler",
    fields=(Field.SIZE, Field.RESOURCES, Field.TIMEOUT),
    group_label=groups.COSCHEDULING_GROUP,
)
_BY_NAME = {known.scheduler: known for known in (VOLCANO, KUBE_BATCH, T9K)}


def known(scheduler: str) -> Dialect | None:
    """The dialect of a scheduler that speaks one of its own."""
    return _BY_NAME.get(scheduler)


def dialect(scheduler: str) -> Dialect | None:
    """How to speak to the scheduler of that name. Nobody is meant by an empty name, or by `none` as in release 1.6.

    A name that is none of ours is that of a profile of scheduler-plugins, as it is upstream.
    """
    word = scheduler.lower()
    if word in ("", "none"):
        return None
    return _BY_NAME.get(word) or replace(SCHEDULER_PLUGINS, scheduler=scheduler)


def is_let_in(spoken: Dialect, group: Object | None) -> bool:
    """Whether the pods of a group may be made."""
    if not spoken.holds:
        return True
    return group is not None and ((group.get("status") or {}).get("phase") or "") not in WAITING
