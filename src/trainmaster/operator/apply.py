"""Actions to API calls: in order, bounded, repeatable, each told with its own event.

One failure does not stop the neighbours: a job of which one pod cannot be made has all the others, and says which.
"""

import asyncio
from collections.abc import Sequence
from itertools import groupby

from trainmaster.api.core import PODS, SERVICES
from trainmaster.api.meta import Object, Resource, controller_of, name_of, namespace_of, uid_of
from trainmaster.engine.actions import (
    Action,
    CreateCompanion,
    CreatePod,
    CreateService,
    DeleteCompanion,
    DeleteJob,
    DeletePod,
    DeleteService,
    Event,
    UpdateCompanion,
)
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, ApiError, Conflict, KubeError, NotFound, is_transient
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.observe import Children
from trainmaster.operator.ownership import taken_by_another
from trainmaster.runtime.log import logger
from trainmaster.runtime.outbox import Outbox
from trainmaster.runtime.recorder import Recorder

CREATIONS = {PODS: "created_pods_total", SERVICES: "succeeded_service_creation_total"}
FAILED_CREATIONS = {PODS: "failed_pods_total", SERVICES: "failed_service_creation_total"}
# Of reasons, and of messages.
VERBS: dict[type, tuple[str, str]] = {
    CreateCompanion: ("Create", "creating"), UpdateCompanion: ("Update", "updating"),
    DeleteCompanion: ("Delete", "deleting"),
}

log = logger("operator")


class Undone(Conflict):
    """Something could not be done, and the job says so. As with a conflict, all that is left is to try again later."""


class Refused(Undone):
    """The server will never take a pod as it is written."""

    pod = ""


