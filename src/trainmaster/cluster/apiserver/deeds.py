"""Subresources that stand for a deed: to bind or evict a pod, to scale something, to connect to a container.

What is sent there is not stored itself; webhooks are asked about it all the same.
"""

from functools import partial

import orjson

from trainmaster.api.core import SCALES
from trainmaster.api.meta import Json, Resource
from trainmaster.cluster.apiserver import applying, builtin, connecting, failures, parts, patching
from trainmaster.cluster.apiserver.answers import in_json
from trainmaster.cluster.apiserver.calls import Call
from trainmaster.cluster.apiserver.chain import Chain
from trainmaster.cluster.apiserver.evicting import Evictions
from trainmaster.cluster.apiserver.kinds import BINDINGS
from trainmaster.cluster.apiserver.matching import CONNECT, CREATE, UPDATE
from trainmaster.cluster.apiserver.resources import Resources
from trainmaster.cluster.apiserver.reviews import Asked
from trainmaster.kube.transport import Response
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("apiserver")


class Deeds:
    """Does them."""

    def __init__(self, resources: Resources, chain: Chain, evictions: Evictions, reach: connecting.Reach | None,
                 clock: Clock) -> None:
        self._resources = resources
        self._chain = chain
        self._evictions = evictions
        self._reach = reach
        self._clock = clock

    async def connected(self, call: Call) -> connecting.Tunnel:
        """A way to the pod, if webhooks have nothing against it."""
        place = call.place
        pod = orjson.loads(self._resources.get(call.kind, place.namespace, place.name))
        kind, options = connecting.options(place.subresource, call.query)
        if "upgrade" not in call.request.headers.get("connection", "").lower():
            raise failures.bad_request("Upgrade request required")
        way = connecting.tunnel(pod, place.subresource, call.query, self._reach)
        review = self._chain.review(call.kind, call.asked(CONNECT, kind=kind))
        if review is not None:
            shown = {"kind": kind.kind, "apiVersion": kind.api_version, **options}
            await review.validated(await review.mutated(shown, None, lambda _thing: None), None)
        log.info("connected", what=f"pods/{place.subresource}", namespace=place.namespace, pod=place.name,
                 user=call.who.user)
        return way

    async def scale(self, call: Call) -> Response:
        if call.applies:
            return await self._apply_scale(call)
        if call.verb == "patch":
            type_ = None if call.kind.custom else builtin.shape_of("autoscaling/v1", "Scale")
            edit = parts.scaled(call.kind, call.patch(type_).applied)
        else:
            body = call.attachment()
            edit = parts.scaled(call.kind, lambda _present: body)
        place = call.place
        written = await self._resources.change(call.kind, place.namespace, place.name, "scale", edit, call.options(),
                                               asked=self._asked_to_scale(call, UPDATE))
        return in_json(200, parts.scale_of(call.kind, orjson.loads(call.kind.present(written.value))))

    async def bind(self, call: Call) -> Response:
        body = await self._reviewed(call, BINDINGS, call.attachment())
        bind = parts.binding(body, call.place.name, self._clock.now())
        await self._resources.change(call.kind, call.place.namespace, bind.pod, "binding", bind, call.options())
        return in_json(201, {**parts.SUCCESS, "code": 201})

    async def evict(self, call: Call) -> Response:
        body = await self._reviewed(call, parts.EVICTION, call.attachment())
        deletion = parts.eviction(body, call.place.name, call.query)
        await self._evictions.evict(call.kind, call.place.namespace, call.place.name, deletion)
        return in_json(201, {**parts.SUCCESS, "code": 201})

    async def _reviewed(self, call: Call, kind: Resource, body: Json) -> Json:
        """A body that stands for a deed and is not stored itself, as webhooks want it. Raises Failure."""
        review = self._chain.review(call.kind, call.asked(CREATE, kind=kind))
        if review is None or not isinstance(body, dict):
            return body
        meta = {"name": call.place.name, "namespace": call.place.namespace, **(body.get("metadata") or {})}
        shown = {"kind": kind.kind, "apiVersion": kind.api_version, **body, "metadata": meta}
        result = await review.mutated(shown, None, lambda _thing: None)
        await review.validated(result, None)
        return result

    async def _apply_scale(self, call: Call) -> Response:
        kind, place, options = call.kind, call.place, call.options()
        written = await self._resources.apply(
            kind, place.namespace, place.name, "scale", patching.read_configuration(call.request.body), options,
            partial(self._asked_to_scale, call), partial(applying.of_scale, kind))
        return in_json(200, parts.scale_of(kind, orjson.loads(kind.present(written.value))))

    @staticmethod
    def _asked_to_scale(call: Call, operation: str) -> Asked:
        return call.asked(operation, kind=SCALES, shown=partial(parts.scale_of, call.kind),
                          taken=partial(parts.rescaled, call.kind))
