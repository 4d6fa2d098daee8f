"""PodDisruptionBudgets, as far as server and controller must agree on them: whom one selects, and what it says of how
many may go. Pure.
"""

from collections.abc import Mapping
from datetime import datetime

from trainmaster.api.labels import holds
from trainmaster.api.meta import Object, Resource, metadata, timestamp

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ALLOWED = "DisruptionAllowed"
ENOUGH, TOO_FEW, FAILED = "SufficientPods", "InsufficientPods", "SyncFailed"


def selects(budget: Object, labels: Mapping[str, str]) -> bool:
    """Whether a pod with these labels counts. A budget without a selector selects nothing, an empty one everything."""
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and holds(selector, labels)


def said(budget: Object, allowed: int, now: datetime, failure: str = "") -> list[Object]:
    """The conditions of a budget that allows so many evictions, or none because of a failure."""
    was = (budget.get("status") or {}).get("conditions") or []
    truth, reason = ("True", ENOUGH) if allowed else ("False", FAILED if failure else TOO_FEW)
    found = {"type": ALLOWED, "status": truth, "reason": reason, "message": failure,
             "lastTransitionTime": timestamp(now), "observedGeneration": int(metadata(budget).get("generation") or 0)}
    known = next((each for each in was if each.get("type") == ALLOWED), None)
    if known is not None and known.get("status") == truth:
        found["lastTransitionTime"] = known["lastTransitionTime"]
    return [*(each for each in was if each is not known), found]
