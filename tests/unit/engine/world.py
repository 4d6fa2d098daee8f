"""A world of dictionaries in which plans are done at once: one job, its children, and hands that are perfect.

For what the engine decides over several looks. How the shell does it, and what it does when it dies half-way, is tested
against the embedded server.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from trainmaster.api import codec
from trainmaster.api.meta import Object, Resource, timestamp
from trainmaster.api.policy import JobStatus
from trainmaster.engine.actions import (
    Action,
    CreateCompanion,
    CreatePod,
    CreateService,
    DeleteCompanion,
    DeleteJob,
    DeletePod,
    DeleteService,
    Event,
    Plan,
    UpdateCompanion,
    normal,
)
from trainmaster.engine.companions import looked_for
from trainmaster.engine.memory import recall
from trainmaster.engine.observed import Observed, observe, read_pod, read_service
from trainmaster.engine.plan import plan
from trainmaster.frameworks.framework import ANYWHERE, Site, TrainingJob
from trainmaster.frameworks.registry import framework_of, read

NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
# More looks than any story needs until there is nothing left to do.
RESTLESS = 50


@dataclass
class World:
    """One job and everything of it."""

    thing: Object
    now: datetime = NOON
    hold: bool = False                                   # deleted pods stay until `vanish`
    pods: dict[str, Object] = field(default_factory=dict)
    services: dict[str, Object] = field(default_factory=dict)
    beside: dict[tuple[Resource, str], Object] = field(default_factory=dict)   # pod groups, autoscalers
    site: Site = ANYWHERE
    events: list[Event] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)      # in order: what was done
    gone: bool = False
    uids: int = 0
    read: tuple[Object, TrainingJob] | None = None       # the job is read once per state

    @property
    def job(self) -> TrainingJob:
        if self.read is None or self.read[0] is not self.thing:
            framework = framework_of(self.thing["kind"])
            assert framework is not None
            self.read = (self.thing, read(self.thing, framework, self.site))
        return self.read[1]

    @property
    def status(self) -> JobStatus:
        return self.job.status

    @property
    def seen(self) -> Observed:
        container = self.job.framework.kind.container
        pods = [read_pod(pod, container) for pod in self.pods.values()]
        beside = {resource: self.beside[resource, name] for resource, name in looked_for(self.job)
                  if (resource, name) in self.beside}
        return observe(self.job, pods, [read_service(service) for service in self.services.values()], beside)

    def plan(self) -> Plan:
        return plan(self.job, self.seen, self.now)

    def settle(self) -> None:
        """Look and do until there is nothing to do."""
        for _ in range(RESTLESS):
            if self.gone or not self.look():
                return
        raise AssertionError(f"never at rest; last: {self.writes[-6:]}")

    def look(self) -> bool:
        """One look; whether anything was done."""
        todo = self.plan()
        before = len(self.writes)
        if todo.record is not None:
            self.write(todo.record)
        for action in todo.actions:
            self.do(action)
        if not self.gone:
            self.write(todo.status)
        self.events += [event for event in todo.events if not event.about or event not in self.events]
        return len(self.writes) > before

    def write(self, status: JobStatus) -> None:
        if status != self.status:
            self.thing = {**self.thing, "status": codec.encode(status)}
            assert status == self.status, "what is written is what is read"
            self.writes.append("status")

    def do(self, action: Action) -> None:
        match action:
            case CreatePod(manifest, tells):
                self.events += tells
                self.create(self.pods, manifest, "pod")
            case CreateService(manifest):
                self.create(self.services, manifest, "service")
            case DeletePod(name, uid):
                self.delete(self.pods, name, uid, "pod")
            case DeleteService(name, uid):
                self.delete(self.services, name, uid, "service")
            case CreateCompanion(resource, manifest):
                name = manifest["metadata"]["name"]
                assert (resource, name) not in self.beside, f"{resource.kind} {name} is already there"
                self.uids += 1
                made = deepcopy(manifest)
                made["metadata"]["uid"] = f"beside-uid-{self.uids}"
                self.beside[resource, name] = made
                self.writes.append(f"create {resource.kind} {name}")
            case UpdateCompanion(resource, name, uid, change):
                assert self.beside[resource, name]["metadata"]["uid"] == uid
                self.beside[resource, name] = merged(self.beside[resource, name], change)
                self.writes.append(f"update {resource.kind} {name}")
            case DeleteCompanion(resource, name, uid, tells):
                assert self.beside[resource, name]["metadata"]["uid"] == uid
                del self.beside[resource, name]
                self.writes.append(f"delete {resource.kind} {name}")
                self.events += tells
            case DeleteJob(uid, reason):
                assert uid == self.thing["metadata"]["uid"]
                self.gone = True
                self.pods.clear()
                self.services.clear()
                self.beside.clear()
                self.writes.append("delete job")
                self.events.append(normal(f"Successful{reason}", f"Deleted job: {self.thing['metadata']['name']}"))

    def create(self, shelf: dict[str, Object], manifest: Object, word: str) -> None:
        name = manifest["metadata"]["name"]
        assert name not in shelf, f"{word} {name} is already there"
        self.uids += 1
        made = deepcopy(manifest)
        made["metadata"] |= {"uid": f"{word}-uid-{self.uids}", "creationTimestamp": timestamp(self.now)}
        shelf[name] = made
        self.writes.append(f"create {word} {name}")
        self.events.append(normal(f"SuccessfulCreate{word.capitalize()}", f"Created {word}: {name}"))

    def delete(self, shelf: dict[str, Object], name: str, uid: str, word: str) -> None:
        assert shelf[name]["metadata"]["uid"] == uid, f"{word} {name} is another one"
        if word == "pod" and (shelf[name].get("status") or {}).get("phase") == "Failed":
            member = name.removeprefix(f"{self.thing['metadata']['name']}-")
            assert recall(self.status).replicas[member].uid == uid, f"how {name} ended is lost with it"
        if word == "pod" and self.hold:
            assert "deletionTimestamp" not in shelf[name]["metadata"], f"{name} is already being deleted"
            shelf[name]["metadata"]["deletionTimestamp"] = timestamp(self.now)
        else:
            del shelf[name]
        self.writes.append(f"delete {word} {name}")
        self.events.append(normal(f"SuccessfulDelete{word.capitalize()}", f"Deleted {word}: {name}"))

    # What nodes and people do

    def vanish(self, pattern: str = "*") -> None:
        """Pods that are being deleted are gone now."""
        for name in [name for name, pod in self.pods.items() if fnmatchcase(name, pattern)]:
            if "deletionTimestamp" in self.pods[name]["metadata"]:
                del self.pods[name]

    def mark(self, pattern: str) -> None:
        """Somebody deletes pods, which take their time."""
        for pod in self.living(pattern):
            pod["metadata"]["deletionTimestamp"] = timestamp(self.now)

    def remove(self, pattern: str) -> None:
        """Pods disappear without a word."""
        for name in [name for name in self.pods if fnmatchcase(name, pattern)]:
            del self.pods[name]

    def run(self, pattern: str = "*", restarts: int = 0) -> None:
        for pod in self.living(pattern):
            states = [_container(c["name"], {"running": {}}, restarts) for c in pod["spec"]["containers"]]
            pod["status"] = {"phase": "Running", "containerStatuses": states}

    def succeed(self, pattern: str = "*") -> None:
        for pod in self.living(pattern):
            self._end(pod, "Succeeded", 0)

    def fail(self, pattern: str = "*", code: int = 1, **extra: Any) -> None:
        for pod in self.living(pattern):
            self._end(pod, "Failed", code, **extra)

    def evict(self, pattern: str) -> None:
        for pod in self.living(pattern):
            pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}

    def wait(self, pattern: str, reason: str, message: str) -> None:
        for pod in self.living(pattern):
            state = {"waiting": {"reason": reason, "message": message}}
            states = [_container(c["name"], state, 0) for c in pod["spec"]["containers"]]
            pod["status"] = {"phase": "Pending", "containerStatuses": states}

    def living(self, pattern: str) -> Iterator[Object]:
        for name in sorted(self.pods):
            if fnmatchcase(name, pattern) and (self.pods[name].get("status") or {}).get("phase") not in (
                "Succeeded", "Failed",
            ):
                yield self.pods[name]

    def edit(self, **spec: Any) -> None:
        self.thing = {**self.thing, "spec": merged(self.thing["spec"], spec)}

    def pass_time(self, seconds: float) -> None:
        """Time passes, and every timer on the way fires."""
        until = self.now + timedelta(seconds=seconds)
        while not self.gone and (timer := self.plan().look_again_at) is not None and self.now < timer <= until:
            self.now = timer
            self.settle()
        self.now = until

    def phase(self, phase: str) -> None:
        """The gang scheduler says how far the job's group is."""
        for key, group in self.beside.items():
            if key[0].kind == "PodGroup":
                self.beside[key] = {**group, "status": {"phase": phase}}

    def conditions(self) -> list[tuple[str, str]]:
        return [(found.type, found.status) for found in self.status.conditions]

    def _end(self, pod: Object, phase: str, code: int, **extra: Any) -> None:
        over = {"exitCode": code, "startedAt": timestamp(self.now), "finishedAt": timestamp(self.now), **extra}
        before = {c["name"]: c["restartCount"] for c in (pod.get("status") or {}).get("containerStatuses") or ()}
        states = [_container(c["name"], {"terminated": over}, before.get(c["name"], 0))
                  for c in pod["spec"]["containers"]]
        pod["status"] = {"phase": phase, "containerStatuses": states}


def merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    base = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            base.pop(key, None)
        else:
            base[key] = merged(base.get(key), change)
    return base


def _container(name: str, state: Object, restarts: int) -> Object:
    return {"name": name, "restartCount": restarts, "state": state}
