"""The whole chain: a request and an identity go in, an answer comes out. Knows nothing of sockets.

Two transports call `handle`: HTTP (`http`) and in-process (`inprocess`). Both carry bytes and an identity, so there is
no second way in. Whatever a client sends, the answer is a Status; a bug of ours is a 500, and it is logged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import ec

from trainmaster.api.core import NAMESPACES
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import (
    asking,
    bootstrap,
    connecting,
    failures,
    health,
    impersonation,
    lifecycle,
    lists,
    logs,
    managers,
    metering,
    negotiation,
    node_access,
    parts,
    patching,
    proxying,
    reading,
    resizing,
    routing,
    telling,
    traffic,
)
from trainmaster.cluster.apiserver.access_reviews import Reviews
from trainmaster.cluster.apiserver.accounts import ISSUER, Accounts
from trainmaster.cluster.apiserver.admission import Admission
from trainmaster.cluster.apiserver.answers import in_json, refusal
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.authorization import Either, Rbac
from trainmaster.cluster.apiserver.calls import Call
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.chain import Chain
from trainmaster.cluster.apiserver.deeds import Deeds
from trainmaster.cluster.apiserver.documents import Documents, Version
from trainmaster.cluster.apiserver.escalation import Escalation
from trainmaster.cluster.apiserver.evicting import Evictions
from trainmaster.cluster.apiserver.forms import Listing
from trainmaster.cluster.apiserver.kinds import BINDINGS, BUILT_IN, FIRST
from trainmaster.cluster.apiserver.matching import CREATE, DELETE, UPDATE, Judge
from trainmaster.cluster.apiserver.options import Options, delete_options
from trainmaster.cluster.apiserver.rbac import Attributes
from trainmaster.cluster.apiserver.resources import Resources, Written
from trainmaster.cluster.apiserver.reviews import Asked
from trainmaster.cluster.apiserver.routing import Place, Query
from trainmaster.cluster.apiserver.streaming import Streaming
from trainmaster.cluster.apiserver.traffic import Traffic
from trainmaster.cluster.apiserver.watches import Watches, wanted
from trainmaster.cluster.apiserver.ways import Ways
from trainmaster.cluster.store import Closed, Refused, Store
from trainmaster.kube.transport import Request, Response, Transport
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("apiserver")
Answer = Response | Streaming | connecting.Tunnel | proxying.Proxied
Door = Callable[[Request, Identity], Awaitable[Response]]
# Parts of a pod that are changed in a way of their own.
_EDITS = {"ephemeralcontainers": parts.attached, "resize": resizing.resized}
_ISSUER = ((".well-known", "openid-configuration"), ("openid", "v1", "jwks"))
# Health is for everybody, whoever asks and whatever the roles say: a probe has no token.
OPEN = frozenset((name,) for name in health.NAMES)


@dataclass(slots=True)
class Note:
    """What a request turned out to be about, for the counters."""

    about: traffic.About = traffic.OTHER


class ApiServer:
    """The server without a socket. `start` before the first request, `close` after the last."""

    def __init__(self, store: Store, *, clock: Clock, version: Version | None = None,
                 node: Callable[[str], Transport] | None = None, reach: connecting.Reach | None = None,
                 most_requests: int = traffic.MOST, judges: Sequence[tuple[Object, Judge]] = (),
                 doors: Mapping[str, Door] | None = None,
                 account_key: ec.EllipticCurvePrivateKey | None = None) -> None:
        """`node` gives the way to a node by its name; the transport stays its owner's to close. `reach` opens a plain
        connection to a node.

        `judges` are webhooks that need no call: a configuration of either kind, and the function behind it. `doors`
        answer paths that begin with their name, and see for themselves to who may do what.
        """
        self._store = store
        self._clock = clock
        self._node = node
        self._doors = dict(doors or {})
        self._catalog = Catalog((*BUILT_IN, *metering.KINDS) if node is not None else BUILT_IN)
        self._admission = Admission(store, self._catalog)
        self._rbac = Rbac(store)
        self._nodes = node_access.Nodes(store)
        self._access = Either(self._rbac, self._nodes)
        self._watches = Watches(store, clock)
        self._chain = Chain(store, self._catalog, judges, self._access, reach)
        self._resources = Resources(store, self._catalog, self._admission, self._chain, self._watches, clock,
                                    (Escalation(self._rbac).check, node_access.restrict))
        self._ways = Ways(store, self._catalog, self._resources, node, reach)
        evictions = Evictions(store, self._catalog, self._resources, clock)
        self._deeds = Deeds(self._resources, self._chain, evictions, self._ways.reach, clock)
        self.accounts = Accounts(store, clock, account_key)
        self._reviews = Reviews(self._access, self._rbac, self._whose)
        self._tokens: Callable[[str], Identity | None] = lambda _header: None
        self._documents = Documents(self._catalog, version or Version(), clock)
        self._writes: set[asyncio.Task[Answer]] = set()
        self.traffic = Traffic(most_requests)

    async def start(self) -> None:
        """Take in what is stored, make what must always be there, finish what a crash interrupted."""
        self._admission.start()
        self._chain.refresh()
        kind = self._catalog.find(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)
        assert kind is not None
        for name in FIRST:
            if self._store.latest(kind.key("", name)) is None:
                await self._resources.create(kind, "", {"metadata": {"name": name}},
                                             Options(manager=managers.SERVER))
        await bootstrap.reconcile(self._store, self._catalog, self._resources, self._clock.now())
        for definition in self._catalog.definitions():
            if definition["metadata"].get("deletionTimestamp"):
                await self._resources.retirement.clear(definition)

    async def close(self) -> None:
        """End the watches and wait for writes under way. The store is the caller's to close."""
        self._watches.end()
        await self._chain.close()
        while self._writes:
            await asyncio.wait(self._writes)

    async def handle(self, request: Request, who: Identity) -> Answer:
        """Answer one request. Raises nothing but CancelledError."""
        note = Note()
        try:
            self.traffic.enter(request.path)
        except failures.Failure as failure:
            return refusal(failure)
        try:
            answer = await self._answered(request, who, note)
        finally:
            self.traffic.leave()
        self.traffic.count(note.about, answer.status)
        return answer

    async def _answered(self, request: Request, who: Identity, note: Note) -> Answer:
        try:
            return await self._answer(request, who, note)
        except failures.Failure as failure:
            return refusal(failure)
        except Refused as error:
            return refusal(failures.unavailable(error.reason))
        except Closed:
            return refusal(failures.unavailable("the server is shutting down"))
        except Exception:      # the outermost frame of every request: a bug must not take the server along
            log.exception("request failed", method=request.method, path=request.path[:200], user=who.user)
            return refusal(failures.internal("see the log of the server"))

    async def _answer(self, request: Request, who: Identity, note: Note) -> Answer:
        where = routing.place(request.path)
        who = impersonation.acting(who, request.headers, self._authorize)
        if isinstance(where, routing.Elsewhere):
            if where.parts and (door := self._doors.get(where.parts[0])) is not None:
                return await door(request, who)
            if where.parts[:1] not in OPEN:
                self._authorize(who, asking.about_path(request))
            if where.parts in _ISSUER and request.method in {"GET", "HEAD"}:
                return self._issuer(request, where.parts)
            return self._metrics() if where.parts == ("metrics",) else self._documents.answer(request, where.parts)
        query = Query(request.query)
        watch = where.watch or (where.subresource != routing.PROXY and query.flag("watch"))
        verb = routing.verb(request.method, where, watch=watch)
        self._authorize(who, asking.about_place(where, verb, query))
        kind = self._catalog.find(where.group, where.version, where.plural)
        if kind is None:
            return await self._unknown(request, where, query, who)
        if where.namespace and not kind.resource.namespaced:
            raise failures.unknown_resource()
        call = Call(kind, where, verb, query, request, who)
        if kind.virtual:
            if where.group != metering.GROUP:
                return self._virtual(call)
            return in_json(200, await self._ways.metered(kind, where, verb, call.selector()))
        part = where.subresource if where.subresource and kind.subresource(where.subresource) else ""
        note.about = (call.verb, where.group, where.version, where.plural, part)
        if where.subresource:
            return await self._subresource(call)
        nowhere = kind.resource.namespaced and not where.namespace and call.verb not in {"list", "watch"}
        if nowhere and (where.name or kind.custom):
            raise failures.unknown_resource()
        if nowhere or call.verb not in kind.verbs:
            raise failures.method_not_allowed()
        if call.verb == "create" and where.name:
            raise failures.method_not_allowed()
        if call.verb in {"get", "list", "watch"}:
            return await self._listed(call) if call.verb == "list" else self._read(call)
        return await self._shielded(self._write(call))

    def _issuer(self, request: Request, parts: tuple[str, ...]) -> Response:
        """What others need to verify the tokens of accounts."""
        if parts[0] == "openid":
            return Response(200, {"Content-Type": "application/jwk-set+json"}, orjson.dumps(self.accounts.keys()))
        server = f"https://{request.headers.get('host') or 'kubernetes.default.svc'}"
        return in_json(200, self.accounts.configuration(server))

    def _metrics(self) -> Response:
        said = traffic.text(self.traffic, watches=len(self._watches), revision=self._store.revision,
                            oldest=self._store.oldest)
        return Response(200, {"Content-Type": traffic.MEDIA_TYPE}, said.encode())

    def recognise(self, tokens: Callable[[str], Identity | None]) -> None:
        """Know, for reviews, whose tokens the front of the server takes."""
        self._tokens = tokens

    def _whose(self, token: str, audiences: Sequence[str]) -> tuple[Identity, list[str]] | None:
        if (who := self._tokens(f"Bearer {token}")) is not None:      # given out for this server, and nobody else
            fitting = [each for each in audiences if each == ISSUER]
            return (who, fitting) if fitting or not audiences else None
        return self.accounts.identify(token, audiences)

    def _virtual(self, call: Call) -> Answer:
        """A kind whose objects are answered and never stored."""
        if call.verb != "create" or call.place.name:
            raise failures.method_not_allowed()
        if call.form.shape is not negotiation.Shape.OBJECT:
            raise failures.Failure(406, "NotAcceptable", "only the following media types are accepted: "
                                   "application/json, application/yaml, application/vnd.kubernetes.protobuf")
        sent, _ = lifecycle.readable(call.kind, call.body().value)
        said = self._reviews.answer(call.kind, call.who, call.place.namespace, sent, self._clock.now())
        return in_json(201, said)

    def _authorize(self, who: Identity, wanted: Attributes) -> None:
        """Raises Failure 403."""
        if not (decision := self._access.decide(who, wanted)).allowed:
            raise asking.refused(who, wanted, decision.reason)

    async def _unknown(self, request: Request, where: Place, query: Query, who: Identity) -> Answer:
        if (where.group, where.plural) == ("", BINDINGS.plural) and where.namespace and not where.name:
            if request.method != "POST":
                raise failures.method_not_allowed()
            pods = self._catalog.find("", "v1", "pods")
            assert pods is not None
            return await self._shielded(self._deeds.bind(Call(pods, where, "create", query, request, who)))
        if self._catalog.serves(where.group):
            raise failures.unknown_resource()
        return Response(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n")

    async def _shielded(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """A client that goes away must not leave a write half done: stored, but not known to the rest of the server."""
        task = asyncio.ensure_future(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    def _read(self, call: Call) -> Answer:
        place, form = call.place, call.form
        if call.verb == "watch":
            return self._watches.open(wanted(call.kind, place.namespace, place.name, call.selector(), form, call.query))
        if (revision := call.query.revision()) > self._store.revision:
            raise failures.ahead_of_time(revision, self._store.revision)
        value = self._resources.get(call.kind, place.namespace, place.name)
        return telling.one(call, 200, value, form, self._clock.now())

    async def _listed(self, call: Call) -> Answer:
        form = call.form
        page = await lists.read(self._store, call.kind, call.place.namespace, call.selector(), call.query)
        return await telling.many(call, page, form, self._clock.now())

    async def _write(self, call: Call) -> Answer:
        kind, place, form = call.kind, call.place, call.form
        if call.verb == "create":
            body = call.body()
            made = await self._resources.create(kind, place.namespace, body.value, call.options(body),
                                                call.asked(CREATE))
            return self._object(call, 201, made, form)
        if call.verb in {"update", "patch"}:
            written = await self._change(call, "")
            return self._object(call, 201 if written.created else 200, written, form)
        options_body = call.attachment() if call.request.body.strip() else None
        deletion = delete_options(options_body, call.query)
        asked = call.asked(DELETE, options_body)
        if call.verb == "delete":
            written = await self._resources.delete(kind, place.namespace, place.name, deletion, asked)
            if written.gone and not kind.answers_object:
                uid = orjson.loads(written.value)["metadata"]["uid"]
                return in_json(200, failures.success(kind.resource, place.name, uid), written.warnings)
            return self._object(call, 200, written, form)
        call.query.number("limit")      # not obeyed, but read
        page = await lists.read(self._store, kind, place.namespace, call.selector(), Query(()))
        await self._resources.delete_all(kind, page.items, deletion, asked)
        return await telling.many(call, Listing(page.items, self._store.revision), form, self._clock.now())

    async def _change(self, call: Call, part: str) -> Written:
        kind, place = call.kind, call.place
        if call.applies:
            options = call.options()
            return await self._resources.apply(kind, place.namespace, place.name, part,
                                               patching.read_configuration(call.request.body), options,
                                               partial(self._asked_to_apply, call))
        if call.verb == "patch":
            patch = call.patch(kind.type)
            return await self._resources.change(kind, place.namespace, place.name, part, patch.applied,
                                                call.options(patch), asked=call.asked(UPDATE))
        body = call.body()
        fresh = [body]

        def replaced(_newest: Object) -> Json:
            """What was read; a second attempt reads again, for the first changes what it got."""
            return (fresh.pop() if fresh else call.body()).value

        options = call.options(body)
        try:
            return await self._resources.change(kind, place.namespace, place.name, part, replaced, options,
                                                conditional=not kind.unconditional, keeps=True,
                                                asked=call.asked(UPDATE))
        except failures.Failure as failure:
            if failure.code == 404:      # what is wrong with it is told before that there is none
                reading.absent(kind, call.body().value, place.name, place.namespace, options)
            raise

    def _asked_to_apply(self, call: Call, operation: str) -> Asked:
        """Who applies to nothing creates, and must be allowed to. Raises Failure 403."""
        if operation == CREATE:
            self._authorize(call.who, asking.about_place(call.place, "create", call.query))
        return call.asked(operation)

    async def _subresource(self, call: Call) -> Answer:
        place = call.place
        part = call.kind.subresource(place.subresource)
        if part is None or (call.kind.resource.namespaced and not place.namespace):
            raise failures.unknown_resource()
        if call.verb and call.verb not in part.verbs:
            raise failures.method_not_allowed()
        match place.subresource:
            case "status":
                if call.verb == "get":
                    return self._read(call)
                return await self._shielded(self._write_part(call))
            case "ephemeralcontainers" | "approval" | "resize" if call.verb == "get":
                return self._read(call)
            case "log":
                pod = orjson.loads(self._resources.get(call.kind, place.namespace, place.name))
                return await logs.log(pod, call.query, self._node)
            case "exec" | "attach" | "portforward":
                return await self._deeds.connected(call)
            case "proxy":
                return self._ways.proxied(call.kind, place, call.request)
            case "token":
                asked = parts.token_request(call.attachment() if call.request.body.strip() else {})
                self._nodes.check_token(call.who, place.namespace, place.name, asked)
                return in_json(201, self.accounts.request(place.namespace, place.name, asked))
            case "scale" if call.verb == "get":
                thing = orjson.loads(call.kind.present(self._resources.get(call.kind, place.namespace, place.name)))
                return in_json(200, parts.scale_of(call.kind, thing))
            case "scale":
                return await self._shielded(self._deeds.scale(call))
            case "binding":
                return await self._shielded(self._deeds.bind(call))
            case "eviction":
                return await self._shielded(self._deeds.evict(call))
            case _:
                return await self._shielded(self._write_part(call))

    async def _write_part(self, call: Call) -> Answer:
        place, form = call.place, call.form
        if place.subresource == "finalize":
            edit = parts.finalized(call.kind, call.body().value)
            written = await self._resources.change(call.kind, place.namespace, place.name, "finalize", edit,
                                                   call.options(), asked=call.asked(UPDATE))
        elif place.subresource in _EDITS:
            written = await self._edit(call)
        else:      # an approval is a condition, and all that may be written there
            written = await self._change(call, "status" if place.subresource == "approval" else place.subresource)
        return self._object(call, 200, written, form)

    async def _edit(self, call: Call) -> Written:
        kind, place = call.kind, call.place
        sent = call.patch(kind.type).applied if call.verb == "patch" else lambda _present: call.body().value
        edit = _EDITS[place.subresource](kind, sent)
        return await self._resources.change(kind, place.namespace, place.name, place.subresource, edit, call.options(),
                                            asked=call.asked(UPDATE))

    def _object(self, call: Call, code: int, written: Written, form: negotiation.Form) -> Response:
        return telling.one(call, code, written.value, form, self._clock.now(), written.warnings)
