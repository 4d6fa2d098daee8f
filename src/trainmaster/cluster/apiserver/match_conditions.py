"""Whether a webhook's `matchConditions` let it be asked. Pure.

All of them must hold. One that is false decides, whatever the others say; else one that fails decides, and the failure
policy says what that means.
"""

from collections.abc import Sequence

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import expression_access, expressions
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.authorization import Authorizer
from trainmaster.cluster.apiserver.expressions import Failed, Unusable

VARIABLES = ("object", "oldObject", "request", "authorizer")


class Undecided(Exception):
    """At least one could not be evaluated, and none is false."""


def hold(conditions: Sequence[tuple[str, str]], request: Object, who: Identity, access: Authorizer | None) -> bool:
    """Whether all are true for what an AdmissionReview would say. Raises Undecided.

    `access` answers what conditions ask about who may do what, by default `who` sent the request.
    """
    with expression_access.asking(who, lambda asker, wanted: access is not None and
                                   access.decide(asker, wanted).allowed):
        return _hold(conditions, request)


def _hold(conditions: Sequence[tuple[str, str]], request: Object) -> bool:
    given = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": _shown(request),
             "authorizer": {"requestResource": _target(request)}}
    failed: list[str] = []
    for _name, text in conditions:
        try:
            if expressions.compiled(text, *VARIABLES).value(given) is not True:
                return False
        except Failed as error:
            failed.append(f"expression '{text}' resulted in error: {error}")
        except Unusable as error:
            failed.append(f"expression '{text}' cannot be evaluated by this server: {error}")
    if failed:
        raise Undecided(failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]")
    return True


def _shown(request: Object) -> Object:
    """What is said about a request beside its objects."""
    return {field: value for field, value in request.items() if field not in {"object", "oldObject"}}


def _target(request: Object) -> Object:
    """What the request is about, as far as access goes."""
    found = {**request["requestResource"], "subresource": request.get("requestSubResource"),
             "namespace": request.get("namespace"), "name": request.get("name")}
    return {field: found[field] or "" for field in ("group", "resource", "subresource", "namespace", "name")}