class Hands:
    """Does what plans ask for, on behalf of one kind of job."""

    def __init__(
        self, framework: str, client: Client, recorder: Recorder, outbox: Outbox, children: Children, metrics: Metrics,
        at_once: int,
    ) -> None:
        self._framework = framework
        self._client = client
        self._recorder = recorder
        self._outbox = outbox
        self._children = children
        self._metrics = metrics
        self._at_once = at_once

    async def apply(self, actions: Sequence[Action], job: Object, resource: Resource) -> KubeError | None:
        """Do the actions for a job; why to try again, if some could not be done.

        A failed deletion holds back what comes after it; other failures hold back nothing.
        """
        failures: list[KubeError] = []
        for kind, run in groupby(actions, key=type):
            failed = await self._all(list(run), job, resource)
            failures += failed
            if failed and kind in (DeleteService, DeletePod):
                break
        if not failures:
            return None
        if never := next((failure for failure in failures if isinstance(failure, Refused)), None):
            return never
        # Those of the API come first: they say more about what to do than what the user was told.
        first = next((failure for failure in failures if is_transient(failure)), failures[0])
        if isinstance(first, ApiError) and not is_transient(first):
            return Undone(first.code, first.reason, str(first), first.status)
        return first

    def rounds(self, actions: Sequence[Action]) -> int:
        """How many requests follow one another when the actions are done."""
        return sum(-(-len(list(run)) // self._at_once) for _, run in groupby(actions, key=type))

    async def _all(self, actions: Sequence[Action], job: Object, resource: Resource) -> list[KubeError]:
        gate = asyncio.Semaphore(self._at_once)

        async def one(action: Action) -> KubeError | None:
            async with gate:
                return await self._do(action, job, resource)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(action)) for action in actions]
        return [failure for task in tasks if (failure := task.result()) is not None]

    async def _do(self, action: Action, job: Object, resource: Resource) -> KubeError | None:
        match action:
            case CreatePod(manifest, tells):
                for event in tells:
                    await self.tell(job, event)
                return _never(await self._create(PODS, manifest, job), name_of(manifest))
            case CreateService(manifest):
                return await self._create(SERVICES, manifest, job)
            case DeletePod(name, uid):
                return await self._delete(PODS, name, uid, job)
            case DeleteService(name, uid):
                return await self._delete(SERVICES, name, uid, job)
            case DeleteJob(uid, reason):
                return await self._delete(resource, name_of(job), uid, job, reason=reason, propagation="Background")
            case CreateCompanion() | UpdateCompanion() | DeleteCompanion():
                return await self._beside(action, job)

    async def _beside(
        self, action: CreateCompanion | UpdateCompanion | DeleteCompanion, job: Object
    ) -> KubeError | None:
        async def tell(event: Event) -> None:
            await self.tell(job, event)

        beside, namespace, kind = self._children.companions, namespace_of(job), action.resource.kind
        try:
            match action:
                case CreateCompanion():
                    await beside.create(action)
                    self._count("created", action.resource)
                case UpdateCompanion():
                    await beside.update(action, namespace)
                case DeleteCompanion():
                    await beside.delete(action, namespace, tell)
                    self._count("deleted", action.resource)
        except NotFound as gone:
            if isinstance(action, CreateCompanion) and (gone.status.get("details") or {}).get("kind") != "namespaces":
                await self._failed(f"FailedCreate{kind}", f"Error creating: {_no_such(action.resource)}", job, gone)
            return None if isinstance(action, DeleteCompanion) else gone
        except KubeError as problem:
            verb, doing = VERBS[type(action)]
            await self._failed(f"Failed{verb}{kind}", f"Error {doing}: {problem}", job, problem)
            return problem
        return None

    def _count(self, done: str, resource: Resource) -> None:
        if resource.kind == "PodGroup":
            self._metrics.count(f"{done}_pod_groups_total")

    async def _create(self, resource: Resource, manifest: Object, job: Object) -> KubeError | None:
        recent = self._children.recent_pods if resource is PODS else self._children.recent_services
        try:
            try:
                made = await self._client.create(resource, manifest)
            except AlreadyExists as taken:
                recent.made(await self._ours(resource, manifest, job, taken))
                return None
        except KubeError as problem:
            self._metrics.count(FAILED_CREATIONS[resource])
            await self._failed(f"FailedCreate{resource.kind}", f"Error creating: {problem}", job, problem)
            return problem
        recent.made(made)
        self._metrics.count(CREATIONS[resource])
        word = resource.kind.lower()
        log.info(f"{word} created", job=f"{namespace_of(job)}/{name_of(job)}", name=name_of(made))
        await self.tell(job, Event("Normal", f"SuccessfulCreate{resource.kind}", f"Created {word}: {name_of(made)}"))
        return None

    async def _ours(self, resource: Resource, manifest: Object, job: Object, taken: AlreadyExists) -> Object:
        """What has the name already, if it is this job's: made by us, before we died or before the copy showed it."""
        found = await self._client.get(resource, name_of(manifest), namespace_of(manifest))
        owner = controller_of(found)
        if owner is None or owner.get("uid") != uid_of(job):
            raise taken_by_another(found, taken) from taken
        return found

    async def _delete(
        self, resource: Resource, name: str, uid: str, job: Object, *, reason: str = "", propagation: str = ""
    ) -> KubeError | None:
        reason = reason or f"Delete{resource.kind}"
        try:
            try:
                await self._client.delete(resource, name, namespace_of(job), uid=uid, propagation=propagation)
            except Conflict:
                if uid_of(await self._client.get(resource, name, namespace_of(job))) == uid:
                    raise  # the server's own trouble
                return None  # another has the name by now; it is not the one we meant
        except NotFound:
            return None
        except KubeError as problem:
            await self._failed(f"Failed{reason}", f"Error deleting: {problem}", job, problem)
            return problem
        if resource is PODS:
            self._metrics.count("deleted_pods_total")
            self._children.recent_pods.deleted(uid)
        elif resource is SERVICES:
            self._children.recent_services.deleted(uid)
        else:
            self._metrics.count("training_operator_jobs_deleted_total", namespace_of(job), self._framework)
        word = resource.kind.lower() if resource in (PODS, SERVICES) else "job"
        log.info(f"{word} deleted", job=f"{namespace_of(job)}/{name_of(job)}", name=name)
        await self.tell(job, Event("Normal", f"Successful{reason}", f"Deleted {word}: {name}"))
        return None

    async def _failed(self, reason: str, message: str, job: Object, problem: KubeError) -> None:
        """Tell what the user can do something about. An API server in trouble is our business, and told by the log."""
        if isinstance(problem, ApiError) and not is_transient(problem):
            log.warning("not done", job=f"{namespace_of(job)}/{name_of(job)}", reason=reason, cause=problem)
            await self.tell(job, Event("Warning", reason, message))

    async def tell(self, job: Object, event: Event) -> None:
        """In the background: nobody waits for a courtesy."""
        await self._outbox.put(self._recorder, job, event.type, event.reason, event.message)


def _never(failure: KubeError | None, pod: str) -> KubeError | None:
    """The failure; marked if asking again is useless, because the pod itself is wrong."""
    if not isinstance(failure, ApiError) or failure.code not in (400, 422):
        return failure
    refused = Refused(failure.code, failure.reason, str(failure), failure.status)
    refused.pod = pod
    return refused


def _no_such(resource: Resource) -> str:
    return (
        f"the cluster has no {resource.kind} of {resource.api_version}. Install what defines it"
        + (", or start the operator with another --gang-scheduler-name" if resource.kind == "PodGroup" else "")
    )
