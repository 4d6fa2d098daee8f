"""The embedded API server as a fixture: in memory or on disk, on the clock of the test, with or without faults.

The server that ships, reached through the same client as everywhere. It has no node and no controllers; a test runs
the ones it is about.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.auth import Identity, authenticated
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.matching import Judge
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.store import Store
from trainmaster.kube.client import Client
from trainmaster.kube.limits import Limits
from trainmaster.runtime.clock import Clock
from trainmaster.testing.faults import Faults, Plan, nothing


@dataclass(slots=True)
class Cluster:
    """A running server and the ways in."""

    clock: Clock
    store: Store
    server: ApiServer

    def transport(self, user: str = "tests", plan: Plan = nothing, die_after: int | None = None) -> Faults:
        """A way in that goes wrong as planned, and knows the writes that went through it."""
        identity = Identity(user, ("system:masters", "system:authenticated"))
        return Faults(InProcess(self.server, identity), self.clock, plan, die_after)

    def client(self, user: str = "tests", plan: Plan = nothing, die_after: int | None = None) -> Client:
        return Client(self.transport(user, plan, die_after), user_agent=user, limits=Limits(clock=self.clock))

    def client_as(self, who: Identity) -> Client:
        """A client that may do what its identity may."""
        transport = Faults(InProcess(self.server, authenticated(who)), self.clock, nothing, None)
        return Client(transport, user_agent=who.user, limits=Limits(clock=self.clock))

    async def install(self, definitions: list[Object]) -> None:
        """Make custom kinds known."""
        client = self.client()
        for definition in definitions:
            await client.create(DEFINITIONS, definition)

    async def forget(self) -> None:
        """Forget all history, so that watches from earlier revisions are told that it is gone."""
        await self.store.compact(self.store.revision)


@asynccontextmanager
async def embedded(
    clock: Clock, path: Path | None = None, *, judges: Sequence[tuple[Object, Judge]] = ()
) -> AsyncIterator[Cluster]:
    """A server until the end of the block; None keeps its objects in memory, a path on disk for the next one.

    `judges` have a say before a write: a configuration of webhooks and the function behind it.
    """
    store = Store.open(path)
    try:
        server = ApiServer(store, clock=clock, judges=judges)
        await server.start()
        try:
            yield Cluster(clock, store, server)
        finally:
            await server.close()
    finally:
        await store.close()
