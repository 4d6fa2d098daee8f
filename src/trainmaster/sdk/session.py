"""One cluster and one namespace, as the verbs of the SDK see them: which kinds there are, and which job is meant.

The verbs are functions over a session. They are coroutines that wait for nothing but the client and the clock, so that
the same ones run on an event loop (`AsyncClient`) and without one (`Client`, see `kube.blocking`).
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from trainmaster.api.core import BATCH_JOBS
from trainmaster.api.meta import Object, Resource, key_of
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import Served, survey
from trainmaster.kube.errors import Forbidden, NotFound
from trainmaster.sdk.errors import NoJob, NoSuchKind
from trainmaster.sdk.jobs import RUNNING, WAITING, Job, is_job, is_training

if TYPE_CHECKING:
    from datetime import datetime

T = TypeVar("T")
JobRef = str | Job      # its name, KIND/NAME, or the job itself


class Clock(Protocol):
    """The part of `runtime.clock.Clock` that is needed here."""

    def now(self) -> "datetime": ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Session:
    """The client is the session's: closing one closes the other."""

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self.client, self.clock, self.namespace = client, clock, namespace
        self._served: tuple[Served, ...] | None = None

    async def served(self) -> tuple[Served, ...]:
        """The kinds of the cluster; a group that does not answer hides no other."""
        if self._served is None:
            self._served = (await survey(self.client)).kinds
        return self._served

    async def kind(self, word: str) -> Served:
        """The kind that people call so: pods, po, tfjob, tfjobs.kubeflow.org, TFJob. Raises NoSuchKind."""
        kinds = await self.served()
        found = named(word, kinds)
        if found is None:
            raise NoSuchKind(_no_kind(word, kinds))
        return found

    async def resource_of(self, thing: Object) -> Resource | None:
        """Where objects like this one live."""
        place = (thing.get("apiVersion"), thing.get("kind"))
        return next((each.resource for each in await self.served()
                     if (each.resource.api_version, each.resource.kind) == place), None)

    async def job_kinds(self) -> list[Resource]:
        """Training jobs first, each kind of them; plain Jobs last."""
        found = {each.resource for each in await self.served() if is_job(each.resource) and each.can("list", "get")}
        return sorted(found, key=lambda each: (not is_training(each), each.kind))

    async def find(self, job: JobRef, namespace: str | None = None) -> Job:
        """The job as it is now. Raises NoJob."""
        where = namespace or (job.namespace if isinstance(job, Job) else "") or self.namespace
        if isinstance(job, Job):
            kinds, name = [job.resource], job.name
        else:
            word, slash, name = job.rpartition("/")
            kinds = [(await self.kind(word)).resource] if slash else await self.job_kinds()
        if not all(map(is_job, kinds)):
            raise NoJob(f"{job}: a {kinds[0].kind} is not a job.")
        found = await _allowed(kinds, lambda resource: self._get(resource, name, where))
        if len(found) > 1:
            choices = " or ".join(f"{each.kind.lower()}/{name}" for each in found)
            raise NoJob(f"There are several jobs '{name}' in namespace {where}. Write {choices}.")
        if not found:
            raise NoJob(await self._no_job(name, where, kinds))
        return found[0]

    async def jobs(self, namespace: str | None, *, labels: str = "", kinds: Iterable[Resource] | None = None,
                   reasons: bool = True) -> list[Job]:
        """All jobs of a namespace ("" is all of them), with what they wait for and what ails their replicas."""
        found: list[Job] = []
        where = self.namespace if namespace is None else namespace
        chosen = await self.job_kinds() if kinds is None else kinds
        for page in await _allowed(chosen, lambda resource: self._page(resource, where, labels)):
            found += page
        return await self.with_reasons(found, where) if reasons else found

    async def with_reasons(self, jobs: list[Job], namespace: str) -> list[Job]:
        """The same, with the scheduler's words for those that wait, and with what is wrong with replicas of those that
        should run. Asked only if there are such."""
        if any(job.state == WAITING and is_training(job.resource) for job in jobs):
            said = await self._reasons(namespace)
            jobs = [Job(job.resource, job.object, said.get(key_of(job.object), "")) for job in jobs]
        if not any(job.state in (WAITING, RUNNING) and not job.waits for job in jobs):
            return jobs
        from trainmaster.sdk.troubles import troubles

        found = await troubles(self.client, jobs, namespace)
        return [Job(job.resource, job.object, job.waits, found.get(job.uid, "")) for job in jobs]

    async def _reasons(self, namespace: str) -> "dict[object, str]":
        from trainmaster.api.groups import GROUPS, why_waiting

        there = {each.resource for each in await self.served()}
        said: dict[object, str] = {}
        for resource in GROUPS:
            if resource not in there:
                continue
            try:
                page = await self.client.list(resource, namespace)
            except (Forbidden, NotFound):
                continue      # the reason is a courtesy; the jobs are what was asked for
            for group in page.items:
                if why := why_waiting(group):
                    said.setdefault(key_of(group), why)
        return said

    async def _page(self, resource: Resource, namespace: str, labels: str) -> list[Job]:
        page = await self.client.list(resource, namespace, labels=labels)
        return [job for item in page.items if not (job := Job(resource, item)).owned]

    async def _get(self, resource: Resource, name: str, namespace: str) -> Job | None:
        try:
            return Job(resource, await self.client.get(resource, name, namespace))
        except NotFound:
            return None

    async def _no_job(self, name: str, namespace: str, kinds: list[Resource]) -> str:
        import difflib

        jobs = await self.jobs(namespace, reasons=False)
        same = [f"{job.kind.lower()}/{name}" for job in jobs if job.name == name]
        others = [job.name for job in jobs]
        near = difflib.get_close_matches(name, others, 1)
        if same:
            hint = f"Did you mean {' or '.join(same)}?"
        elif near:
            hint = f"Did you mean {near[0]}?"
        elif not kinds or kinds == [BATCH_JOBS]:
            hint = "The cluster has no kinds of training jobs; `trainmaster crds | kubectl apply -f -` adds them."
        elif others:
            hint = f"There {'are' if len(others) > 1 else 'is'} {some(sorted(others))}."
        else:
            hint = "There is none at all; look into all namespaces with `trainmaster get jobs -A`."
        return f"There is no job '{name}' in namespace {namespace}. {hint}"


