"""A request as the question that access is decided on, and the refusal if the answer is no.

The question is what Kubernetes makes of a path, before anybody looks whether there is such a kind: who may not ask is
not told what exists.
"""

from urllib.parse import unquote

from trainmaster.api.meta import Resource
from trainmaster.cluster.apiserver import failures, names
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.failures import Failure, quoted
from trainmaster.cluster.apiserver.rbac import Attributes
from trainmaster.cluster.apiserver.routing import Place, Query
from trainmaster.cluster.apiserver.selectors import Selector, parse_fields
from trainmaster.kube.transport import Request


def about_path(request: Request) -> Attributes:
    """A request for something that is no resource: discovery, health, metrics."""
    return Attributes(request.method.lower(), path=unquote(request.path))


def about_place(where: Place, verb: str, query: Query) -> Attributes:
    """A request for a resource. A namespace is in itself, and a list of one name is about that name."""
    namespace, name = where.namespace, where.name
    if where.plural == "namespaces" and name and not namespace:
        namespace = name
    if not name and verb in ("list", "watch"):
        name = _selected_name(query)
    return Attributes(verb, where.group, where.plural, where.subresource, namespace, name)


def refused(who: Identity, wanted: Attributes, reason: str = "") -> Failure:
    """403, in the words of Kubernetes."""
    user, told = quoted(who.user), f": {reason}" if reason else ""
    if wanted.path:
        why = f"User {user} cannot {wanted.verb} path {quoted(wanted.path)}{told}"
        return Failure(403, "Forbidden", f"forbidden: {why}", {})
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    place = f"in the namespace {quoted(wanted.namespace)}" if wanted.namespace else "at the cluster scope"
    why = (f"User {user} cannot {wanted.verb} resource {quoted(full)} in API group {quoted(wanted.group)} "
           f"{place}{told}")
    return failures.forbidden(Resource(wanted.group, "", wanted.resource, ""), wanted.name, why)


def _selected_name(query: Query) -> str:
    """The name that a field selector asks for, if it asks for one; read as the list itself reads it, commas and all."""
    given = query.text("fieldSelector") if query.pairs else ""
    if not given:
        return ""
    try:
        name, _ = Selector((), parse_fields(given)).without_name()
    except Failure:
        return ""      # refused when it is used
    return name if name and not names.path_segment(name) else ""
