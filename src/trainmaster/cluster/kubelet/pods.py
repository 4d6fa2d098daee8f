"""The shell around `decide`: looks at a pod, decides, does, looks again; then writes the status once.

One key per pod (its UID: a pod made again under the same name is another pod), worked on by one worker at a time. The
workers are woken by the pod's object, by the end of any of its processes and by the moment that a plan names.
"""

import asyncio
import signal
from collections.abc import Mapping
from datetime import datetime, timedelta

from trainmaster.api.core import CONFIG_MAPS, PODS, SECRETS
from trainmaster.api.meta import Object, Resource, namespace_of, uid_of
from trainmaster.cluster.kubelet import decide as decisions
from trainmaster.cluster.kubelet import environment, plans, reap, records, volumes
from trainmaster.cluster.kubelet.environment import ConfigError, Sources
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.holder import GATEWAY
from trainmaster.cluster.kubelet.images import Image, ImageError, Images
from trainmaster.cluster.kubelet.launcher import Launcher, Process, adopt
from trainmaster.cluster.kubelet.life import Life, begin, observe
from trainmaster.cluster.kubelet.observed import Observed, Waiting
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.settings import BadName, NodeSettings, places_of
from trainmaster.cluster.kubelet.shim import KILL_ALL, ContainerPlan
from trainmaster.cluster.kubelet.status import pod_status
from trainmaster.cluster.kubelet.volumes import VolumeError
from trainmaster.cluster.network.addresses import next_address
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.store import older

log = logger("kubelet")

WORKERS = 16
RETRY = timedelta(seconds=10)
LONGEST_RETRY = timedelta(minutes=5)
# A pod whose object is gone already was deleted by force: no reason to wait for it, but time to say goodbye.
FORCED_GRACE = 1


