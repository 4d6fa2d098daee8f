"""What a plan can ask for. Plain values: printed by a dry run, compared in a test, replayed from a recorded cluster.

Each is safe to repeat. Creating what is there and ours is success; deleting names the UID it means, so that a pod that
was replaced in the meantime is never hit by a decision about its predecessor.
"""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.meta import Object, Resource
from trainmaster.api.policy import JobStatus


@dataclass(frozen=True, slots=True)
class Event:
    """A sentence for people, on the job. With `about` (a UID) it describes a state and is told once per UID."""

    type: str
    reason: str
    message: str
    about: str = ""


def normal(reason: str, message: str) -> Event:
    return Event("Normal", reason, message)


def warning(reason: str, message: str, about: str = "") -> Event:
    return Event("Warning", reason, message, about)


@dataclass(frozen=True, slots=True)
class CreatePod:
    manifest: Object
    tells: tuple[Event, ...] = ()  # beside the event that every creation tells


@dataclass(frozen=True, slots=True)
class DeletePod:
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateService:
    manifest: Object


@dataclass(frozen=True, slots=True)
class DeleteService:
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateCompanion:
    """An object beside the pods: a pod group, an autoscaler. Not told: it is a means."""

    resource: Resource
    manifest: Object


@dataclass(frozen=True, slots=True)
class UpdateCompanion:
    """A merge patch of the fields that are ours."""

    resource: Resource
    name: str
    uid: str
    change: Object


@dataclass(frozen=True, slots=True)
class DeleteCompanion:
    resource: Resource
    name: str
    uid: str
    tells: tuple[Event, ...] = ()  # once it is done


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """The job itself, with everything it owns, in the background. `reason` is that of the event."""

    uid: str
    reason: str


Action = (
    CreatePod | DeletePod | CreateService | DeleteService
    | CreateCompanion | UpdateCompanion | DeleteCompanion | DeleteJob
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The next step for one job."""

    status: JobStatus                       # what is true now, and what must be remembered
    actions: tuple[Action, ...] = ()        # in the order to be done; neighbours of one type may be done together
    write_ahead: bool = False               # the status holds facts that an action destroys: write it first
    events: tuple[Event, ...] = ()          # about the job as a whole, told only after the status is written
    look_again_at: datetime | None = None   # without this, a deadline with no event never fires

    @property
    def record(self) -> JobStatus | None:
        """What must be stored before the first action, because whoever reads next may not find the pods any more."""
        return self.status if self.write_ahead else None
