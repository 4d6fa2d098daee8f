"""Roles that gather their rules from others. Pure; the API server gathers at its start, a controller ever after."""

from collections.abc import Iterable

from trainmaster.api import labels
from trainmaster.api.meta import Object, labels_of, name_of


def gathered(role: Object, roles: Iterable[Object]) -> list[Object]:
    """The rules of all roles that one selects, each once."""
    found: list[Object] = []
    ordered = sorted(roles, key=name_of)
    for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        for each in ordered:
            if name_of(each) != name_of(role) and labels.holds(selector, labels_of(each)):
                found.extend(rule for rule in each.get("rules") or () if rule not in found)
    return found
