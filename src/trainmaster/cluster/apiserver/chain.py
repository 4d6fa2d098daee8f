"""When webhooks are asked: those that change an object one after the other, those that judge it all at once.

A `Review` is the part of one write that webhooks have a say in. It holds nothing while it waits: no lock, no place in
the store; whoever writes decides on the newest state again after it. Requests that no webhook concerns get no review
and pay one lookup. At most so many requests wait for webhooks at a time; what comes beyond them is told to come back,
so that a slow webhook cannot take the whole server.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from trainmaster.api.core import NAMESPACES
from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    failures,
    lifecycle,
    match_conditions,
    matching,
    patching,
    reviews,
    traffic,
    webhooks,
)
from trainmaster.cluster.apiserver.authorization import Authorizer
from trainmaster.cluster.apiserver.calling import Calls, endpoint
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.connecting import Reach
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.match_conditions import Undecided
from trainmaster.cluster.apiserver.matching import Candidate, Hook, Judge, Service
from trainmaster.cluster.apiserver.reviews import Asked, Broken, Verdict
from trainmaster.cluster.store import Store
from trainmaster.runtime.log import logger

log = logger("webhooks")

# Requests that wait for webhooks at a time: half of all, so that the other half goes on.
MOST_WAITING = traffic.MOST // 2
# Seconds that all webhooks of one request have together, as on a real server.
LONGEST = 34.0
_PREFIXES = (webhooks.MUTATING, webhooks.VALIDATING)


@dataclass(slots=True)
class Chain:
    """All webhooks there are. `built_in` are judged in this process: a configuration and the function it stands for."""

    store: Store
    catalog: Catalog
    built_in: Sequence[tuple[Object, Judge]] = ()
    access: Authorizer | None = None                           # what conditions ask that ask who may do what
    reach: Reach | None = None                                 # the way to nodes, and so to webhooks in pods
    calls: Calls = field(init=False)
    waiting: int = 0
    failing: set[str] = field(default_factory=set)             # told once, not with every write
    _hooks: Mapping[bool, Sequence[Hook]] = field(default_factory=lambda: {True: (), False: ()})    # by `mutating`
    _found: dict[tuple[bool, str, Resource, str], tuple[Candidate, ...]] = field(default_factory=dict)
    _generation: int = -1

    def __post_init__(self) -> None:
        self.calls = Calls(self._endpoint, self.reach)
        self.refresh()

    def refresh(self) -> None:
        """Take in what configurations are stored now."""
        own = {mutating: [hook for configuration, judge in self.built_in
                          if configuration["kind"].startswith("Mutating") == mutating
                          for hook in matching.hooks_of(configuration, judge)] for mutating in (True, False)}
        self._hooks = {True: (*own[True], *self._stored(webhooks.MUTATING)),
                       False: (*own[False], *self._stored(webhooks.VALIDATING))}
        self._found.clear()
        self.failing &= {hook.key for hooks in self._hooks.values() for hook in hooks}

    def stored(self, kind: Kind) -> None:
        """An object of this kind was written or is gone."""
        if kind.prefix in _PREFIXES:
            self.refresh()

    def review(self, kind: Kind, asked: Asked | None) -> "Review | None":
        """What webhooks have a say in a write, or None: nobody asked, or nobody wants to know."""
        if asked is None or not (self._hooks[True] or self._hooks[False]):
            return None
        mutating, validating = (self._candidates(kind, asked, mutating=mutating) for mutating in (True, False))
        if not mutating and not validating:
            return None
        return Review(self, kind, asked, mutating, validating)

    async def close(self) -> None:
        await self.calls.close()

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """Raises Failure 404."""
        record = self.store.latest(f"/core/namespaces/{namespace}")
        if record is None:
            raise failures.not_found(NAMESPACES, namespace)
        return orjson.loads(record.value)["metadata"].get("labels") or {}

    def _stored(self, prefix: str) -> list[Hook]:
        records = self.store.scan(prefix)      # by name, which is their order
        return [hook for record in records for hook in matching.hooks_of(orjson.loads(record.value))]

    def _candidates(self, kind: Kind, asked: Asked, *, mutating: bool) -> tuple[Candidate, ...]:
        if kind.resource.group == webhooks.GROUP:
            return ()      # a webhook that stands in the way of its own removal would stay for ever
        if self._generation != self.catalog.generation:      # another version is another equivalent
            self._generation = self.catalog.generation
            self._found.clear()
        key = (mutating, asked.operation, asked.resource, asked.subresource)
        found = self._found.get(key)
        if found is None:
            others = [each.resource for each in self.catalog.equivalents(kind)]
            found = self._found[key] = matching.candidates(
                self._hooks[mutating], asked.operation, asked.resource, asked.subresource, others)
        return found

    def _endpoint(self, service: Service, *, pods: bool) -> tuple[str, int, str]:
        named, places = (self.store.get(f"/core/{plural}/{service.namespace}/{service.name}")
                         for plural in ("services", "endpoints"))
        return endpoint(None if named is None else orjson.loads(named.value),
                        None if places is None else orjson.loads(places.value), service, pods=pods)


@dataclass(frozen=True, slots=True)
class Stored:
    """What the functions that judge in this process may look at: the newest state, as a writer sees it."""

    store: Store

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        record = self.store.latest(f"{_shelf(resource)}{f'{namespace}/' if namespace else ''}{name}")
        return None if record is None else orjson.loads(record.value)

    def all(self, resource: Resource) -> list[Object]:
        return [orjson.loads(record.value) for record in self.store.scan(_shelf(resource))]


def _shelf(resource: Resource) -> str:
    return f"/{resource.group or 'core'}/{resource.plural}/"


@dataclass(slots=True)
class Review:
    """The webhooks of one request."""

    chain: Chain
    kind: Kind
    asked: Asked
    mutating: tuple[Candidate, ...]
    validating: tuple[Candidate, ...]
    warnings: list[str] = field(default_factory=list)
    _ends: float = field(default_factory=lambda: asyncio.get_running_loop().time() + LONGEST)

    async def mutated(self, new: Object, old: Object | None, complete: Callable[[Object], None]) -> Object:
        """The object with what webhooks made of it. `complete` fills in what the server itself adds. Raises Failure."""
        if not self.mutating:
            return new
        view, before = self._view(new), None if old is None else self._view(old)
        result = await self._rounds(view, before, complete)
        assert result is not None
        if self.asked.taken is not None:
            return self.asked.taken(new, result)
        if old is not None:
            self._refuse_moves(result["metadata"], old["metadata"])
        return result

    def _refuse_moves(self, new: Object, old: Object) -> None:
        """Raises Failure 422: no webhook can make another object of one that is there."""
        faults = [causes.invalid(f"metadata.{field_}", new.get(field_), checks.IMMUTABLE)
                  for field_ in ("name", "namespace", "uid") if new.get(field_, old.get(field_)) != old.get(field_)]
        if faults and self.asked.operation == matching.UPDATE:
            raise failures.invalid(self.kind.resource, str(new.get("name")), faults)

    async def deleted(self, old: Object) -> None:
        """Raises Failure when one of them refuses the deletion."""
        if self.mutating:
            await self._rounds(None, old, lambda _thing: None)
        await self.validated(None, old)

    async def validated(self, new: Object | None, old: Object | None) -> None:
        """Raises Failure when one of them refuses."""
        if not self.validating:
            return
        view, before = (None if thing is None else self._view(thing) for thing in (new, old))
        wanted = [each for each in self.validating if self._concerned(each, view, before)]
        asking = [self._verdict(each, view, before, mutating=False) for each in wanted]
        if len(asking) == 1:      # the usual case, and no task for it
            try:
                await asking[0]
            except failures.Failure as failure:
                raise self._told(failure) from failure
            return
        for outcome in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise self._told(outcome)

    async def _rounds(self, view: Object | None, before: Object | None,
                      complete: Callable[[Object], None]) -> Object | None:
        """Every webhook once; if any changed something, those once more that were asked before it and want that."""
        asked_before: set[str] = set()
        again: set[str] = set()
        changed = False
        for second in (False, True):
            if view is not None and self.asked.kind is None:
                was = orjson.dumps(view) if second else b""
                complete(view)
                if second and orjson.dumps(view) != was:
                    again |= asked_before
            for each in self.mutating:
                if second and each.hook.key not in again:
                    continue
                if not self._concerned(each, view, before):
                    continue
                patched = await self._patched(each, view, before)
                if patched is not None:
                    view, changed = patched, True
                    again, asked_before = again | asked_before, set()
                if each.hook.again:
                    asked_before.add(each.hook.key)
            if not changed:
                break
        return view

    async def _patched(self, each: Candidate, view: Object | None, before: Object | None) -> Object | None:
        """The object as the webhook wants it, or None: as it is."""
        try:
            verdict = await self._verdict(each, view, before, mutating=True)
            if verdict is None or not verdict.patch:
                return None
            seen = self._seen(each, view)
            if seen is None:
                raise failures.internal(f'admission webhook "{each.hook.name}" attempted to modify the object, which '
                                        "is not supported for this operation")
            changed = self._applied(seen, verdict.patch, each)
        except failures.Failure as failure:
            raise self._told(failure) from failure
        return None if changed == view else changed

    def _applied(self, view: Object, patch: Sequence[Json], each: Candidate) -> Object:
        """Raises Failure 500: what a webhook does wrong is not the fault of whoever wrote."""
        try:
            result = patching.json_patch(orjson.loads(orjson.dumps(view)), patch)
            if self.asked.kind is not None:
                return result
            kind = self._kind_of(each)
            settled, _ = lifecycle.readable(kind, result)
            kind.defaults(settled)
            kind.settle(settled, None)
        except failures.Failure as failure:
            why = failure.why if isinstance(failure, lifecycle.Unreadable) else failure.message
            raise failures.internal(why) from failure
        if kind is self.kind:
            return settled
        found: Object = orjson.loads(self.kind.present(kind.encode(settled)))
        return found

    async def _verdict(self, each: Candidate, view: Object | None, before: Object | None, *,
                       mutating: bool) -> Verdict | None:
        """What a webhook says; None: it is not meant, or failed, and that does not matter. Raises Failure."""
        hook = each.hook
        if hook.conditions and not self._meant(each, view, before):
            return None
        if self.asked.dry_run and not hook.dry:
            raise failures.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            verdict = await self._asked(each, view, before, mutating=mutating)
        except Broken as error:
            if hook.key not in self.chain.failing:
                self.chain.failing.add(hook.key)
                log.warning("a webhook fails", webhook=hook.name, reason=str(error)[:300], ignored=hook.ignore)
            if hook.ignore:
                return None
            raise failures.internal(f'failed calling webhook "{hook.name}": {error}') from error
        self.chain.failing.discard(hook.key)
        self.warnings += [text for text in verdict.warnings if text not in self.warnings]
        if not verdict.allowed:
            raise reviews.denial(hook.name, verdict.status)
        return verdict

    async def _asked(self, each: Candidate, view: Object | None, before: Object | None, *, mutating: bool) -> Verdict:
        hook, uid = each.hook, str(uuid.uuid4())
        version = reviews.version_of(hook.versions)
        about = reviews.request(uid, self.asked, each.seen_as, self._seen(each, view), self._seen(each, before))
        if hook.judge is not None:
            response = hook.judge(about, Stored(self.chain.store))
            return reviews.verdict({"kind": "AdmissionReview", "apiVersion": f"{reviews.GROUP}/v1",
                                    "response": response}, uid, "v1", mutating=mutating)
        left = self._ends - asyncio.get_running_loop().time()
        if left <= 0:
            raise failures.Failure(504, "Timeout", "Timeout: request did not complete within requested timeout")
        if self.chain.waiting >= MOST_WAITING:
            raise failures.too_many_requests()
        self.chain.waiting += 1
        try:
            answer = await self.chain.calls.ask(hook, reviews.document(version, about), min(hook.seconds, left))
        finally:
            self.chain.waiting -= 1
        return reviews.verdict(answer, uid, version, mutating=mutating)

    def _meant(self, each: Candidate, view: Object | None, before: Object | None) -> bool:
        """Whether its conditions hold. Raises Failure 403 when nobody can tell, and that matters."""
        about = reviews.request("", self.asked, each.seen_as, self._seen(each, view), self._seen(each, before))
        try:
            return match_conditions.hold(each.hook.conditions, about, self.asked.who, self.chain.access)
        except Undecided as error:
            if each.hook.ignore:
                return False
            raise failures.forbidden(each.seen_as, str(about.get("name") or ""), str(error)) from error

    def _concerned(self, each: Candidate, view: Object | None, before: Object | None) -> bool:
        """Raises Failure 404 when the labels of a namespace matter that is not there."""
        namespace: Mapping[str, str] | None = None
        if each.hook.needs_namespace:
            if self.kind.resource == NAMESPACES:
                own = view if view is not None and not self.asked.subresource else before
                namespace = ((own or {}).get("metadata") or {}).get("labels") or {}
            elif self.asked.namespace:
                namespace = self.chain.labels_of(self.asked.namespace)
        return each.hook.selects(namespace, view, before)

    def _view(self, thing: Object) -> Object:
        return thing if self.asked.shown is None else self.asked.shown(thing)

    def _seen(self, each: Candidate, thing: Object | None) -> Object | None:
        """An object in the version that the webhook asked for."""
        kind = self._kind_of(each)
        if thing is None or self.asked.kind is not None or kind is self.kind:
            return thing
        found: Object = orjson.loads(kind.present(self.kind.encode(thing)))
        return found

    def _kind_of(self, each: Candidate) -> Kind:
        if each.seen_as == self.asked.resource:
            return self.kind
        place = each.seen_as
        return self.chain.catalog.find(place.group, place.version, place.plural) or self.kind

    def _told(self, outcome: BaseException) -> BaseException:
        if isinstance(outcome, failures.Failure):
            outcome.warnings = (*self.warnings,)
        return outcome
