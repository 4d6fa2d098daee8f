"""The end of a definition: its instances go first, then what held it back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import definitions, failures
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.lifecycle import DeleteOptions
from trainmaster.cluster.apiserver.options import Options
from trainmaster.cluster.store import Store

# Instances that are looked for at a time.
AT_ONCE = 512


class Verbs(Protocol):
    """What it takes to write: `resources.Resources`, which knows this module."""

    async def change(self, kind: Kind, namespace: str, name: str, part: str, edit: Callable[[Object], Json],
                     options: Options, /) -> object: ...

    async def delete_all(self, kind: Kind, found: Sequence[bytes], options: DeleteOptions, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Retirement:
    store: Store
    catalog: Catalog
    verbs: Verbs

    async def clear(self, definition: Object) -> None:
        """Remove the instances of a definition that is ending, and then the definition."""
        for kind in definitions.kinds_of(definition)[:1]:
            while records := self.store.scan(kind.prefix, limit=AT_ONCE):
                left = [record for record in records if b'"deletionTimestamp"' not in record.value]
                if not left:
                    break
                await self.verbs.delete_all(kind, [record.value for record in left], DeleteOptions())
        await self.finish(definition)

    async def finish(self, definition: Object) -> None:
        """Let the definition go, if none of its instances is left."""
        spec, name = definition["spec"], definition["metadata"]["name"]
        if self.store.count(f"/{spec['group']}/{spec['names']['plural']}/"):
            return
        kind = self.catalog.find(DEFINITIONS.group, DEFINITIONS.version, DEFINITIONS.plural)
        assert kind is not None

        def without_cleanup(newest: Object) -> Object:
            meta = newest["metadata"]
            meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != definitions.CLEANUP]
            return newest

        try:
            await self.verbs.change(kind, "", name, "cleanup", without_cleanup, Options())
        except failures.Failure as failure:
            if failure.code != 404:
                raise
