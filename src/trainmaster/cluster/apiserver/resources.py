"""The verbs on stored objects: read, decide by `lifecycle`, write, try again when somebody else was faster.

Between reading the newest state and handing the write to the store nothing is awaited, so a retry is rare; it is there
for the writes that the store had to take back. What a write means for the rest of the server (a definition is served,
an address is free, a kind is gone) happens here, after the write is durable and before it is answered; so a write must
not be cancelled half-way, and whoever calls these shields them (`server`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import orjson

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import (
    applying,
    cautions,
    chosen,
    failures,
    furnishing,
    lifecycle,
    managed_fields,
    managers,
    ownership,
    reading,
    storage,
)
from trainmaster.cluster.apiserver.admission import Admission
from trainmaster.cluster.apiserver.applying import Application
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.chain import Chain, Review
from trainmaster.cluster.apiserver.charging import Charging
from trainmaster.cluster.apiserver.familiar import Familiars, Sent
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.lifecycle import DeleteOptions
from trainmaster.cluster.apiserver.matching import CREATE, UPDATE
from trainmaster.cluster.apiserver.options import Options
from trainmaster.cluster.apiserver.ownership import Ownership
from trainmaster.cluster.apiserver.patching import Configuration
from trainmaster.cluster.apiserver.retiring import Retirement
from trainmaster.cluster.apiserver.reviews import Asked
from trainmaster.cluster.apiserver.sweeping import sweep
from trainmaster.cluster.apiserver.watches import Watches
from trainmaster.cluster.store import Closed, Create, Record, Refused, Stale, Store, Update
from trainmaster.runtime.clock import Clock

# Seconds for which a write that was decided on a state that changed meanwhile is decided anew. Whenever one loses,
# another has won, so all of them come to their end; what takes longer than this has a client that is gone.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Written:
    """The bytes of the object after a write, and what the client should be told."""

    value: bytes
    warnings: Sequence[str] = ()
    gone: bool = False                   # a deletion that is done
    created: bool = False                # a configuration that was applied to nothing


# The kind, the object before and after, and who writes it. Raises Failure.
Guard = Callable[[Kind, Object | None, Object, Identity], None]


class Resources:
    """All writes go through here."""

    def __init__(self, store: Store, catalog: Catalog, admission: Admission, chain: Chain, watches: Watches,
                 clock: Clock, guards: Sequence[Guard]) -> None:
        """`guards` say no to writes that only some may make."""
        self._guards = guards
        self._store = store
        self._catalog = catalog
        self._admission = admission
        self._chain = chain
        self._watches = watches
        self._clock = clock
        self._charging = Charging(store, clock)
        self._ownership = Ownership(catalog)
        self._familiars = Familiars()
        self.retirement = Retirement(store, catalog, self)

    def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        record = self._store.get(kind.key(namespace, name))
        if record is None:
            raise failures.not_found(kind.resource, name)
        return record.value

    async def create(self, kind: Kind, namespace: str, body: Json, options: Options,
                     asked: Asked | None = None) -> Written:
        """Make an object. `asked` is who wants it, for webhooks; without it the server acts for itself."""
        sent = self._familiars.sent(kind, body)
        known = self._familiars.find(sent)
        thing, warnings = reading.new(kind, body, options, known=known is not None)
        if known is None and sent is not None and thing["spec"] is not body["spec"]:
            sent = None      # something in it was dropped, of which there may be something to say every time
        try:
            return await self._create(kind, namespace, thing, options, asked, warnings, sent)
        except failures.Failure as failure:
            failure.warnings = (*warnings, *failure.warnings)
            raise

    async def _create(self, kind: Kind, namespace: str, thing: Object, options: Options, asked: Asked | None,
                      warnings: list[str], same: Sent | None) -> Written:
        apart, review, given = managers.provided(kind, thing), self._chain.review(kind, asked), None
        if review is not None and review.mutating:
            given, same = ownership.without(thing), None
            thing = await self._mutated(review, kind, namespace, thing)
        name = thing["metadata"].get("name") or self._generated(kind, namespace, thing)
        sent = thing["metadata"].pop("managedFields", None)
        now, known = self._clock.now(), self._familiars.find(same)

        def created(found: Object) -> Object:
            return lifecycle.created(kind, found, namespace, name, now=now, uid=chosen.uid(), known=known)

        made = created(thing)
        if known is None:
            self._familiars.saw(same, kind, made)
        self._ownership.record(kind, None, made, sent, "", options, now, apart,
                               None if given is None else partial(created, given),
                               known)
        self._guard(kind, None, made, asked)
        key = kind.key(namespace, name)
        await self._admission.housed(kind, made)
        self._admit(kind, None, made, now)
        warnings += cautions.about(kind, made)
        if review is not None:
            try:
                await review.validated(made, None)
                await self._admission.placed(kind, made)
            except failures.Failure:
                self._admission.failed(kind, made)
                raise
            warnings += review.warnings
        if options.dry_run:
            self._admission.failed(kind, made)
            await self._charging.steps(kind, made)
            if self._store.latest(key) is not None:
                raise failures.already_exists(kind.resource, name)
            return Written(kind.encode(made), warnings)
        try:
            record = await self._charged(kind, made, None, Create(key, self._catalog.encoder(kind, made)))
        except (Stale, Refused, Closed, failures.Failure) as error:
            self._admission.failed(kind, made)
            if isinstance(error, Stale):
                raise failures.already_exists(kind.resource, name) from error
            raise
        self._stored(kind, made)
        return Written(record.value, warnings)

    def _guard(self, kind: Kind, old: Object | None, new: Object, asked: Asked | None) -> None:
        if asked is not None:
            for guard in self._guards:
                guard(kind, old, new, asked.who)

    async def change(self, kind: Kind, namespace: str, name: str, part: str, edit: Callable[[Object], Json],
                     options: Options, *, conditional: bool = False, keeps: bool = False,
                     asked: Asked | None = None) -> Written:
        """Replace an object, or the `part` of it, by what `edit` makes of the newest state.

        `keeps`: the edit leaves what it is given as it is, and needs no copy of its own.
        """
        key = kind.key(namespace, name)
        review = self._chain.review(kind, asked)
        for _ in self._tries():
            record = await self._latest(kind, key, name)
            warnings: list[str] = []
            try:
                old = managed_fields.read(kind.present(record.value))
                newest = old if keeps else orjson.loads(kind.present(record.value))
                new, warnings = reading.edited(kind, old, edit(newest), options)
                given = None
                if review is not None:
                    given = ownership.without(new) if review.mutating else None
                    new = await review.mutated(new, old, lambda thing: _completed(kind, thing))
                if not part:
                    self._admission.replacing(kind, new)
                sent = new["metadata"].pop("managedFields", None)
                amended = partial(lifecycle.amended, kind, old, part=part, conditional=conditional,
                                  patched=options.patched)
                result, now = amended(new), self._clock.now()
                self._ownership.record(kind, old, result, sent, part, options, now,
                             before=None if given is None else partial(amended, given))
                self._guard(kind, old, result, asked)
                self._admit(kind, old, result, now)
                if not part:
                    warnings += cautions.about(kind, result, old)
                if managers.timeless(old, result):
                    managers.keep(result, old["metadata"]["managedFields"])
                if review is not None:
                    await self._validated(review, kind, result, old)
                    warnings += review.warnings
            except failures.Failure as failure:
                if await self._store.durable(key):
                    failure.warnings = (*warnings, *failure.warnings)
                    raise
                continue
            if options.dry_run:
                self._admission.changed(kind, result, old)
                await self._charging.steps(kind, result, old)
                return Written(kind.encode(result), warnings)
            if result == old and self._store.get(key) is record:
                return Written(record.value, warnings)
            try:
                if lifecycle.finished(kind, result):
                    return await self._remove(kind, result, record)
                urgent = "deletionTimestamp" in result["metadata"]
                step = Update(key, self._catalog.encoder(kind, result), record.revision, urgent)
                record = await self._charged(kind, result, old, step)
            except (Stale, Refused, Closed, failures.Failure) as error:
                self._admission.changed(kind, result, old)
                if isinstance(error, Stale):
                    continue
                raise
            self._admission.changed(kind, old, result)
            self._stored(kind, result)
            return Written(record.value, warnings)
        raise failures.conflict(kind.resource, name)

    async def _charged(self, kind: Kind, thing: Object, old: Object | None, step: Create | Update) -> Record:
        """Store an object together with what it takes from the quotas of its namespace. Raises Failure 403, Stale."""
        for _ in self._tries():
            beside = furnishing.steps(kind, thing, self._store, self._catalog, self._clock.now()) if old is None else ()
            try:
                return (await self._store.transact(step, *beside, *await self._charging.steps(kind, thing, old)))[0]
            except Stale as error:
                if error.key == step.key:
                    raise
        raise failures.conflict(kind.resource, thing["metadata"]["name"])

    async def _mutated(self, review: Review, kind: Kind, namespace: str, thing: Object) -> Object:
        """A new object as webhooks want it."""
        if thing["metadata"].get("namespace", namespace) != namespace:
            return thing      # refused for that, before anybody is asked
        if namespace:
            thing["metadata"]["namespace"] = namespace
        await self._admission.placed(kind, thing)

        def complete(found: Object) -> None:
            _completed(kind, found)
            self._admission.completing(kind, found)

        return await review.mutated(thing, None, complete)

    async def _validated(self, review: Review, kind: Kind, result: Object, old: Object) -> None:
        try:
            await review.validated(result, old)
        except failures.Failure:
            self._admission.changed(kind, result, old)
            raise

    async def apply(self, kind: Kind, namespace: str, name: str, part: str, configuration: Configuration,
                    options: Options, asked: Callable[[str], Asked],
                    read: Callable[[Object], Object] = lambda config: config) -> Written:
        """Make an object, or the `part` of it, what a configuration says; without one, create it.

        `asked` gives who wants it, by operation; `read` makes of the configuration one of the whole object.
        """
        key = kind.key(namespace, name)

        def edit(newest: Object | None) -> Object:
            config = read(configuration.config())
            writer = managers.Writer(options.manager or "", kind.resource.api_version, part, self._clock.now())
            application = Application(kind, config, writer, options.force, self._ownership.in_version(kind))
            result = applying.addressed(kind, application.applied(newest), newest, namespace, name)
            warnings[:] = configuration.said(options.validation)
            return result

        warnings: list[str] = []
        for _ in self._tries():
            absent = self._store.latest(key) is None
            if absent and part:
                await self._latest(kind, key, name)      # tells that it is not there
            try:
                if absent:
                    made = await self.create(kind, namespace, edit(None), options, asked(CREATE))
                    return replace(made, warnings=[*warnings, *made.warnings], created=True)
                written = await self.change(kind, namespace, name, part, edit, options, asked=asked(UPDATE))
                return replace(written, warnings=[*warnings, *written.warnings])
            except failures.Failure as failure:
                if failure.reason != ("AlreadyExists" if absent else "NotFound"):
                    raise
        raise failures.conflict(kind.resource, name)

    def _admit(self, kind: Kind, old: Object | None, new: Object, now: datetime) -> None:
        """Let the rules that know other objects have their say. What they say of a definition is the server's own."""
        before = dict(new)
        if old is None:
            self._admission.creating(kind, new, now)
        else:
            self._admission.changing(kind, old, new, now)
        if kind.resource == DEFINITIONS and before.get("status") != new.get("status"):
            self._ownership.record_own(kind, before, new, now)

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions,
                     asked: Asked | None = None) -> Written:
        key = kind.key(namespace, name)
        self._admission.deleting(kind, name)
        review = self._chain.review(kind, asked)
        warnings = cautions.of_deletion(kind, options.propagation)
        for _ in self._tries():
            record = await self._latest(kind, key, name)
            old = orjson.loads(kind.present(record.value))
            try:
                lifecycle.precondition(kind, old, options)
                if review is not None:
                    await review.deleted(old)
                    warnings = [*cautions.of_deletion(kind, options.propagation), *review.warnings]
            except failures.Failure:
                if await self._store.durable(key):
                    raise
                continue
            old = self._admission.ending(kind, old)
            kept, gone = lifecycle.ended(kind, old, options, self._clock.now())
            if options.dry_run:
                return Written(kind.encode(kept), warnings, gone=gone)
            try:
                if gone:
                    return replace(await self._remove(kind, kept, record), warnings=warnings)
                if kept != old:
                    encode = self._catalog.encoder(kind, kept)
                    record = await self._store.update(key, encode, record.revision, urgent=True)
            except Stale:
                continue
            self._stored(kind, kept)
            if kind.resource == DEFINITIONS:
                await self.retirement.clear(kept)
            return Written(record.value, warnings)
        raise failures.conflict(kind.resource, name)

    async def delete_all(self, kind: Kind, found: Sequence[bytes], options: DeleteOptions,
                         asked: Asked | None = None) -> None:
        """Delete what a list found; what is gone meanwhile is as good as deleted."""
        await sweep(kind, found, lambda namespace, name: self.delete(kind, namespace, name, options, asked))

    async def _remove(self, kind: Kind, last: Object, record: Record) -> Written:
        gone = await self._store.delete(record.key, record.revision, self._catalog.encoder(kind, last))
        self._admission.removed(kind, last)
        self._chain.stored(kind)
        for claim in self._admission.freed(kind, last):
            await self._release(last["metadata"]["namespace"], claim)
        if kind.resource == DEFINITIONS:
            self._catalog.remove(last["metadata"]["name"])
            self._watches.end(f"/{last['spec']['group']}/{last['spec']['names']['plural']}/")
        elif kind.custom:
            definition = self._catalog.definition_of(kind)
            if definition is not None and definition["metadata"].get("deletionTimestamp"):
                await self.retirement.finish(definition)
        return Written(gone.value, gone=True)

    async def _release(self, namespace: str, name: str) -> None:
        """Let a claim go whose last pod is gone."""
        kind = self._catalog.find("", "v1", "persistentvolumeclaims")
        assert kind is not None
        try:
            await self.change(kind, namespace, name, "protection", storage.unprotected, Options())
        except failures.Failure as failure:
            if failure.code != 404:
                raise

    def _generated(self, kind: Kind, namespace: str, thing: Object) -> str:
        """A free name with the wanted beginning, or "" when none was asked for."""
        return chosen.name(str(thing["metadata"].get("generateName") or ""),
                           lambda name: self._store.latest(kind.key(namespace, name)) is not None)

    def _tries(self) -> Iterator[None]:
        """As often as it makes sense to try again, at least once."""
        ends = self._clock.monotonic() + PATIENCE
        yield
        while self._clock.monotonic() < ends:
            yield

    def _stored(self, kind: Kind, thing: Object) -> None:
        """A write is durable: what else must know."""
        if kind.resource == DEFINITIONS:
            self._catalog.install(thing)
        self._chain.stored(kind)

    async def _latest(self, kind: Kind, key: str, name: str) -> Record:
        """What a write is decided on. It may not be durable yet; a refusal because of it is told when it is."""
        while (record := self._store.latest(key)) is None:
            if await self._store.durable(key):
                raise failures.not_found(kind.resource, name)
        return record


def _completed(kind: Kind, thing: Object) -> None:
    """The form in which webhooks see an object: with its defaults."""
    kind.defaults(thing)
    kind.settle(thing, None)
