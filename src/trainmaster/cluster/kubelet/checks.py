"""The shell around `probing`: asks containers at the right times and remembers what their answers came to.

One task per probe of a running attempt, made and ended as the pod's life says. What is known about an attempt is kept
in the pod's `Life`; only that an attempt must end is also written down, so that an agent that dies between the verdict
and the end does not take the end for an ordinary one.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.api.meta import being_deleted
from trainmaster.cluster.kubelet import probing
from trainmaster.cluster.kubelet.containers import all_containers
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.handlers import Answer, Unable, ask
from trainmaster.cluster.kubelet.life import Life, condemned, health_of
from trainmaster.cluster.kubelet.observed import Observed
from trainmaster.cluster.kubelet.probing import Probe, Tally
from trainmaster.cluster.kubelet.reaching import Reach
from trainmaster.runtime.clock import Clock

TRIES = 3         # of a question that could not be put, before the look counts for nothing


@dataclass(slots=True)
class Checks:
    """The probes of all pods of a node."""

    clock: Clock
    events: Events
    reach: Reach

    def follow(self, life: Life, seen: Observed) -> None:
        """Have exactly the probes running that the containers need now."""
        needed: dict[tuple[str, int, str], tuple[Probe, datetime]] = {}
        for container in all_containers(life.pod):
            state = seen.of(container["name"])
            for probe in probing.wanted(container, state, deleted=life.gone or being_deleted(life.pod)):
                assert state.last is not None
                needed[container["name"], state.last.number, probe.kind] = (probe, state.last.created)
        for key in set(life.probes) - set(needed):
            life.probes.pop(key).cancel()
        for key, (probe, since) in needed.items():
            if key not in life.probes:
                life.probes[key] = asyncio.create_task(self._watch(life, key[0], key[1], probe, since))

    def forget(self, life: Life) -> None:
        for task in life.probes.values():
            task.cancel()
        life.probes.clear()

    async def _watch(self, life: Life, name: str, attempt: int, probe: Probe, since: datetime) -> None:
        tally = Tally()
        due = max(since + probe.delay, self.clock.now())
        while True:
            await self.clock.sleep_until(due)
            answer = await self._look(life, name, attempt, probe)
            if answer is not None:
                tally = tally.after(probe, answer.well)
                self._conclude(life, name, attempt, probe, tally)
                if probing.settled(probe, tally):
                    await asyncio.Event().wait()       # until the attempt is over, or its next probes are wanted
            due = probing.next_look(due, self.clock.now(), probe.period)

    async def _look(self, life: Life, name: str, attempt: int, probe: Probe) -> Answer | None:
        """One look; None when it could not be had."""
        trouble = ""
        for _ in range(TRIES):
            try:
                answer = await ask(self.reach(life, name, attempt), probe.handler, probe.timeout.total_seconds())
            except Unable as unable:
                trouble = str(unable)
                continue
            what = f"{probe.kind.capitalize()} probe"
            if answer.warning:
                self.events.warning(life.pod, "ProbeWarning", f"{what} warning: {answer.warning}")
            elif not answer.well:
                self.events.warning(life.pod, "Unhealthy", f"{what} failed: {answer.text}")
            return answer
        self.events.warning(
            life.pod, "Unhealthy", f"{probe.kind.capitalize()} probe errored and resulted in unknown state: {trouble}"
        )
        return None

    def _conclude(self, life: Life, name: str, attempt: int, probe: Probe, tally: Tally) -> None:
        known = health_of(life, name, attempt)
        if probe.kind == "readiness":
            found = replace(known, ready=tally.outcome if tally.outcome is not None else known.ready)
        elif tally.outcome is None or (probe.kind == "liveness" and tally.outcome):
            return
        elif tally.outcome:
            found = replace(known, started=True)
        else:
            condemned(life, name, attempt, probe.kind, self.clock.now())
            return
        if found != known:
            life.health[name] = found
            life.wake()

