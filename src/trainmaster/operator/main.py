"""Wires the operator and runs it until it is told to stop. Installs nothing: it expects the definitions to be there."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from trainmaster.api.core import PODS, SERVICES
from trainmaster.api.meta import Key, Object, controller_of, key_of, metadata, namespace_of
from trainmaster.engine.observed import OPERATOR_NAME
from trainmaster.frameworks.framework import Framework
from trainmaster.frameworks.registry import FRAMEWORKS
from trainmaster.kube.client import Client
from trainmaster.operator.config import DEFAULTS, Settings
from trainmaster.operator.observe import OWNER, Children, owner_index
from trainmaster.operator.reconciler import Reconciler
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.recent import Recent

# News about the pods of a job comes in bursts. Waiting so long shows a burst as one change: one status instead of one
# for each pod, and what ends together is judged together. Shorter than anybody notices.
BURST = timedelta(milliseconds=20)

log = logger("operator")


async def run(
    client: Client, clock: Clock, settings: Settings = DEFAULTS, ready: Callable[[], None] = lambda: None
) -> None:
    """Run all jobs of the cluster, or of one namespace, until cancelled. `ready` is called once it is up to date."""
    frameworks = [known for known in FRAMEWORKS if not settings.kinds or known.kind.kind in settings.kinds]
    # Only what carries our labels: a cluster has many pods, and few of them are ours.
    ours = f"{OPERATOR_NAME} in ({','.join(sorted(known.kind.controller for known in frameworks))})"
    pods, services = (
        Informer(client, resource, clock=clock, namespace=settings.namespace, labels=ours, indexes={OWNER: owner_index})
        for resource in (PODS, SERVICES)
    )
    children = Children(pods, services, Recent(clock), Recent(clock))
    informers, controllers = [pods, services], []
    for framework in frameworks:
        jobs = Informer(client, framework.kind.resource, clock=clock, namespace=settings.namespace)
        reconciler = Reconciler(framework, client, clock, settings, jobs, children)
        controller: Controller[Key] = Controller(
            framework.kind.controller, reconciler.reconcile, clock=clock, workers=settings.workers,
            informers=[pods, services, jobs],
        )
        _connect(controller, framework, clock, jobs, (pods, services))
        informers.append(jobs)
        controllers.append(controller)
    async with asyncio.TaskGroup() as group:
        for informer in informers:
            group.create_task(informer.run())
        for controller in controllers:
            group.create_task(controller.run())
        for informer in informers:
            await informer.synced()
        log.info("operator runs", kinds=",".join(known.kind.kind for known in frameworks))
        ready()


def _connect(
    controller: Controller[Key], framework: Framework, clock: Clock, jobs: Informer, children: tuple[Informer, ...]
) -> None:
    """Look at a job whenever it or one of its children changes. What the change was is not passed on."""

    def job_changed(before: Object | None, after: Object | None) -> None:
        thing = after or before
        if thing is None:
            return
        if before is None or after is None or _generation(before) != _generation(after):
            controller.queue.add(key_of(thing))  # somebody asked for something
        else:
            controller.queue.add_at(key_of(thing), clock.now() + BURST)

    def child_changed(before: Object | None, after: Object | None) -> None:
        for thing in (before, after):
            owner = controller_of(thing) if thing is not None else None
            if thing is not None and owner and owner.get("kind") == framework.kind.kind:
                key = Key(namespace_of(thing), str(owner.get("name")))
                controller.queue.add_at(key, clock.now() + BURST)

    jobs.on_change(job_changed)
    for informer in children:
        informer.on_change(child_changed)


def _generation(thing: Object) -> int:
    return int(metadata(thing).get("generation") or 0)
