"""Volcano's Commands for queues: somebody (`vcctl queue operate`) asks for a queue to be opened or closed, and it is.

A Command is an order, not a state: it is deleted first and carried out afterwards, so that it is done at most once,
whoever else reads Commands here. What it comes to is asked of the API at that moment instead of the snapshot: orders
are rare, and one about a queue of a second ago must find it.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainmaster.api.groups import VOLCANO_COMMANDS, VOLCANO_GROUPS, VOLCANO_QUEUES
from trainmaster.api.meta import Key, Object, key_of, metadata, name_of, namespace_of, uid_of
from trainmaster.cluster.scheduler.dialects import DEFAULT_QUEUE, ROOT, fields
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, KubeError, NotFound, is_transient
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

log = logger("scheduler")

OPEN, CLOSE = "OpenQueue", "CloseQueue"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
COMPONENT = "vc-controller-manager"      # who says it in Volcano
ATTEMPTS, RETRY_SECONDS = 10, 1.0


@dataclass(frozen=True, slots=True)
class Change:
    """A queue's new state, and whether it is so because of the one above it; None: that is left as it is."""

    queue: str
    state: str
    by_parent: bool | None = None


def about_queue(command: Object) -> bool:
    target = fields(command.get("target"))
    return target.get("kind") == "Queue" and str(target.get("apiVersion") or "").partition("/")[0] in {
        VOLCANO_QUEUES.group, ""}


def changes(action: str, name: str, queues: Iterable[Object], groups: Iterable[Object]) -> tuple[list[Change], str]:
    """What an order comes to, or why it cannot be followed."""
    there = {name_of(queue): queue for queue in queues}
    busy = {str(fields(group.get("spec")).get("queue") or DEFAULT_QUEUE) for group in groups}
    if name not in there:
        return [], f"there is no queue {name}"
    if action == CLOSE:
        if name == ROOT:
            return [], "the queue above all others cannot be closed"
        return [*_closed(name, there, busy, by_parent=None)], ""
    if action == OPEN:
        parent = str(fields(there[name].get("spec")).get("parent") or ROOT)
        if parent != ROOT and parent in there and _state(there[parent]) != "Open":
            return [], f"the queue above it, {parent}, is {_state(there[parent])}; open that one first"
        return [*_opened(name, there)], ""
    return [], ""      # any other word is a look, and we look all the time


def _closed(name: str, there: dict[str, Object], busy: set[str], *, by_parent: bool | None,
            above: tuple[str, ...] = ()) -> Iterator[Change]:
    if _state(there[name]) == "Open":
        yield Change(name, "Closing" if name in busy else "Closed", by_parent)
    for child in _below(name, there, above):
        if _state(there[child]) == "Open":
            yield from _closed(child, there, busy, by_parent=True, above=(*above, name))


def _opened(name: str, there: dict[str, Object], above: tuple[str, ...] = ()) -> Iterator[Change]:
    """It, and those below it that were closed with it."""
    if _state(there[name]) != "Open" or _by_parent(there[name]):
        yield Change(name, "Open", False if _by_parent(there[name]) else None)
    for child in _below(name, there, above):
        if _by_parent(there[child]):
            yield from _opened(child, there, (*above, name))


def _below(name: str, there: dict[str, Object], above: tuple[str, ...]) -> list[str]:
    return sorted(each for each, queue in there.items()
                  if fields(queue.get("spec")).get("parent") == name and each not in {*above, name})


def _state(queue: Object) -> str:
    return str(fields(queue.get("status")).get("state") or "Open")


def _by_parent(queue: Object) -> bool:
    return (metadata(queue).get("annotations") or {}).get(CLOSED_BY_PARENT) == "true"


class Orders:
    """Follows the Commands of a cluster and carries out those about queues, one after the other."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._recorder = Recorder(client, COMPONENT, clock)
        self._waiting: dict[Key, Object] = {}      # in the order in which they came; never more than there are
        self._more = asyncio.Event()
        self._informer = Informer(client, VOLCANO_COMMANDS, clock=clock)
        self._informer.on_change(self._told)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            group.create_task(self._work())

    def _told(self, before: Object | None, after: Object | None) -> None:
        if after is None and before is not None:
            self._waiting.pop(key_of(before), None)
        elif before is None and after is not None and about_queue(after):
            self._waiting[key_of(after)] = after
            self._more.set()

    async def _work(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                await self._carry_out(self._waiting.pop(next(iter(self._waiting))))

    async def _carry_out(self, command: Object) -> None:
        action, name = str(command.get("action") or ""), str(fields(command.get("target")).get("name") or "")
        deleted = False
        for _ in range(ATTEMPTS):
            try:
                if not deleted:
                    await self._client.delete(VOLCANO_COMMANDS, name_of(command), namespace_of(command),
                                              uid=uid_of(command))
                    deleted = True
                await self._do(action, name)
            except (NotFound, Conflict):
                return      # another was faster, or the queue is gone
            except KubeError as problem:
                log.warning("could not follow a command", action=action, queue=name, problem=problem)
                if not is_transient(problem):
                    return
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return

    async def _do(self, action: str, name: str) -> None:
        queues = (await self._client.list(VOLCANO_QUEUES)).items
        about = next((queue for queue in queues if name_of(queue) == name), None)
        if about is None:
            return
        await self._recorder.event(about, "Normal", "CommandIssued", f"Start to execute command {action}, and clean it "
                                   "up to make sure executed not more than once.")
        wanted, problem = changes(action, name, queues, (await self._client.list(VOLCANO_GROUPS)).items)
        verb = "Open" if action == OPEN else "Close"
        if problem:
            await self._recorder.event(about, "Warning", action, f"{verb} queue failed for {problem}")
        by_name = {name_of(queue): queue for queue in queues}
        for change in wanted:
            queue = by_name[change.queue]
            if change.by_parent is not None:
                note = {"metadata": {"annotations": {CLOSED_BY_PARENT: "true" if change.by_parent else None}}}
                await self._client.patch(VOLCANO_QUEUES, change.queue, "", note)
            await self._client.patch(VOLCANO_QUEUES, change.queue, "", {"status": {"state": change.state}},
                                     subresource="status")
            await self._recorder.event(queue, "Normal", action, f"{verb} queue succeed")
