"""Bringing a pod's parts into being: volumes, sandbox, images, containers; and giving the sandbox back.

Each method is one action of a plan, safe to repeat, and ends in a changed `Life`. What cannot be done now is noted
there with the API's word for it and a moment to try again; nothing here decides whether to.
"""

import asyncio
import signal
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import binds, cgroups, environment, gpus, isolation, plans, reap, records, volumes
from trainmaster.cluster.kubelet.cgroups import Cgroups
from trainmaster.cluster.kubelet.confinement import LimitPlan
from trainmaster.cluster.kubelet.environment import ConfigError
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.gpus import Gpu
from trainmaster.cluster.kubelet.holder import GATEWAY
from trainmaster.cluster.kubelet.images import Image, ImageError, Images
from trainmaster.cluster.kubelet.launcher import Answer, Launcher, Process, adopt
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.machinefiles import text_of
from trainmaster.cluster.kubelet.observed import Waiting
from trainmaster.cluster.kubelet.privacy import Privacy
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.cluster.kubelet.shells import stand_in
from trainmaster.cluster.kubelet.shim import ContainerPlan
from trainmaster.cluster.kubelet.status import quality_of_service
from trainmaster.cluster.kubelet.supplies import Supplies
from trainmaster.cluster.kubelet.volumefiles import VolumeError
from trainmaster.cluster.network.addresses import Addresses
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("kubelet")

RETRY = timedelta(seconds=10)
# Before the first of these: in a new namespace, the certificate and the account may be a moment later than the pod.
SOON = timedelta(milliseconds=500)
LONGEST_RETRY = timedelta(minutes=5)
# An image that is there is ready at once: worth this wait, to spare the pod a status that says it is being pulled.
SHORT_PULL = 0.05


