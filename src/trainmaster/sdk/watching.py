"""Jobs as they change, each with why it is as it is: for a list that goes on.

The sentence about a job depends on more than the job: a replica that ends again and again changes nothing in it, and
neither does the scheduler's reason. So the pods of jobs and their groups are followed as well, each by one watch. To
ask for all of it every few seconds was rejected: it is late, and it costs the same when nothing happens.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from trainmaster.api.core import PODS
from trainmaster.api.groups import GROUPS, why_waiting
from trainmaster.api.membership import JOB_NAME
from trainmaster.api.meta import Key, Object, Resource, controller_of, key_of, namespace_of
from trainmaster.kube.errors import Forbidden, KubeError, NotFound
from trainmaster.runtime.informer import Informer
from trainmaster.sdk.jobs import BATCH_NAME, Job
from trainmaster.sdk.session import Session
from trainmaster.sdk.troubles import ALIVE, reasoned

if TYPE_CHECKING:
    from trainmaster.runtime.clock import Clock

TOGETHER = 0.1      # seconds that news wait for others: the replicas of a job start and end together
OWNER = "owner"     # index: pods by the UID of their job

Tell = Callable[[Sequence[Job]], None]


class Watching:
    """Tells of every job whose state, counts or reason differ from what was told last."""

    def __init__(self, session: Session, namespace: str, tell: Tell, *, labels: str = "",
                 names: Sequence[str] = ()) -> None:
        """Of a namespace ("" is all of them); those that the labels pick, or those of the names."""
        self._session, self._namespace, self._tell = session, namespace, tell
        self._labels, self._names = labels, frozenset(names)
        self._fields = f"metadata.name={names[0]}" if len(self._names) == 1 else ""
        self._jobs: list[_Followed] = []
        self._groups: list[_Followed] = []
        self._pods: list[_Followed] = []
        self._told: dict[str, object] = {}
        self._changed: set[Key] = set()
        self._news = asyncio.Event()

    async def run(self, known: Iterable[Job] = ()) -> None:
        """Until it is cancelled; `known` are told already."""
        self._told = {job.uid: _row(job) for job in known}
        served = {each.resource for each in await self._session.served()}
        self._jobs = [self._followed(kind, _own, labels=self._labels, fields=self._fields)
                      for kind in await self._session.job_kinds()]
        self._groups = [self._followed(kind, _own) for kind in GROUPS if kind in served]
        self._pods = [self._followed(PODS, _of_job, labels=label, fields=ALIVE) for label in (JOB_NAME, BATCH_NAME)]
        everything = [*self._jobs, *self._groups, *self._pods]
        async with asyncio.TaskGroup() as group:
            for each in everything:
                group.create_task(each.informer.run())
                group.create_task(each.listed())
            for each in everything:      # a job without what is known of its pods would be told twice
                await each.ready.wait()
            await self._tell_on()

    async def _tell_on(self) -> None:
        while True:
            await self._news.wait()
            await self._session.clock.sleep(TOGETHER)
            self._news.clear()
            changed, self._changed = self._changed, set()
            fresh = [job for key in changed for job in self._called(key) if self._told.get(job.uid) != _row(job)]
            self._told.update((job.uid, _row(job)) for job in fresh)
            if fresh:
                self._tell(fresh)

    def _called(self, key: Key) -> list[Job]:
        """The jobs of that name, with their reasons."""
        if self._names and key.name not in self._names:
            return []
        found = []
        for each in self._jobs:
            thing = each.informer.copy.get(*key)
            if thing is None or (job := Job(each.informer.resource, thing)).owned:
                continue
            pods = [pod for kind in self._pods for pod in kind.informer.copy.by(OWNER, job.uid)]
            said = (why_waiting(group) for kind in self._groups if (group := kind.informer.copy.get(*key)) is not None)
            found.append(reasoned(job, next(filter(None, said), ""), pods))
        return found

    def _followed(self, resource: Resource, job_of: "Callable[[Object], Key | None]", *, labels: str = "",
                  fields: str = "") -> "_Followed":
        followed = _Followed(self._session, resource, self._namespace, labels, fields)
        followed.informer.on_change(partial(self._heard, job_of))
        return followed

    def _heard(self, job_of: "Callable[[Object], Key | None]", before: Object | None, after: Object | None) -> None:
        thing = before if after is None else after
        if thing is not None and (key := job_of(thing)) is not None:
            self._changed.add(key)
            self._news.set()


class _Followed:
    """A copy of one kind, ready once it is there or we may not have it: a reason is a courtesy, and so is a kind of
    jobs that is hidden from us."""

    def __init__(self, session: Session, resource: Resource, namespace: str, labels: str, fields: str) -> None:
        self.ready = asyncio.Event()
        clock = cast("Clock", session.clock)      # an asynchronous session has the whole of it
        self.informer = Informer(session.client, resource, clock=clock, namespace=namespace, labels=labels,
                                 fields=fields, indexes={OWNER: _owner}, troubled=self._troubled)

    async def listed(self) -> None:
        await self.informer.synced()
        self.ready.set()

    def _troubled(self, problem: KubeError) -> None:
        if isinstance(problem, Forbidden | NotFound):
            self.ready.set()


def _row(job: Job) -> object:
    return job.state, job.roles(), job.why


def _own(thing: Object) -> Key | None:
    """A group has the name of its job."""
    return key_of(thing)


def _of_job(pod: Object) -> Key | None:
    owner = controller_of(pod)
    return None if owner is None else Key(namespace_of(pod), str(owner.get("name", "")))


def _owner(pod: Object) -> list[str]:
    owner = controller_of(pod)
    return [] if owner is None else [str(owner.get("uid", ""))]