async def _allowed(kinds: Iterable[Resource], ask: Callable[[Resource], Awaitable[T | None]]) -> list[T]:
    """The answers for each kind. One that we may not see hides no other; only if all are refused, it is said."""
    found, refused = [], []
    for resource in kinds:
        try:
            answer = await ask(resource)
        except Forbidden as problem:
            refused.append(problem)
        else:
            found.append(answer)
    if refused and not found:
        raise refused[0]
    return [each for each in found if each is not None]


def some(names: Sequence[str], most: int = 8) -> str:
    """`a, b and 12 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def named(word: str, kinds: Iterable[Served]) -> Served | None:
    """The kind that is called so, with or without its group. The first wins, as with kubectl: that of the core."""
    plain, _, group = word.lower().partition(".")
    for each in kinds:
        resource = each.resource
        if group and group not in (resource.group, f"{resource.version}.{resource.group}"):
            continue
        if plain in (resource.plural, resource.kind.lower(), *each.names):
            return each
    return None


def _no_kind(word: str, kinds: Iterable[Served]) -> str:
    import difflib

    names = sorted({name for each in kinds for name in (each.resource.plural, *each.names)})
    near = difflib.get_close_matches(word.lower(), names, 1, 0.7)
    hint = f"Did you mean {near[0]}?" if near else "`kubectl api-resources` lists the kinds."
    return f"The cluster has no kind '{word}'. {hint}"
