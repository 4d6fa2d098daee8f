"""One request for a resource, taken apart: what it is about, and its parts, read when somebody needs them."""

from dataclasses import dataclass
from typing import Any

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import bodies, negotiation, patching
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.bodies import Body
from trainmaster.cluster.apiserver.builtin import Type
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.kinds import BINDINGS
from trainmaster.cluster.apiserver.options import Options, write_options
from trainmaster.cluster.apiserver.patching import Patch
from trainmaster.cluster.apiserver.reviews import Asked
from trainmaster.cluster.apiserver.routing import Place, Query
from trainmaster.cluster.apiserver.selectors import Selector, selector
from trainmaster.kube.transport import Request


@dataclass(frozen=True, slots=True)
class Call:
    """One request for a resource, taken apart."""

    kind: Kind
    place: Place
    verb: str
    query: Query
    request: Request
    who: Identity

    def asked(self, operation: str, given: Json = None, **more: Any) -> Asked:
        """What webhooks are told about the request."""
        place = self.place
        resource = BINDINGS if place.plural == BINDINGS.plural else self.kind.resource
        return Asked(operation, resource, place.subresource, place.namespace, place.name, self.who, self.query,
                     given or {}, **more)

    @property
    def form(self) -> negotiation.Form:
        return negotiation.wanted(self.request.headers.get("accept", ""))

    @property
    def media(self) -> str:
        return bodies.media_type(self.request.headers.get("content-type", ""))

    def body(self) -> Body:
        """An object of the kind. Raises Failure 400, 413 or 415."""
        resource = self.kind.resource
        return bodies.parse(self.request.body, self.request.headers.get("content-type", ""), kind=resource.kind,
                            api_version=resource.api_version, custom=self.kind.custom)

    def attachment(self) -> Json:
        """What a body says that holds something built-in instead: options, a scale. Raises Failure 400, 413 or 415."""
        return bodies.parse(self.request.body, self.request.headers.get("content-type", "")).value

    def patch(self, type_: Type | None) -> Patch:
        """A patch of something of this type. Raises Failure 400, 413 or 415."""
        return patching.read(self.request.body, self.media, type_)

    def options(self, read: Body | Patch | None = None) -> Options:
        """Raises Failure 422."""
        return write_options(self.query, self.verb, None if read is None else read.repeats,
                             self.request.headers.get("user-agent", ""), applied=self.applies)

    @property
    def applies(self) -> bool:
        """Whether this is a configuration to be applied."""
        return self.verb == "patch" and self.media == patching.APPLY_PATCH

    def selector(self) -> Selector:
        found = selector(self.query.text("labelSelector"), self.query.text("fieldSelector"), self.kind.selectable,
                         self.kind.resource.kind)
        return found if self.kind.view is None else found.renamed(self.kind.view.fields)
