"""The shell around `decide`: looks at a pod, decides, does, looks again; then writes the status once.

One key per pod (its UID: a pod made again under the same name is another pod), worked on by one worker at a time. The
workers are woken by the pod's object, by the end of any of its processes and by the moment that a plan names.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, being_deleted, namespace_of, uid_of
from trainmaster.cluster.kubelet import actions, sysctls
from trainmaster.cluster.kubelet.checks import Checks
from trainmaster.cluster.kubelet.containers import CHANGED, policy_of
from trainmaster.cluster.kubelet.decide import decide, ended, past_deadline, to_be_ended
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.following import Following
from trainmaster.cluster.kubelet.former import Former
from trainmaster.cluster.kubelet.holder import GATEWAY
from trainmaster.cluster.kubelet.hooks import Hooks
from trainmaster.cluster.kubelet.life import Life, begin, condemn_changed, observe
from trainmaster.cluster.kubelet.observed import Observed
from trainmaster.cluster.kubelet.overuse import is_limited, measure, overuse
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.settings import BadName, NodeSettings, places_of
from trainmaster.cluster.kubelet.shim import KILL_ALL
from trainmaster.cluster.kubelet.starting import Starter
from trainmaster.cluster.kubelet.status import DEADLINE, pod_status
from trainmaster.cluster.kubelet.supplies import Supplies
from trainmaster.cluster.kubelet.volumefiles import VolumeError
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, KubeError, NotFound, is_transient
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

log = logger("kubelet")

WORKERS = 16
# A pod whose object is gone already was deleted by force: no reason to wait for it, but time to say goodbye.
FORCED_GRACE = 1
# How soon an API that cannot be reached is asked again. Not ever more slowly: when it is back after an hour, what ended
# meanwhile must be told at once.
API_RETRY = timedelta(seconds=2)
# How often the pods with limits of disk space are measured, as the kubelet.
MEASURED_EVERY = 10.0


class Pods:
    """All pods of this node."""

    def __init__(
        self, settings: NodeSettings, client: Client, clock: Clock, events: Events, starter: Starter,
        informer: Informer, checks: Checks, hooks: Hooks, supplies: Supplies, following: Following, former: Former,
        keep: Callable[[Life], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._client = client
        self._clock = clock
        self._events = events
        self._starter = starter
        self._informer = informer
        self._checks = checks
        self._hooks = hooks
        self._supplies = supplies
        self._following = following
        self._former = former
        self._keep = keep
        self._lives: dict[str, Life] = {}
        self._trouble = False                      # the API could not be reached, and that was said
        self._draining = False
        self._drained = asyncio.Event()
        self._taken = asyncio.Event()              # the pods that were there when we began
        self._controller: Controller[str] = Controller(
            "kubelet", self._reconcile, clock=clock, workers=WORKERS, informers=[informer]
        )

    async def run(self, left_behind: Iterable[Object]) -> None:
        """Run pods until cancelled; what runs then goes on. Those that are left behind have no object and are ended."""
        await self._informer.synced()
        for pod in left_behind:
            self._take(pod, gone=True)
        self._informer.on_change(self._changed)
        self._taken.set()
        evicting = asyncio.create_task(self._evict())
        try:
            await self._controller.run()
        finally:
            evicting.cancel()
            self._following.close()
            for life in self._lives.values():
                life.cancel()
                for process in [*life.processes.values(), *([life.sandbox] if life.sandbox else [])]:
                    process.forget()

    async def known(self) -> None:
        """Return when the pods of this node are known: before, nobody can be told that there is none of a name."""
        await self._taken.wait()

    async def _evict(self) -> None:
        """Look at the disk now and then, and end the pods that use more of it than they may."""
        while True:
            await self._clock.sleep(MEASURED_EVERY)
            for life in [one for one in self._lives.values() if one.address and is_limited(one.pod)]:
                used = await asyncio.to_thread(measure, life.pod, life.places)
                why = overuse(life.pod, used)
                if why:
                    self.evict(life, why)

    def evict(self, life: Life, why: str) -> None:
        """End a pod that takes more than it may, or than there is."""
        if not life.evicted and life.stopping is None:
            life.evicted = why
            self._events.warning(life.pod, "Evicted", why)
            life.wake()

    async def drain(self) -> None:
        """Stop every pod with its grace and take on no other; returns when all sandboxes are gone."""
        self._draining = True
        for uid in self._lives:
            self._controller.queue.add(uid)
        self._check_drained()
        await self._drained.wait()

    def try_again(self) -> None:
        """Forget what stood in the way of pods: the cause is gone."""
        for uid, life in self._lives.items():
            life.blocked = None
            life.waiting.clear()
            self._controller.queue.add(uid)

    def find(self, namespace: str, name: str) -> Life | None:
        """The pod of that name, if this node has it."""
        pod = self._informer.copy.get(namespace, name)
        return self._lives.get(uid_of(pod)) if pod is not None else None

    def all(self) -> list[Life]:
        """Every pod that this node has."""
        return list(self._lives.values())

    def _changed(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self._take(after, gone=False)
        elif before is not None and (life := self._lives.get(uid_of(before))) is not None:
            life.gone = True
            self._controller.queue.add(life.uid)

    def _take(self, pod: Object, *, gone: bool) -> None:
        uid = uid_of(pod)
        life = self._lives.get(uid)
        if life is None:
            try:
                places = places_of(self._settings, pod)
            except BadName as error:
                self._events.warning(pod, "Failed", f"Error: {error}")
                log.warning("pod refused", reason=error)
                return
            life = begin(pod, places, self._clock.now(), lambda: self._controller.queue.add(uid))
            self._lives[uid] = life
            if life.address:
                self._starter.keep_address(life)
                log.info("pod adopted", pod=pod["metadata"]["name"], namespace=namespace_of(pod), address=life.address)
        else:
            life.learn(pod)
        life.gone = gone
        self._controller.queue.add(uid)

    async def _reconcile(self, uid: str) -> datetime | None:
        life = self._lives.get(uid)
        if life is None:
            return None
        try:
            moment = await self._work(life)
        except KubeError as error:
            if not is_transient(error) or isinstance(error, Conflict):
                raise
            if not self._trouble:
                log.warning("the API cannot be reached; pods go on and are reported later", cause=error)
            self._trouble = True
            return self._clock.now() + API_RETRY
        self._trouble = False
        return moment

    async def _work(self, life: Life) -> datetime | None:
        while True:
            pod, seen = _as_deleted(life), observe(life, self._clock.now(), draining=self._draining)
            now = self._clock.now()        # after the look: nothing that was seen is still to come
            if life.stopping is None and to_be_ended(pod, seen, now):
                life.stopping = now
                seen = replace(seen, stopping=now)
                if past_deadline(pod, seen, now):
                    self._events.normal(pod, *DEADLINE)
                if (refused := sysctls.refusal(pod)) is not None and not ended(pod):
                    self._events.warning(pod, *refused)
            if life.stopping is None:
                self._following.follow(life)
            else:
                self._following.leave(life)
            if life.stopping is None and condemn_changed(life, seen, now):      # then what is seen is not true any more
                continue
            plan = decide(pod, seen, now)
            self._checks.follow(life, seen)
            self._announce(life, seen, now)
            if not plan.actions:
                break
            for action in plan.actions:
                if isinstance(action, actions.Remove):
                    await self._remove(life, seen)
                    return None
                if isinstance(action, actions.EndSandbox) and not being_deleted(pod):
                    await self._end(life, seen)
                else:
                    await self._perform(life, action)
        await self._report(life, seen)
        self._check_drained()
        if life.address:
            await self._refresh(life)
        return actions.earliest(plan.look_again_at, life.renew_at if life.address else None)

    async def _end(self, life: Life, seen: Observed) -> None:
        """All of a pod's containers have ended. Somebody waits for that news and nobody for the end of the sandbox, so
        the status goes out while that is under way, and says already that there is none."""
        telling = asyncio.create_task(self._report(life, replace(seen, address="")))
        try:
            await self._starter.end_sandbox(life)
        finally:
            await telling

    async def _refresh(self, life: Life) -> None:
        """What the volumes show follows the API, once they are there."""
        if not life.behind and (life.renew_at is None or self._clock.now() < life.renew_at):
            return
        try:
            await self._supplies.refresh(life)
        except VolumeError as error:                   # the files stay as they are
            self._events.warning(life.pod, "FailedMount", str(error))

    async def _perform(self, life: Life, action: actions.Action) -> None:
        match action:
            case actions.MakeSandbox():
                await self._starter.make_sandbox(life)
            case actions.EndSandbox():
                await self._starter.end_sandbox(life)
            case actions.Pull(container):
                await self._starter.pull(life, container)
            case actions.Start(container, attempt, level):
                if await self._starter.start(life, container, attempt, level):
                    self._hooks.after_start(life, container, attempt)
            case actions.RunHook(container, grace):
                self._say_why(life, container)
                self._hooks.before_end(life, container, grace)
            case actions.Terminate(container, _):
                self._say_why(life, container)
                life.terminating[container] = self._clock.now()
                self._signal(life, container, signal.SIGTERM)
            case actions.Kill(container, shim):
                self._say_why(life, container)
                now = self._clock.now()
                life.terminating.setdefault(container, now)
                life.killed[container] = now
                self._signal(life, container, signal.SIGKILL if shim else KILL_ALL)

    def _say_why(self, life: Life, name: str) -> None:
        """Tell once why a container is ended, in the kubelet's words."""
        if name in life.terminating or name in life.hooks:
            return
        verdict = life.health[name].verdict if name in life.health and life.stopping is None else ""
        if verdict == "postStart":
            message = "FailedPostStartHook"
        elif verdict == CHANGED:
            message = f"Container {name} definition changed, will be restarted"
        elif verdict:
            again = ", will be restarted" if policy_of(life.pod, life.container(name)) != "Never" else ""
            message = f"Container {name} failed {verdict} probe{again}"
        else:
            message = f"Stopping container {name}"
        self._events.normal(life.pod, "Killing", message)

    def _signal(self, life: Life, container: str, number: int) -> None:
        process = life.processes.get(container)
        log.info("container asked to end", pod=life.pod["metadata"]["name"], container=container, signal=number)
        if process is not None:
            process.send(number)

    def _announce(self, life: Life, seen: Observed, now: datetime) -> None:
        """Say once per attempt that a container waits before it is started again."""
        if not any(state.last is not None and state.last.ended is not None for state in seen.containers.values()):
            return
        status = pod_status(life.pod, seen, now, GATEWAY)
        for one in [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]:
            attempt = (one["name"], one["restartCount"])
            if (one["state"].get("waiting") or {}).get("reason") == "CrashLoopBackOff" and attempt not in life.told:
                life.told.add(attempt)
                self._events.warning(life.pod, "BackOff", one["state"]["waiting"]["message"].capitalize())

    async def _report(self, life: Life, seen: Observed) -> None:
        """Write the status if it is news. Somebody else may have written meanwhile: then compute it anew."""
        for _ in range(5):
            if life.gone:
                return
            status = pod_status(life.pod, seen, self._clock.now(), GATEWAY)
            if status in (life.written, life.pod.get("status")):
                return
            try:
                life.learn(await self._client.replace(PODS, {**life.pod, "status": status}, subresource="status"))
                life.written = status
                return
            except NotFound:
                return
            except Conflict:
                fresh = await self._client.get(PODS, life.pod["metadata"]["name"], namespace_of(life.pod))
                if uid_of(fresh) != life.uid:
                    return
                life.learn(fresh)

    async def _remove(self, life: Life, seen: Observed) -> None:
        """All processes are gone. First the last status, then the object, and once that is gone the files."""
        if not life.gone:
            await self._report(life, seen)
            with contextlib.suppress(NotFound, Conflict):
                await self._client.delete(
                    PODS, life.pod["metadata"]["name"], namespace_of(life.pod), uid=life.uid, grace=0
                )
            return                         # the watch will tell that it is gone, or that a finalizer keeps it
        life.cancel()
        await self._keep(life)             # first: which attempt was the last is known by the records
        await asyncio.to_thread(remove, life.places.pod)
        await asyncio.to_thread(self._former.keep, life.pod, life.places.logs)
        self._starter.forget(life.uid)
        self._lives.pop(life.uid, None)
        self._check_drained()

    def _check_drained(self) -> None:
        if self._draining and not any(life.sandbox or life.processes for life in self._lives.values()):
            self._drained.set()


def _as_deleted(life: Life) -> Object:
    """A pod whose object is gone is one that is being deleted, by force."""
    if not life.gone:
        return life.pod
    about = {**life.pod["metadata"], "deletionTimestamp": "gone", "deletionGracePeriodSeconds": FORCED_GRACE}
    return {**life.pod, "metadata": about}
