"""Files of pods that are gone, kept for as long as what they belonged to.

What a training wrote to `./` is its result, and its pod may be gone before anybody asks for it: cleanPodPolicy removes
pods when their job ends, a restart replaces them. So what a pod with a controller wrote stays, under a record that says
whose it was and where its containers saw it, until that controller is gone: a watch of its kind tells. Of pods of one
name the last one's are kept. What the API had put into volumes, such as secrets, goes with the pod.

A node may watch the kinds that make pods (`OWNER_GROUPS`, see the API server's `node_access`). What belongs to another
kind goes with its pod: nobody would say when it may.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from trainmaster.api.core import OWNER_GROUPS
from trainmaster.api.meta import Object, controller_of, name_of, namespace_of, uid_of
from trainmaster.cluster.kubelet import plans, records
from trainmaster.cluster.kubelet.containers import all_containers
from trainmaster.cluster.kubelet.finding import Refused, attempt_of
from trainmaster.cluster.kubelet.former import whose
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube import discovery
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

MOST_OF_ONE = 1000           # pods of one owner: a set that makes ever new names must not fill the disk
AGAIN = 60.0

log = logger("kubelet")


class Keeping:
    """What is kept in the folder of pods' volumes."""

    def __init__(self, folder: Path, client: Client, clock: Clock) -> None:
        self._folder, self._client, self._clock = folder, client, clock
        self._kept: dict[Path, Object] = {}
        self._kinds: dict[tuple[str, str], asyncio.Task[None]] = {}      # (apiVersion, kind) of owners that are watched

    async def run(self) -> None:
        """Watch the owners until cancelled. What an earlier agent kept counts too."""
        self._kept |= await asyncio.to_thread(self._found)
        try:
            self._watch()
            await asyncio.Event().wait()
        finally:
            for task in self._kinds.values():
                task.cancel()
            await asyncio.gather(*self._kinds.values(), return_exceptions=True)

    async def keep(self, life: Life) -> None:
        """The pod is gone: keep what it wrote if it belonged to something, else remove it."""
        place, owner = life.places.volumes, controller_of(life.pod)
        wrote = {name: _wrote(life, name) for name in (container["name"] for container in all_containers(life.pod))}
        wrote = {name: seen for name, seen in wrote.items() if seen}
        if owner is None or not wrote or str(owner.get("apiVersion", "")).rpartition("/")[0] not in OWNER_GROUPS:
            await asyncio.to_thread(remove, place)
            return
        record = {"metadata": whose(life.pod), "containers": wrote, "gone": self._clock.now().timestamp()}
        await asyncio.to_thread(_close, place, record)
        before = [known for known, other in self._kept.items() if _same(other, record)]
        of_owner = [known for known, other in self._kept.items() if _owner(other) == owner["uid"]]
        self._kept[place] = record
        for known in {*before, *of_owner[:max(0, len(of_owner) + 1 - MOST_OF_ONE)]} - {place}:
            await self._forget(known)
        self._watch()

    def records(self, namespace: str) -> list[Object]:
        return [record for record in self._kept.values() if namespace_of(record) == namespace]

    def find(self, namespace: str, pod: str, container: str) -> tuple[str, list[tuple[PurePosixPath, Path]]]:
        """Where a container of a pod that is gone began, and what it saw where. Raises Refused."""
        for record in self._kept.values():
            if (namespace_of(record), name_of(record)) == (namespace, pod):
                seen = record["containers"].get(container)
                if seen is None:
                    raise Refused(404, f'container "{container}" not found in pod "{pod}"')
                return str(seen["start"]), [(PurePosixPath(target), Path(place)) for target, place in seen["places"]]
        raise Refused(404, f'pod "{pod}" not found')

    def _found(self) -> dict[Path, Object]:
        found = [(place, record) for place in (self._folder.iterdir() if self._folder.is_dir() else ())
                 if (record := records.read(str(place), records.FORMER)) and "containers" in record]
        return dict(sorted(found, key=lambda one: float(one[1].get("gone", 0))))

    def _watch(self) -> None:
        """Have a watch for every kind of owner, and for no other."""
        wanted = {(str(owner["apiVersion"]), str(owner["kind"])) for record in self._kept.values()
                  if (owner := controller_of(record)) is not None}
        for kind in [kind for kind in self._kinds if kind not in wanted or self._kinds[kind].done()]:
            self._kinds.pop(kind).cancel()
        for kind in wanted - set(self._kinds):
            self._kinds[kind] = asyncio.create_task(self._follow(*kind))

    async def _follow(self, version: str, kind: str) -> None:
        """Forget what belonged to owners of a kind as soon as they are gone."""
        while True:
            try:
                served = [known.resource for known in (await discovery.survey(self._client)).kinds]
                break
            except KubeError as error:
                log.debug("kinds cannot be asked for", cause=error)
                await self._clock.sleep(AGAIN)
        group = version.rpartition("/")[0]
        resource = next((known for known in served if (known.group, known.kind) == (group, kind)), None)
        if resource is None:                       # the kind itself is gone, and all of it
            await self._settle(version, kind, set())
            return
        gone = asyncio.Event()
        informer = Informer(self._client, resource, clock=self._clock)
        informer.on_change(lambda _, after: gone.set() if after is None else None)
        async with asyncio.TaskGroup() as group_of_tasks:
            group_of_tasks.create_task(informer.run())
            await informer.synced()
            while True:
                gone.clear()
                await self._settle(version, kind, {uid_of(owner) for owner in informer.copy.all()})
                await gone.wait()

    async def _settle(self, version: str, kind: str, there: set[str]) -> None:
        for place, record in list(self._kept.items()):
            owner = controller_of(record) or {}
            if (owner.get("apiVersion"), owner.get("kind")) == (version, kind) and owner.get("uid") not in there:
                await self._forget(place)

    async def _forget(self, place: Path) -> None:
        self._kept.pop(place, None)
        await asyncio.to_thread(remove, place)


