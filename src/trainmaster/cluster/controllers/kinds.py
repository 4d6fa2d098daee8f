"""Which kinds the server has, kept true: built-in ones, and custom ones as their definitions come and go.

Definitions are watched; discovery is asked when one of them changes in a way that matters, and again for as long as it
does not tell the whole truth. Asking every half minute, as others do, is late for a kind that was just installed and
work for nothing otherwise.
"""

import asyncio
from collections.abc import Callable

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Object, Resource, metadata
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import Served, Survey, survey
from trainmaster.kube.errors import KubeError
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

# Seconds until discovery is asked again when it failed, or lacks a kind whose definition is established.
FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0

log = logger("kinds")


class Kinds:
    """What discovery said last. Groups that failed keep the kinds they had."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kinds: dict[tuple[str, str], Served] = {}          # by group and plural
        self._by_kind: dict[tuple[str, str], Served] = {}        # by group and kind
        self._callbacks: list[Callable[[], None]] = []
        self._changed = asyncio.Event()
        self._known = asyncio.Event()
        self._definitions = Informer(Reduced(client, _relevant), DEFINITIONS, clock=clock)
        self._definitions.on_change(self._definition_changed)

    def all(self) -> list[Served]:
        return list(self._kinds.values())

    def find(self, group: str, kind: str) -> Served | None:
        return self._by_kind.get((group, kind))

    def serves(self, resource: Resource) -> bool:
        found = self._kinds.get((resource.group, resource.plural))
        return found is not None and found.resource == resource

    def defined(self, group: str, plural: str) -> bool:
        """Whether there is a definition for it: then its objects exist, even while discovery does not show them."""
        return self._definitions.copy.get("", f"{plural}.{group}") is not None

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call whenever the kinds changed, and at once if they are known. It must not block."""
        self._callbacks.append(callback)
        if self._known.is_set():
            callback()

    async def until(self, resource: Resource) -> None:
        """Return once the server has this kind in this version."""
        changed = asyncio.Event()
        self._callbacks.append(changed.set)
        try:
            while not self.serves(resource):
                await changed.wait()
                changed.clear()
        finally:
            self._callbacks.remove(changed.set)

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._definitions.run())
            group.create_task(self._follow())

    async def _follow(self) -> None:
        await self._definitions.synced()
        failures = 0
        while True:
            self._changed.clear()
            try:
                failures = 0 if self._take(await survey(self._client)) else failures + 1
            except KubeError as error:
                failures += 1
                if failures == 1:
                    log.warning("discovery failed, asking again", cause=error)
            if failures:
                await self._clock.sleep(min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 10)))
            else:
                await self._changed.wait()

    def _take(self, found: Survey) -> bool:
        """Believe what discovery says; False if that cannot be all."""
        groups = {place.rpartition("/")[0] for place in found.failed}
        kept = {place: kind for place, kind in self._kinds.items() if place[0] in groups}
        kinds = kept | {(kind.resource.group, kind.resource.plural): kind for kind in found.kinds}
        if kinds != self._kinds or not self._known.is_set():
            self._kinds = kinds
            self._by_kind = {(kind.resource.group, kind.resource.kind): kind for kind in kinds.values()}
            self._known.set()
            for callback in list(self._callbacks):
                callback()
        lacking = [
            metadata(each)["name"] for each in self._definitions.copy.all()
            if each["established"] and (each["group"], each["plural"]) not in kinds
        ]
        if lacking or groups:
            log.debug("discovery is not complete yet", groups=sorted(groups), lacking=lacking)
        return not lacking and not groups

    def _definition_changed(self, before: Object | None, after: Object | None) -> None:
        if before is None or after is None or _without_revision(before) != _without_revision(after):
            self._changed.set()


def _relevant(definition: Object) -> Object:
    about, spec = metadata(definition), definition.get("spec") or {}
    conditions = (definition.get("status") or {}).get("conditions") or ()
    established = any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)
    versions = [(each.get("name"), each.get("served")) for each in spec.get("versions") or ()]
    return {
        "metadata": {field: about[field] for field in ("name", "uid", "resourceVersion") if field in about},
        "group": spec.get("group", ""),
        "plural": (spec.get("names") or {}).get("plural", ""),
        "versions": versions,
        "established": established and any(served for _, served in versions),
    }


def _without_revision(thing: Object) -> Object:
    return {**thing, "metadata": {**thing["metadata"], "resourceVersion": ""}}
