"""Get, observe, plan, apply, status, events: one look at one job.

Whatever line the process dies on, the next look continues: what an action destroys is stored before the action, every
action can be done twice, and nothing is told that was not stored.
"""

from collections import OrderedDict
from datetime import datetime, timedelta

from trainmaster.api import codec
from trainmaster.api.meta import Key, Object, name_of, namespace_of, uid_of
from trainmaster.api.policy import Condition, ConditionType, JobStatus
from trainmaster.api.validation import Problem, problems
from trainmaster.engine.actions import Event, Plan
from trainmaster.engine.plan import plan
from trainmaster.engine.refuse import refused, unmakeable
from trainmaster.frameworks.framework import Framework
from trainmaster.frameworks.registry import read
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError, NotFound
from trainmaster.operator import ledger
from trainmaster.operator.apply import Hands, Refused
from trainmaster.operator.config import Settings
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.observe import Children
from trainmaster.operator.pace import NOW, Pace
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.outbox import Outbox
from trainmaster.runtime.recent import Recent
from trainmaster.runtime.recorder import Recorder

# States told about pods, so that each is told once; older ones may be told again.
REMEMBERED = 4096


class Reconciler:
    """Brings jobs of one kind to where they should be."""

    def __init__(
        self, framework: Framework, client: Client, clock: Clock, settings: Settings, jobs: Informer,
        children: Children, outbox: Outbox, metrics: Metrics, pace: Pace,
    ) -> None:
        self._framework = framework
        self._metrics = metrics
        self._pace = pace
        self._resource = framework.kind.resource
        self._client = client
        self._clock = clock
        self._settings = settings
        self._jobs = jobs
        self._children = children
        self._recent = Recent(clock)
        recorder = Recorder(client, framework.kind.controller, clock)
        self._hands = Hands(
            framework.kind.container, client, recorder, outbox, children, metrics, settings.at_once
        )
        self._told: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        jobs.on_change(self._recent.shown)

    async def reconcile(self, key: Key) -> datetime | None:
        """One look; when to look again even if nothing happens."""
        shown = self._jobs.copy.get(key.namespace, key.name)
        if shown is None:
            return None  # deleted: the garbage collector has the rest
        thing = ledger.with_memory(self._recent.newest(shown))
        todo, stored = self._decide(thing)
        try:
            thing, failure, again = await self._carry_out(todo, thing, stored)
            if isinstance(failure, Refused) and (end := self._ended(thing, failure)) is not None:
                todo = end
                stored = codec.decode_status(ledger.with_memory(thing).get("status"))
                thing, failure, again = await self._carry_out(todo, thing, stored)
        except NotFound:
            return None  # deleted while we looked at it
        if failure is not None:
            raise failure
        return again

    async def _carry_out(
        self, todo: Plan, thing: Object, stored: JobStatus
    ) -> tuple[Object, KubeError | None, datetime | None]:
        """Do a plan; the job as it is then, why to try again, if there is a reason, and when to look again."""
        if todo.record is not None and todo.record != stored:
            thing, stored = await self._write(thing, stored, todo.record)
        began = self._clock.monotonic()
        failure = await self._hands.apply(todo.actions, thing, self._resource)
        if rounds := self._hands.rounds(todo.actions):
            self._pace.answered((self._clock.monotonic() - began) / rounds)
        if todo.status != stored:
            if failure is None and (wait := self._wait(thing, stored, todo.status)):
                # More news is on its way: the status is told with it, and so are the events.
                soon = self._clock.now() + wait
                return thing, None, min(soon, todo.look_again_at or soon)
            thing, stored = await self._write(thing, stored, todo.status)
        else:
            self._pace.settled(uid_of(thing))
        for event in todo.events:
            await self._tell(thing, event)
        return thing, failure, todo.look_again_at

    def _wait(self, thing: Object, before: JobStatus, after: JobStatus) -> timedelta:
        """How long the status may wait for more news; the end of a job waits for nothing."""
        if after.finished:
            return NOW
        slight = _told(before) == _told(after)
        return self._pace.until_due(uid_of(thing), self._clock, slight=slight)

    def _ended(self, thing: Object, failure: Refused) -> Plan | None:
        """The end of a job that can never have its pods."""
        job = read(ledger.with_memory(thing), self._framework, self._settings.site)
        return unmakeable(job, self._children.of(job), self._clock.now(), failure.pod, str(failure))

    def _decide(self, thing: Object) -> tuple[Plan, JobStatus]:
        """What to do, and the status that is stored now."""
        now = self._clock.now()
        status = codec.decode_status(thing.get("status"))
        wrong = [] if status.finished else problems(thing)
        if not wrong:
            try:
                job = read(thing, self._framework, self._settings.site)
            except codec.Malformed as problem:
                wrong = [Problem(problem.field, problem.message)]
            else:
                return plan(job, self._children.of(job), now), status
        texts = [str(problem) for problem in wrong]
        return refused(self._framework.kind, name_of(thing), uid_of(thing), status, texts, now), status

    async def _write(self, thing: Object, before: JobStatus, after: JobStatus) -> tuple[Object, JobStatus]:
        began = self._clock.monotonic()
        stored = await ledger.write(self._client, self._resource, thing, after)
        self._pace.answered(self._clock.monotonic() - began)
        self._pace.wrote(uid_of(thing), self._clock)
        self._recent.written(stored)
        self._metrics.stored(self._framework.kind.container, namespace_of(thing), before, after)
        return stored, after

    async def _tell(self, thing: Object, event: Event) -> None:
        if event.about:
            same = (event.about, event.reason, event.message)
            if same in self._told:
                return
            self._told[same] = None
            while len(self._told) > REMEMBERED:
                self._told.popitem(last=False)
        await self._hands.tell(thing, event)


def _told(status: JobStatus) -> list[Condition]:
    """What people wait for and programs act on. That a job was seen at all says little: it shows in its pods."""
    return [condition for condition in status.conditions if condition.type != ConditionType.CREATED]
