"""Charges quotas in the transaction that creates or changes an object.

A quota that two requests read before either wrote would take both. Here a charge is decided on the newest state,
durable or not, and stored together with what it pays for, or not at all: however many create at once, no quota is
exceeded, and whatever the disk refuses is not charged. To charge afterwards by a controller was rejected: it would only
ever notice.
"""

from dataclasses import dataclass

import orjson

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.quota.charge import Exceeded, charged
from trainmaster.cluster.quota.usage import changes_with, is_counted
from trainmaster.cluster.store import Store, Update
from trainmaster.runtime.clock import Clock

QUOTAS = "/core/resourcequotas/"


@dataclass(frozen=True, slots=True)
class Charging:
    store: Store
    clock: Clock

    async def steps(self, kind: Kind, thing: Object, old: Object | None = None) -> list[Update]:
        """What to store together with an object. Raises Failure 403 as soon as it is certain.

        Nothing is awaited when there is room, so the steps are those of the newest state.
        """
        resource = kind.resource
        if not is_counted(resource) or (old is not None and not changes_with(resource)):
            return []
        below = f"{QUOTAS}{thing['metadata']['namespace']}/"
        while True:
            found = [newest for record in self.store.scan(below) if (newest := self.store.latest(record.key))]
            if not found:
                return []
            quotas = [orjson.loads(record.value) for record in found]
            revisions = {record.key: record.revision for record in found}
            try:
                changed = charged(quotas, resource, thing, old, self.clock.now())
            except Exceeded as refusal:
                if await self.store.durable(below + refusal.quota):
                    raise failures.forbidden(resource, thing["metadata"]["name"], str(refusal)) from refusal
                continue
            return [_update(key, quota, revisions[key]) for quota in changed
                    for key in [below + quota["metadata"]["name"]]]


def _update(key: str, quota: Object, expected: int) -> Update:
    def encode(revision: int) -> bytes:
        quota["metadata"]["resourceVersion"] = str(revision)
        return orjson.dumps(quota)

    return Update(key, encode, expected)
