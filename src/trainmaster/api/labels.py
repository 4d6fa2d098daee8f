"""Label selectors that stand in objects (`matchLabels`, `matchExpressions`): whom they select. Pure.

Servers and controllers must agree on this to the letter, so there is one of it.
"""

from collections.abc import Mapping

from trainmaster.api.meta import Object


def holds(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether it selects something with these labels. An empty one selects everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(meets(term, labels) for term in selector.get("matchExpressions") or ())


def meets(term: Object, labels: Mapping[str, str]) -> bool:
    """Whether labels are as one expression asks."""
    value, values = labels.get(term.get("key") or ""), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