def seen_by(life: Life, container: Object, attempt: int) -> list[tuple[PurePosixPath, Path]]:
    """Where what a container wrote is, by the paths it had; the innermost first."""
    layer = life.places.layer(container["name"], attempt)
    homes = plans.homes(os.environ.get("HOME", ""), os.getuid())
    found = [(PurePosixPath("/"), layer / "upper")]
    found += [(PurePosixPath(home), layer / "homes" / str(number)) for number, home in enumerate(homes)]
    found += [(PurePosixPath("/", name), layer / name) for name in ("tmp", "run") if (layer / name).is_dir()]
    for mount in container.get("volumeMounts") or ():
        place = life.volumes.places.get(mount["name"]) if life.volumes is not None else None
        place = place or life.places.volumes / mount["name"]
        if not mount.get("subPathExpr"):
            found.append((PurePosixPath(mount["mountPath"]), place / str(mount.get("subPath") or "")))
    return sorted(found, key=lambda one: len(one[0].parts), reverse=True)


def start_of(life: Life, container: Object) -> str:
    """The container's working directory."""
    known = life.images.get(container["name"])
    return str(container.get("workingDir") or (known.directory if known else "") or "/")


def lookup(path: str, start: str, places: Sequence[tuple[PurePosixPath, Path]]) -> Path:
    """Where a path of a container is on this machine. Raises Refused."""
    wanted = PurePosixPath(os.path.normpath(PurePosixPath("/", start, path)))
    for target, place in places:
        if wanted.is_relative_to(target):
            found = (place / wanted.relative_to(target)).resolve()
            if not found.is_relative_to(place.resolve()):
                raise Refused(403, f"{wanted} is a link that leads out of the container's own files")
            if found.exists():
                return found
            break
    raise Refused(404, f"{wanted}: No such file or directory, or none that the container wrote")


def _wrote(life: Life, name: str) -> Object:
    """What to remember of a container; nothing of one that never began."""
    container = life.container(name)
    try:
        attempt = attempt_of(life, name, previous=False)
    except Refused:
        return {}
    places = seen_by(life, container, attempt)
    return {"start": start_of(life, container), "places": [[str(target), str(place)] for target, place in places]}


def _close(place: Path, record: Mapping[str, object]) -> None:
    """Leave what the pod wrote. Volumes that the API filled are told by the link to what they show. Blocks."""
    for entry in place.iterdir():
        if (entry / "..data").is_symlink():
            remove(entry)
    records.write(str(place), records.FORMER, dict(record))


def _same(one: Object, other: Object) -> bool:
    return (namespace_of(one), name_of(one), _owner(one)) == (namespace_of(other), name_of(other), _owner(other))


def _owner(record: Object) -> str:
    return str((controller_of(record) or {}).get("uid", ""))