class Starter:
    """Makes and unmakes the parts of pods."""

    def __init__(
        self, settings: NodeSettings, supplies: Supplies, images: Images, clock: Clock, events: Events,
        launcher: Launcher, *, rootless: bool, allocatable: Mapping[str, str], groups: Cgroups,
        privacy: Privacy, addresses: Addresses,
    ) -> None:
        self._settings = settings
        self._supplies = supplies
        self._images = images
        self._clock = clock
        self._events = events
        self._launcher = launcher
        self._rootless = rootless
        self._allocatable = allocatable
        self._groups = groups
        self._privacy = privacy
        self._choosing = asyncio.Lock()
        self._addresses = addresses

    def keep_address(self, life: Life) -> None:
        """An adopted pod has its address already."""
        self._addresses.keep(life.uid, life.address)

    async def make_sandbox(self, life: Life) -> None:
        pod, places = life.pod, life.places
        now = self._clock.now()
        try:
            for directory in (places.pod, places.shm, places.volumes, places.logs):
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            records.write(str(places.pod), records.POD, reap.pod_record(pod))
            life.volumes = await self._supplies.prepare(life)
            if not self._adopted(life):
                if why := isolation.trouble(pod, rootless=self._rootless):
                    raise Failed("isolate the pod", 0, why)
                address = GATEWAY if environment.shares_network(pod) else self._addresses.reserve(life.uid)
                self._addresses.keep(life.uid, address)
                answer = await self._launcher.sandbox(plans.sandbox_plan(pod, places, address, life.volumes))
                self._made(life, answer)
                if notes := isolation.notes(pod):
                    self._events.warning(pod, isolation.NOT_HONOURED, notes)
        except VolumeError as error:
            self._block(life, now, "FailedMount", str(error))
        except (Failed, OSError) as error:
            self._block(life, now, "FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}")
        else:
            life.blocked = None
            life.address = life.last_address = self._addresses.of(life.uid)

    def _made(self, life: Life, answer: Answer) -> None:
        if answer.fds:
            life.sandbox = Process(answer.fds[0], life.wake)
        elif not self._adopted(life):      # an earlier agent's request, still under way, was quicker, and died
            raise Failed("make the sandbox", 0, "another one was made at the same time and ended")

    def _adopted(self, life: Life) -> bool:
        """Take over the sandbox that the disk names, if it lives; a dead one's record would be in the way."""
        record = records.read(str(life.places.pod), records.SANDBOX)
        if record is None:
            return False
        life.sandbox = adopt(record, life.wake)
        if life.sandbox is None:
            (life.places.pod / records.SANDBOX).unlink(missing_ok=True)
            return False
        self._addresses.keep(life.uid, str(record.get("address", "")))
        return True

    async def end_sandbox(self, life: Life) -> None:
        if life.sandbox is not None:
            life.sandbox.send(signal.SIGKILL)
            await life.sandbox.end()
            life.sandbox = None
        (life.places.pod / records.SANDBOX).unlink(missing_ok=True)
        self._groups.remove(life.uid)
        self._addresses.free(life.uid)
        life.address = ""

    def forget(self, uid: str) -> None:
        """Nothing of a pod is left but perhaps groups: those of a sandbox that ended by itself."""
        self._groups.remove(uid)

    async def pull(self, life: Life, container: str) -> None:
        name = str(life.container(container).get("image", ""))
        life.waiting.pop(container, None)
        task = life.pulls[container] = asyncio.create_task(self._pull_image(life, container, name))
        await asyncio.wait([task], timeout=SHORT_PULL)

    async def _pull_image(self, life: Life, container: str, name: str) -> None:
        began, working = self._clock.monotonic(), False

        def progress(text: str) -> None:
            nonlocal working
            if not working:
                self._events.normal(life.pod, "Pulling", f'Pulling image "{name}"')
            working = True
            self._events.normal(life.pod, "Pulling", f'Pulling image "{name}": {text}')

        try:
            image = await self._images.prepare(name, progress)
            _check_command(life.container(container), image)
        except ImageError as error:
            failures = life.pull_failures[container] = life.pull_failures.get(container, 0) + 1
            retry = min(LONGEST_RETRY, RETRY * 2 ** min(failures - 1, 5))
            reason, message = error.reason, str(error)
            if reason == "InvalidImageName":
                self._events.warning(life.pod, "InspectFailed", f'Failed to apply default image tag "{name}": {error}')
            else:
                self._events.warning(life.pod, "Failed", f'Failed to pull image "{name}": {error}')
                if failures > 1:
                    reason, message = "ImagePullBackOff", f'Back-off pulling image "{name}": {reason}: {error}'
            life.waiting[container] = Waiting(reason, message, self._clock.now() + retry)
        else:
            took = self._clock.monotonic() - began
            if image.warning:
                self._events.warning(life.pod, "ImageNotInCatalog", image.warning)
            elif working:
                self._events.normal(life.pod, "Pulled", f'Successfully pulled image "{name}" in {took:.3f}s')
            else:
                self._events.normal(life.pod, "Pulled", f'Container image "{name}" already present on machine')
            if image.note:
                self._events.normal(life.pod, "Substituted", f'Image "{name}": {image.note}')
            life.images[container] = image
        finally:
            life.pulls.pop(container, None)
            life.wake()

    async def start(self, life: Life, name: str, attempt: int, level: int) -> bool:
        """Whether it runs."""
        container = life.container(name)
        try:
            # From the choice of GPUs until the record that says who has them, one after the other.
            async with self._choosing if self._settings.gpus and gpus.wanted(container) else nullcontext():
                plan = await self._container_plan(life, container, attempt, level)
                if life.sandbox is None or life.sandbox.ended:
                    return False           # it was lost while we prepared; the next look sees that
                answer = await self._launcher.container(plan, life.sandbox.pidfd, _target(life, container))
        except (ConfigError, VolumeError) as error:
            self._hold_back(life, name, "CreateContainerConfigError", str(error))
            return False
        except (Failed, OSError) as error:
            # A place in a volume that is not what it was a moment ago is to a kubelet a question of the configuration.
            moved = isinstance(error, Failed) and error.step.startswith(binds.SUB_PATH)
            self._hold_back(life, name, "CreateContainerConfigError" if moved else "CreateContainerError", str(error))
            return False
        life.anew(name)
        self._events.normal(life.pod, "Created", f"Created container: {name}")
        if answer.fds:
            life.processes[name] = Process(answer.fds[0], life.wake)
            self._events.normal(life.pod, "Started", f"Started container {name}")
            return True
        if "start_error" in answer.message:
            self._events.warning(life.pod, "Failed", f"Error: {answer.message['start_error']}")
        return False

    async def _container_plan(self, life: Life, container: Object, attempt: int, level: int) -> ContainerPlan:
        pod, places, name = life.pod, life.places, container["name"]
        image = life.images[name]
        if life.volumes is None:           # an adopted pod: its volumes are there, we only have to know them
            life.volumes = await self._supplies.prepare(life)
        sources = await self._supplies.sources(life, *environment.references(container))
        values = {**self._settings.announced(pod, container),
                  **environment.environment(pod, container, image, sources)}
        own: tuple[Gpu, ...] = ()
        if self._settings.gpus:
            own = gpus.given(container, self._settings.gpus, gpus.held(self._settings.pods))
            values = {**gpus.variables(own), **values}
        plan = plans.container_plan(
            pod, container, image, places, attempt=attempt, level=level, address=life.address,
            rootless=self._rootless, argv=environment.command(container, image, values), environment=values,
            binds=volumes.binds(container, life.volumes, values), hidden=self._settings.hidden,
            limits=self._limits(life, container, attempt),
            resolver=text_of("/etc/resolv.conf"), hosts=text_of("/etc/hosts"),
            private=await self._privacy.paths(), devices=sorted({path for gpu in own for path in gpu.devices}),
            facts={"gpus": [gpu.name for gpu in own]} if own else {},
            log_limits=(self._settings.log_bytes, self._settings.log_files), shell=stand_in(),
        )
        directory = places.attempt(name, attempt)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.log(name, attempt).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        message = directory / plans.TERMINATION_FILE
        message.touch()
        message.chmod(0o666)
        if attempt >= 2:                   # the last two are kept: the state, and `logs --previous`
            for of in (places.attempt, places.layer, places.log):
                await asyncio.to_thread(remove, of(name, attempt - 2))
        return plan

    def _limits(self, life: Life, container: Object, attempt: int) -> LimitPlan:
        """Groups for an attempt where the machine has them, in place of those of the attempt before."""
        own, name = cgroups.limits_of(container), container["name"]
        if attempt:
            self._groups.remove(life.uid, f"{name}-{attempt - 1}")
        joined = self._groups.make(life.uid, cgroups.limits_of_pod(life.pod), f"{name}-{attempt}", own)
        watched = own.memory if own.memory and not self._groups.limits_memory else 0
        machine = int(quantity.parse(self._allocatable.get("memory", "0")))
        return {
            "groups": joined, "watch": watched,
            "score": cgroups.score(container, quality_of_service(life.pod), machine),
            "processes": 0 if "pids" in self._groups.folders else cgroups.MOST_PROCESSES,
        }

    def _block(self, life: Life, now: datetime, reason: str, message: str) -> None:
        life.blocked = Waiting(reason, message, now + (SOON if life.blocked is None else RETRY))
        self._events.warning(life.pod, reason, message)
        log.warning("pod cannot be started", pod=life.pod["metadata"]["name"], reason=reason, cause=message)

    def _hold_back(self, life: Life, container: str, reason: str, message: str) -> None:
        life.waiting[container] = Waiting(reason, message, self._clock.now() + RETRY)
        self._events.warning(life.pod, "Failed", f"Error: {message}")


def _target(life: Life, container: Object) -> int | None:
    """The shim of the container that an ephemeral one looks into. Raises ConfigError while there is none."""
    name = container.get("targetContainerName")
    if not name or life.pod["spec"].get("shareProcessNamespace"):
        return None
    process = life.processes.get(str(name))
    if process is None or process.ended:
        raise ConfigError(f'container "{name}", whose processes "{container["name"]}" is to see, does not run')
    return process.pidfd


def _check_command(container: Object, image: Image) -> None:
    """An image that brings no command needs one from the pod."""
    if not environment.command(container, image, {}):
        raise ImageError(
            "ErrImagePull",
            f"image '{image.name}' is not in this machine's catalog and container '{container['name']}' has no "
            "command: give it one, or add the image with 'trainmaster images add'.",
        )
