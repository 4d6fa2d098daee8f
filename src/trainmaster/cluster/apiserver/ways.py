"""Requests that the nodes answer, in the end: from a place in the API to the node and the address that are meant."""

from collections.abc import Callable

import orjson

from trainmaster.api.core import ENDPOINTS, NODES, PODS, SERVICES
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver import failures, lists, metering, proxying
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.connecting import Reach
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.proxying import Proxied
from trainmaster.cluster.apiserver.resources import Resources
from trainmaster.cluster.apiserver.routing import Place, Query
from trainmaster.cluster.apiserver.selectors import Selector
from trainmaster.cluster.store import Store
from trainmaster.kube.transport import Request, Response, Transport


class Ways:
    """Finds who is meant in what is stored."""

    def __init__(self, store: Store, catalog: Catalog, resources: Resources,
                 node: Callable[[str], Transport] | None, reach: Reach | None) -> None:
        self._store = store
        self._catalog = catalog
        self._resources = resources
        self._node = node
        self.reach = reach

    def proxied(self, kind: Kind, place: Place, request: Request) -> Response | Proxied:
        """The way to a pod's, a service's or a node's own HTTP. Raises Failure."""
        wanted = proxying.wanted(place.name)
        if not place.rest and request.method in {"GET", "HEAD"} and not proxying.upgrades(request.headers):
            return Response(301, {"Location": proxying.with_slash(request)})
        thing = orjson.loads(self._resources.get(kind, place.namespace, wanted.name))
        backed = None
        if kind.resource == SERVICES:
            found = self._store.get(self._kind(ENDPOINTS).key(place.namespace, wanted.name))
            backed = orjson.loads(found.value) if found is not None else {}
        return proxying.way(place, wanted, thing, backed, request, self.reach)

    async def metered(self, kind: Kind, place: Place, verb: str, selector: Selector) -> Object:
        """What pods or nodes use, measured now. Raises Failure."""
        if verb not in kind.verbs or place.subresource or self._node is None:
            raise failures.method_not_allowed()
        of_pods = kind is metering.PODS
        stored = self._kind(PODS if of_pods else NODES)
        page = await lists.read(self._store, stored, place.namespace, selector, Query(()))
        things = [thing for thing in map(orjson.loads, page.items) if place.name in ("", thing["metadata"]["name"])]
        if of_pods:
            hosts = {thing["spec"].get("nodeName") for thing in things} - {None, ""}
            known = {thing["metadata"]["uid"]: thing for thing in things}
            found = metering.of_pods(await metering.measured(sorted(hosts), self._node), known)
        else:
            named = {thing["metadata"]["name"]: thing for thing in things}
            found = metering.of_nodes(await metering.measured(sorted(named), self._node), named)
        if place.name and not found:
            raise failures.not_found(kind.resource, place.name)
        return found[0] if place.name else metering.as_list(kind, found)

    def _kind(self, resource: Resource) -> Kind:
        found = self._catalog.find(resource.group, resource.version, resource.plural)
        assert found is not None
        return found
