"""Makes and deletes the dependents of a workload: bounded, told with events, remembered until the copy shows it.

Creation starts slowly, one, two, four at a time: what refuses the first (a quota, a webhook) would refuse all, and a
thousand refusals tell nobody more than one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Object, Resource, name_of, namespace_of, uid_of
from trainmaster.cluster.controllers.refusals import namespace_is_ending
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, Conflict, Forbidden, KubeError, NotFound, is_transient
from trainmaster.runtime.recent import Recent
from trainmaster.runtime.recorder import Recorder

AT_ONCE = 32


class Undone(Conflict):
    """Something could not be done, and the object says so. As with a conflict, all that is left is to try later."""


@dataclass(frozen=True, slots=True)
class Words:
    """How events tell of it: controllers of Kubernetes differ, and people search for their words."""

    created: str = "Created {kind}: {name}"
    refused: str = "Error creating: {problem}"
    deleted: str = "Deleted {kind}: {name}"
    stayed: str = "Error deleting: {problem}"


class Hands:
    """For dependents of one kind, on behalf of one controller."""

    def __init__(
        self, client: Client, resource: Resource, recent: Recent, recorder: Recorder, words: Words | None = None
    ) -> None:
        self._client = client
        self._resource = resource
        self._kind = resource.kind.lower()
        self._words = words or Words()
        self._recent = recent
        self._recorder = recorder

    async def create(self, owner: Object, manifests: Sequence[Object]) -> tuple[int, KubeError | None]:
        """How many could be made, and why not all of them, if so."""
        done, made, batch = 0, 0, 1
        while done < len(manifests):
            failures = await self._all(self._create, owner, manifests[done:done + batch])
            made += failures.count(None)
            if problem := next((each for each in failures if each is not None), None):
                return made, problem
            done, batch = done + batch, min(batch * 2, AT_ONCE)
        return made, None

    async def delete(self, owner: Object, things: Sequence[Object]) -> KubeError | None:
        failures: list[KubeError | None] = []
        for start in range(0, len(things), AT_ONCE):
            failures += await self._all(self._delete, owner, things[start:start + AT_ONCE])
        return next((each for each in failures if each is not None), None)

    async def tell(self, owner: Object, type_: str, reason: str, message: str) -> None:
        await self._recorder.event(owner, type_, reason, message)

    async def _say(
        self, owner: Object, type_: str, reason: str, words: str, thing: Object, problem: KubeError | None = None
    ) -> None:
        said = words.format(kind=self._kind, name=name_of(thing), owner=name_of(owner), problem=problem)
        await self.tell(owner, type_, reason, said)

    async def _all(
        self, act: Callable[[Object, Object], Awaitable[KubeError | None]], owner: Object, things: Sequence[Object]
    ) -> list[KubeError | None]:
        return list(await asyncio.gather(*(act(owner, thing) for thing in things)))

    async def _create(self, owner: Object, manifest: Object) -> KubeError | None:
        try:
            made = await self._client.create(self._resource, manifest)
        except KubeError as problem:
            if not (isinstance(problem, Forbidden) and namespace_is_ending(problem)):
                await self._say(owner, "Warning", "FailedCreate", self._words.refused, manifest, problem)
            return problem
        self._recent.made(made)
        await self._say(owner, "Normal", "SuccessfulCreate", self._words.created, made)
        return None

    async def _delete(self, owner: Object, thing: Object) -> KubeError | None:
        try:
            await self._client.delete(self._resource, name_of(thing), namespace_of(thing), uid=uid_of(thing))
        except (NotFound, Conflict):
            self._recent.deleted(uid_of(thing))    # gone, or another has the name by now
            return None
        except KubeError as problem:
            await self._say(owner, "Warning", "FailedDelete", self._words.stayed, thing, problem)
            return problem
        self._recent.deleted(uid_of(thing))
        await self._say(owner, "Normal", "SuccessfulDelete", self._words.deleted, thing)
        return None


def later(failure: KubeError) -> KubeError:
    """A failure as a reason to try again: what the user can see and change is no trouble of ours."""
    if isinstance(failure, ApiError) and not is_transient(failure):
        return Undone(failure.code, failure.reason, str(failure), failure.status)
    return failure