class Pods:
    """All pods of this node."""

    def __init__(
        self, settings: NodeSettings, client: Client, images: Images, clock: Clock, events: Events, launcher: Launcher,
        informer: Informer, *, rootless: bool, allocatable: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._client = client
        self._images = images
        self._clock = clock
        self._events = events
        self._launcher = launcher
        self._informer = informer
        self._rootless = rootless
        self._allocatable = allocatable
        self._lives: dict[str, Life] = {}
        self._addresses: dict[str, str] = {}       # uid -> address, from before the sandbox is made
        self._last_address: str | None = None
        self._draining = False
        self._drained = asyncio.Event()
        self._controller: Controller[str] = Controller(
            "kubelet", self._reconcile, clock=clock, workers=WORKERS, informers=[informer]
        )

    async def run(self) -> None:
        """Run pods until cancelled. What runs then goes on."""
        await self._informer.synced()
        known = {uid_of(pod) for pod in self._informer.copy.all()}
        for pod in reap.left_behind(self._settings, known):
            self._take(pod, gone=True)
        for orphan in list(reap.orphans(self._settings, known)):
            await asyncio.to_thread(remove, orphan)
        self._informer.on_change(self._changed)
        try:
            await self._controller.run()
        finally:
            for life in self._lives.values():
                for task in life.pulls.values():
                    task.cancel()
                for process in [*life.processes.values(), *([life.sandbox] if life.sandbox else [])]:
                    process.forget()

    async def drain(self) -> None:
        """Stop every pod with its grace and take on no other; returns when all sandboxes are gone."""
        self._draining = True
        for uid in self._lives:
            self._controller.queue.add(uid)
        self._check_drained()
        await self._drained.wait()

    def find(self, namespace: str, name: str) -> Life | None:
        """The pod of that name, if this node has it."""
        pod = self._informer.copy.get(namespace, name)
        return self._lives.get(uid_of(pod)) if pod is not None else None

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
                self._addresses[uid] = life.address
                log.info("pod adopted", pod=pod["metadata"]["name"], namespace=namespace_of(pod), address=life.address)
        elif not older(pod["metadata"].get("resourceVersion", ""), life.pod["metadata"].get("resourceVersion", "")):
            life.pod = pod
        life.gone = gone
        self._controller.queue.add(uid)

    async def _reconcile(self, uid: str) -> datetime | None:
        life = self._lives.get(uid)
        if life is None:
            return None
        while True:
            now = self._clock.now()
            seen = observe(life, now, draining=self._draining)
            plan = decisions.decide(_as_deleted(life), seen, now)
            self._announce(life, seen, now)
            if not plan.actions:
                break
            for action in plan.actions:
                if isinstance(action, decisions.Remove):
                    await self._remove(life, seen)
                    return None
                await self._perform(life, action)
        await self._report(life, seen)
        self._check_drained()
        return plan.look_again_at

    async def _perform(self, life: Life, action: decisions.Action) -> None:
        match action:
            case decisions.MakeSandbox():
                await self._make_sandbox(life)
            case decisions.EndSandbox():
                await self._end_sandbox(life)
            case decisions.Pull(container):
                self._pull(life, container)
            case decisions.Start(container, attempt, level):
                await self._start(life, container, attempt, level)
            case decisions.Terminate(container, _):
                life.terminating[container] = self._clock.now()
                self._events.normal(life.pod, "Killing", f"Stopping container {container}")
                self._signal(life, container, signal.SIGTERM)
            case decisions.Kill(container, shim):
                now = self._clock.now()
                if container not in life.terminating:
                    self._events.normal(life.pod, "Killing", f"Stopping container {container}")
                life.terminating.setdefault(container, now)
                life.killed[container] = now
                self._signal(life, container, signal.SIGKILL if shim else KILL_ALL)

    async def _make_sandbox(self, life: Life) -> None:
        pod, places = life.pod, life.places
        now = self._clock.now()
        try:
            for directory in (places.pod, places.shm, places.volumes, places.logs):
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            records.write(str(places.pod), records.POD, reap.pod_record(pod))
            life.volumes = await self._prepare_volumes(life)
            address = self._reserve(life.uid)
            answer = await self._launcher.sandbox(plans.sandbox_plan(pod, places, address, life.volumes))
        except VolumeError as error:
            self._block(life, now, "FailedMount", str(error))
        except (Failed, OSError) as error:
            self._block(life, now, "FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}")
        else:
            if answer.fds:
                life.sandbox = Process(answer.fds[0], life.wake)
            else:                          # somebody was quicker: an earlier agent's request that was still under way
                self._adopt_sandbox(life)
            life.blocked = None
            life.address = life.last_address = self._addresses[life.uid]

    def _adopt_sandbox(self, life: Life) -> None:
        record = records.read(str(life.places.pod), records.SANDBOX) or {}
        life.sandbox = adopt(record, life.wake)
        if life.sandbox is None:
            (life.places.pod / records.SANDBOX).unlink(missing_ok=True)
            raise Failed("adopt the sandbox", 0, "it ended meanwhile")
        self._addresses[life.uid] = str(record.get("address", ""))

    def _reserve(self, uid: str) -> str:
        if uid not in self._addresses:
            address = next_address(set(self._addresses.values()), self._last_address)
            self._addresses[uid] = self._last_address = address
        return self._addresses[uid]

    async def _end_sandbox(self, life: Life) -> None:
        if life.sandbox is not None:
            life.sandbox.send(signal.SIGKILL)
            await life.sandbox.end()
            life.sandbox = None
        (life.places.pod / records.SANDBOX).unlink(missing_ok=True)
        self._addresses.pop(life.uid, None)
        life.address = ""

    async def _prepare_volumes(self, life: Life) -> volumes.Volumes:
        sources = await self._sources(life, *volumes.references(life.pod))
        return await asyncio.to_thread(volumes.prepare, life.pod, life.places.volumes, sources)

    async def _sources(self, life: Life, maps: set[str], secrets: set[str]) -> Sources:
        namespace = namespace_of(life.pod)

        async def fetched(resource: Resource, names: set[str]) -> dict[str, Object]:
            found = {}
            for name in names:
                try:
                    found[name] = await self._client.get(resource, name, namespace)
                except NotFound:
                    continue
            return found

        fields = {"status.hostIP": GATEWAY, "status.hostIPs": GATEWAY}
        if life.address:
            fields |= {"status.podIP": life.address, "status.podIPs": life.address}
        return Sources(await fetched(CONFIG_MAPS, maps), await fetched(SECRETS, secrets), fields, self._allocatable)

    def _pull(self, life: Life, container: str) -> None:
        name = str(life.container(container).get("image", ""))
        life.waiting.pop(container, None)
        life.pulls[container] = asyncio.create_task(self._pull_image(life, container, name))

    async def _pull_image(self, life: Life, container: str, name: str) -> None:
        began = self._clock.monotonic()
        self._events.normal(life.pod, "Pulling", f'Pulling image "{name}"')
        try:
            image = await self._images.prepare(name, lambda text: log.info("image", image=name, progress=text))
            _check_command(life.container(container), image)
        except ImageError as error:
            failures = life.pull_failures[container] = life.pull_failures.get(container, 0) + 1
            retry = min(LONGEST_RETRY, RETRY * 2 ** min(failures - 1, 5))
            life.waiting[container] = Waiting(error.reason, str(error), self._clock.now() + retry)
            self._events.warning(life.pod, "Failed", f'Failed to pull image "{name}": {error}')
        else:
            took = self._clock.monotonic() - began
            self._events.normal(life.pod, "Pulled", f'Successfully pulled image "{name}" in {took:.3f}s')
            if image.warning:
                self._events.warning(life.pod, "ImageNotInCatalog", image.warning)
            life.images[container] = image
        finally:
            life.pulls.pop(container, None)
            life.wake()

    async def _start(self, life: Life, name: str, attempt: int, level: int) -> None:
        container = life.container(name)
        try:
            plan = await self._container_plan(life, container, attempt, level)
            assert life.sandbox is not None
            answer = await self._launcher.container(plan, life.sandbox.pidfd)
        except (ConfigError, VolumeError) as error:
            self._hold_back(life, name, "CreateContainerConfigError", str(error))
            return
        except (Failed, OSError) as error:
            self._hold_back(life, name, "CreateContainerError", str(error))
            return
        life.waiting.pop(name, None)
        life.terminating.pop(name, None)
        life.killed.pop(name, None)
        self._events.normal(life.pod, "Created", f"Created container: {name}")
        if answer.fds:
            life.processes[name] = Process(answer.fds[0], life.wake)
            self._events.normal(life.pod, "Started", f"Started container {name}")
        elif "start_error" in answer.message:
            self._events.warning(life.pod, "Failed", f"Error: {answer.message['start_error']}")

    async def _container_plan(self, life: Life, container: Object, attempt: int, level: int) -> ContainerPlan:
        pod, places, name = life.pod, life.places, container["name"]
        image = life.images[name]
        if life.volumes is None:           # an adopted pod: its volumes are there, we only have to know them
            life.volumes = await self._prepare_volumes(life)
        sources = await self._sources(life, *environment.references(container))
        values = environment.environment(pod, container, image, sources)
        plan = plans.container_plan(
            pod, container, image, places, attempt=attempt, level=level, address=life.address,
            rootless=self._rootless, argv=environment.command(container, image, values), environment=values,
            binds=volumes.binds(container, life.volumes, values), hidden=self._settings.hidden,
        )
        directory = places.attempt(name, attempt)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.log(name, attempt).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        message = directory / plans.TERMINATION_FILE
        message.touch()
        message.chmod(0o666)
        if attempt >= 2:                   # the last two are kept: the state, and `logs --previous`
            stale = places.attempt(name, attempt - 2)
            await asyncio.to_thread(remove, stale)
            places.log(name, attempt - 2).unlink(missing_ok=True)
        return plan

    def _signal(self, life: Life, container: str, number: int) -> None:
        process = life.processes.get(container)
        if process is not None:
            process.send(number)

    def _block(self, life: Life, now: datetime, reason: str, message: str) -> None:
        life.blocked = Waiting(reason, message, now + RETRY)
        self._events.warning(life.pod, reason, message)
        log.warning("pod cannot be started", pod=life.pod["metadata"]["name"], reason=reason, cause=message)

    def _hold_back(self, life: Life, container: str, reason: str, message: str) -> None:
        life.waiting[container] = Waiting(reason, message, self._clock.now() + RETRY)
        self._events.warning(life.pod, "Failed", f"Error: {message}")

    def _announce(self, life: Life, seen: Observed, now: datetime) -> None:
        """Say once per attempt that a container waits before it is started again."""
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
                life.pod = await self._client.replace(PODS, {**life.pod, "status": status}, subresource="status")
                life.written = status
                return
            except NotFound:
                return
            except Conflict:
                fresh = await self._client.get(PODS, life.pod["metadata"]["name"], namespace_of(life.pod))
                if uid_of(fresh) != life.uid:
                    return
                life.pod = fresh

    async def _remove(self, life: Life, seen: Observed) -> None:
        """All processes are gone. First the last status, then the object, and once that is gone the files."""
        if not life.gone:
            await self._report(life, seen)
            try:
                await self._client.delete(
                    PODS, life.pod["metadata"]["name"], namespace_of(life.pod), uid=life.uid, grace=0
                )
            except (NotFound, Conflict):
                pass
            else:
                return                     # the watch will tell that it is gone, or that a finalizer keeps it
            life.gone = True
        for task in life.pulls.values():
            task.cancel()
        for directory in (life.places.pod, life.places.volumes, life.places.logs):
            await asyncio.to_thread(remove, directory)
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


def _check_command(container: Object, image: Image) -> None:
    """An image that brings no command needs one from the pod."""
    if not environment.command(container, image, {}):
        raise ImageError(
            "ErrImagePull",
            f"image '{image.name}' is not in this machine's catalog and container '{container['name']}' has no "
            "command: give it one, or add the image with 'trainmaster images add'.",
        )
