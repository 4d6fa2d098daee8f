"""Label selectors inside objects: what they may look like, and how they read as text.

The ones in a query string are `selectors`; these are the `selector` fields of workloads, budgets and policies.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, names
from trainmaster.cluster.apiserver.causes import Cause

_WITH_VALUES = ("In", "NotIn")
_WITHOUT = ("Exists", "DoesNotExist")


def rules(selector: Object, path: str) -> Iterator[Cause]:
    """Faults of a LabelSelector."""
    yield from names.labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, term in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = term.get("operator") or "", term.get("values") or []
        if operator in _WITH_VALUES and not values:
            yield causes.required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in _WITHOUT and values:
            yield causes.forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator not in _WITH_VALUES + _WITHOUT:
            yield causes.invalid(f"{at}.operator", operator, "not a valid selector operator")
        key = term.get("key") or ""
        yield from names.refused(f"{at}.key", key, names.qualified(key))
        for position, value in enumerate(values):
            yield from names.refused(f"{at}.values[{position}]", value, names.label_value(value))


def is_empty(selector: Json) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def text(selector: Json) -> str:
    """A LabelSelector, or a plain map of labels, as one would write it in a query."""
    if not isinstance(selector, dict):
        return ""
    plain = not ({"matchLabels", "matchExpressions"} & selector.keys()
                 and all(not isinstance(value, str) for value in selector.values()))
    same = selector if plain else selector.get("matchLabels") or {}
    found = [(key, f"{key}={value}") for key, value in same.items()]
    for term in () if plain else selector.get("matchExpressions") or ():
        key, values = term.get("key"), ",".join(sorted(term.get("values") or ()))
        found.append((key, {
            "In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key,
        }.get(term.get("operator"), f"!{key}")))
    return ",".join(written for _, written in sorted(found))
