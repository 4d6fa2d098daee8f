"""Whether a webhook's `matchConditions` let it be asked. Pure.

All of them must hold. One that is false decides, whatever the others say; else one that fails decides, and the failure
policy says what that means.
"""

from collections.abc import Sequence

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import expressions
from trainmaster.cluster.apiserver.expressions import Failed, Unusable

VARIABLES = ("object", "oldObject", "request")


class Undecided(Exception):
    """At least one could not be evaluated, and none is false."""


def hold(conditions: Sequence[tuple[str, str]], request: Object) -> bool:
    """Whether all are true for what an AdmissionReview would say. Raises Undecided."""
    given = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": _shown(request)}
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
