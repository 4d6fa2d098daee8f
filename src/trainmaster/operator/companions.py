"""What is beside the pods of jobs, in the cluster: shown to the engine, and made, changed and deleted as it says.

Found by name, whoever owns it: a pod group that a user made counts too. Autoscalers and pod groups carry no labels of
ours, so all of a namespace are watched; there is one for a job at most.
"""

from collections.abc import Awaitable, Callable, Mapping

from trainmaster.api.core import PRIORITY_CLASSES
from trainmaster.api.meta import Object, Resource, controller_of, name_of, namespace_of, uid_of
from trainmaster.engine.actions import CreateCompanion, DeleteCompanion, Event, UpdateCompanion
from trainmaster.engine.companions import is_another_jobs, looked_for
from trainmaster.frameworks.framework import TrainingJob
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict
from trainmaster.operator.ownership import taken_by_another
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.recent import Recent

Tell = Callable[[Event], Awaitable[None]]


class Companions:
    """The pod groups and autoscalers of all jobs, as far as we know."""

    def __init__(self, client: Client, clock: Clock, informers: Mapping[Resource, Informer]) -> None:
        self._client = client
        self._informers = informers
        self._recent = {resource: Recent(clock) for resource in informers}
        for resource, informer in informers.items():
            informer.on_change(self._recent[resource].shown)

    def of(self, job: TrainingJob) -> dict[Resource, Object]:
        found: dict[Resource, Object] = {}
        for resource, name in looked_for(job):
            if (informer := self._informers.get(resource)) is not None:
                recent, shown = self._recent[resource], informer.copy.get(job.namespace, name)
                there = recent.over([] if shown is None else [recent.newest(shown)], job.uid)
                found.update((resource, thing) for thing in there if name_of(thing) == name)
        return found

    def priorities(self) -> dict[str, int]:
        """What priority classes are worth (B-13), as far as we are shown them; without rights, none."""
        shown = self._informers.get(PRIORITY_CLASSES)
        return {name_of(found): int(found.get("value") or 0) for found in shown.copy} if shown is not None else {}

    async def create(self, action: CreateCompanion) -> None:
        """Make it. What a user made, or the job that had our name before, will be shown to us and judged then."""
        try:
            made = await self._client.create(action.resource, action.manifest)
        except AlreadyExists as taken:
            made = await self._client.get(action.resource, name_of(action.manifest), namespace_of(action.manifest))
            if is_another_jobs(made, controller_of(action.manifest) or {}):
                raise taken_by_another(made, taken) from taken
        if controller_of(made):
            self._recent[action.resource].made(made)

    async def update(self, action: UpdateCompanion, namespace: str) -> None:
        # With the UID, so that a successor of the same name is not changed by a decision about its predecessor.
        change = {**action.change, "metadata": {"uid": action.uid}}
        self._recent[action.resource].written(
            await self._client.patch(action.resource, action.name, namespace, change)
        )

    async def delete(self, action: DeleteCompanion, namespace: str, tell: Tell) -> None:
        try:
            await self._client.delete(action.resource, action.name, namespace, uid=action.uid)
        except Conflict:
            if uid_of(await self._client.get(action.resource, action.name, namespace)) == action.uid:
                raise  # the server's own trouble
            return  # another has the name by now; it is not the one we meant
        self._recent[action.resource].deleted(action.uid)
        for event in action.tells:
            await tell(event)
