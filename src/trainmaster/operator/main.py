"""Wires the operator and runs it until it is told to stop. Installs nothing: it expects the definitions to be there."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from trainmaster.api.core import PODS, PRIORITY_CLASSES, SERVICES
from trainmaster.api.membership import OPERATOR_NAME
from trainmaster.api.meta import Key, Object, Resource, controller_of, key_of, metadata, name_of, namespace_of, uid_of
from trainmaster.frameworks.framework import Framework
from trainmaster.frameworks.registry import FRAMEWORKS
from trainmaster.gang.dialects import dialect
from trainmaster.kube.client import Client
from trainmaster.operator import obstacles
from trainmaster.operator.companions import Companions
from trainmaster.operator.config import DEFAULTS, Settings
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.observe import GOING, OWNER, Children, going_index, owner_index
from trainmaster.operator.pace import Pace
from trainmaster.operator.reconciler import Reconciler
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.outbox import Outbox
from trainmaster.runtime.recent import Recent
from trainmaster.runtime.workqueue import Workqueue

log = logger("operator")


async def run(
    client: Client,
    clock: Clock,
    settings: Settings = DEFAULTS,
    ready: Callable[[], None] = lambda: None,
    *,
    metrics: Metrics | None = None,
    stop: asyncio.Event | None = None,
    lull: float = 0.0,
) -> None:
    """Run all jobs of the cluster, or of one namespace, until cancelled (at once) or `stop` is set (in good order).

    `ready` is called once it is up to date. `lull`: see Outbox.
    """
    metrics = metrics or Metrics()
    outbox = Outbox(clock, lull=lull)
    frameworks = [known for known in FRAMEWORKS if not settings.kinds or known.kind.kind in settings.kinds]
    beside = _beside(client, clock, settings, frameworks)
    needed, controllers = _wired(client, clock, settings, frameworks, outbox, metrics, beside)
    informers = [*needed, *beside.values()]
    _show(metrics, outbox, informers, controllers, settings)
    async with asyncio.TaskGroup() as group:
        helping = [group.create_task(informer.run()) for informer in informers]
        helping.append(group.create_task(outbox.run()))
        working = [group.create_task(controller.run()) for controller in controllers]
        following = group.create_task(_synced(needed))
        stopping = group.create_task((stop or asyncio.Event()).wait())
        await asyncio.wait((following, stopping), return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            log.info("operator runs", kinds=",".join(known.kind.kind for known in frameworks))
            ready()
            await stopping
        following.cancel()
        for controller in controllers:
            controller.stop()
        await _in_good_order(working, outbox, clock, settings.grace)
        for task in (*working, *helping):
            task.cancel()


def _wired(
    client: Client, clock: Clock, settings: Settings, frameworks: Sequence[Framework], outbox: Outbox, metrics: Metrics,
    beside: Mapping[Resource, Informer],
) -> tuple[list[Informer], list[Controller[Key]]]:
    # Only what carries our labels: a cluster has many pods, and few of them are ours.
    ours = f"{OPERATOR_NAME} in ({','.join(sorted(known.kind.controller for known in frameworks))})"
    pods, services = (
        Informer(client, resource, clock=clock, namespace=settings.namespace, labels=ours, indexes=indexes,
                 troubled=obstacles.told(resource))
        for resource, indexes in ((PODS, {OWNER: owner_index, GOING: going_index}), (SERVICES, {OWNER: owner_index}))
    )
    children = Children(pods, services, Recent(clock), Recent(clock), Companions(client, clock, beside))
    informers, controllers, pace = [pods, services], [], Pace()
    for framework in frameworks:
        kind = framework.kind.resource
        jobs = Informer(client, kind, clock=clock, namespace=settings.namespace, troubled=obstacles.told(kind))
        reconciler = Reconciler(framework, client, clock, settings, jobs, children, outbox, metrics, pace)
        controller: Controller[Key] = Controller(
            framework.kind.controller, metrics.measured(framework.kind.controller, reconciler.reconcile), clock=clock,
            workers=settings.workers, informers=[pods, services, jobs],
            onlooker=metrics.queue(framework.kind.controller),
        )
        _connect(controller, framework, clock, pace, jobs, pods, (services, *beside.values()))
        informers.append(jobs)
        controllers.append(controller)
    return informers, controllers


def _beside(
    client: Client, clock: Clock, settings: Settings, frameworks: Sequence[Framework]
) -> dict[Resource, Informer]:
    """What is watched of the objects beside pods. Nobody waits for it: old clusters do not have all of these kinds."""
    resources = [resource for framework in frameworks for resource in framework.companion_resources]
    spoken = dialect(settings.site.gang_scheduler)
    resources += [] if spoken is None else [spoken.resource, PRIORITY_CLASSES]
    return {
        each: Informer(client, each, clock=clock, namespace=settings.namespace if each.namespaced else "",
                       troubled=obstacles.told(each))
        for each in resources
    }


def _show(
    metrics: Metrics, outbox: Outbox, informers: Sequence[Informer], controllers: Sequence[Controller[Key]],
    settings: Settings,
) -> None:
    metrics.show("trainmaster_events_waiting", lambda: len(outbox))
    for informer in informers:
        metrics.show("trainmaster_objects", informer.copy.__len__, informer.resource.kind)
    for controller in controllers:
        _show_queue(metrics, controller.name, controller.queue)
        metrics.show("controller_runtime_max_concurrent_reconciles", lambda: settings.workers, controller.name)


def _show_queue(metrics: Metrics, name: str, queue: Workqueue[Key]) -> None:
    metrics.show("workqueue_depth", queue.__len__, name)
    metrics.show("workqueue_unfinished_work_seconds", lambda: sum(queue.in_work()), name)
    metrics.show("workqueue_longest_running_processor_seconds", lambda: max(queue.in_work(), default=0.0), name)
    metrics.show("controller_runtime_active_workers", lambda: len(queue.in_work()), name)


async def _synced(informers: Sequence[Informer]) -> None:
    for informer in informers:
        await informer.synced()


async def _in_good_order(
    working: Sequence[asyncio.Task[None]], outbox: Outbox, clock: Clock, seconds: float
) -> None:
    """Let what is in hand be done and told, but not for longer than we have."""
    async def done() -> None:
        await asyncio.wait(working)
        await outbox.emptied()

    finishing = asyncio.ensure_future(done())
    patience = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((finishing, patience), return_when=asyncio.FIRST_COMPLETED)
        if not finishing.done():
            log.warning("stopped before everything was done", events=len(outbox))
    finally:
        for task in (finishing, patience):
            task.cancel()


def _connect(
    controller: Controller[Key], framework: Framework, clock: Clock, pace: Pace, jobs: Informer, pods: Informer,
    beside: Sequence[Informer],
) -> None:
    """Look at a job whenever it or one of its children changes. What the change was is not passed on."""

    def job_changed(before: Object | None, after: Object | None) -> None:
        thing = after or before
        if thing is None:
            return
        if after is None:
            pace.settled(uid_of(thing))
        if before is None or after is None or _generation(before) != _generation(after):
            controller.queue.add(key_of(thing))  # somebody asked for something
        else:
            controller.queue.add_at(key_of(thing), clock.now() + pace.moment)

    def child_changed(before: Object | None, after: Object | None) -> None:
        for thing in (before, after):
            owner = controller_of(thing) if thing is not None else None
            if thing is not None and owner and owner.get("kind") == framework.kind.kind:
                key = Key(namespace_of(thing), str(owner.get("name")))
                controller.queue.add_at(key, clock.now() + pace.moment)
            elif thing is not None and owner is None and jobs.copy.get(namespace_of(thing), name_of(thing)):
                controller.queue.add_at(key_of(thing), clock.now() + pace.moment)  # a pod group that a user made (B-14)

    def pod_changed(before: Object | None, after: Object | None) -> None:
        owner = controller_of(after) if after is not None else None
        if before is None or after is None or owner is None or owner.get("kind") != framework.kind.kind:
            return
        if going_index(before) and not going_index(after) and not pods.copy.holds(GOING, str(owner.get("uid"))):
            # The last that ran has ended: no more news will come, and somebody waits for this one.
            controller.queue.add(Key(namespace_of(after), str(owner.get("name"))))

    jobs.on_change(job_changed)
    pods.on_change(pod_changed)
    for informer in (pods, *beside):
        informer.on_change(child_changed)


def _generation(thing: Object) -> int:
    return int(metadata(thing).get("generation") or 0)
