"""Lifecycle hooks: run after a container's start and before its end, in the background.

A hook that fails ends the container it belongs to (postStart) or is only told (preStop). An agent that is replaced
meanwhile does not repeat a postStart hook, and does repeat a preStop one: as the kubelet, which promises at least once.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.cluster.kubelet.containers import hook_of
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.handlers import Unable, run_hook
from trainmaster.cluster.kubelet.life import Hook, Life, condemned
from trainmaster.cluster.kubelet.reaching import Reach
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("kubelet")

# A postStart hook has no limit of its own; the container waits with it.
_ANY_TIME = 24 * 3600.0


@dataclass(slots=True)
class Hooks:
    """The hooks of all pods of a node."""

    clock: Clock
    events: Events
    reach: Reach

    def after_start(self, life: Life, name: str, attempt: int) -> None:
        """Begin the postStart hook of an attempt, if it has one."""
        hook = hook_of(life.container(name), "postStart")
        if hook is None:
            return

        async def work() -> None:
            try:
                await run_hook(self.reach(life, name, attempt), hook, _ANY_TIME)
            except Unable as unable:
                log.warning("postStart hook failed", pod=life.pod["metadata"]["name"], container=name, cause=unable)
                self.events.warning(life.pod, "FailedPostStartHook", "PostStartHook failed")
                condemned(life, name, attempt, "postStart", self.clock.now())
            finally:
                life.beginning.pop(name, None)
                life.wake()

        life.beginning[name] = asyncio.create_task(work())

    def before_end(self, life: Life, name: str, grace: timedelta) -> None:
        """Begin the preStop hook of a running container."""
        hook = hook_of(life.container(name), "preStop")
        assert hook is not None
        attempt = life.health[name].attempt

        async def work() -> None:
            try:
                await run_hook(self.reach(life, name, attempt), hook, grace.total_seconds())
            except Unable as unable:
                log.warning("preStop hook failed", pod=life.pod["metadata"]["name"], container=name, cause=unable)
                self.events.warning(life.pod, "FailedPreStopHook", "PreStopHook failed")
            finally:
                life.wake()

        life.hooks[name] = Hook(self.clock.now(), asyncio.create_task(work()))
