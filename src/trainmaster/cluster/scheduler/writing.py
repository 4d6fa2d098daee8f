"""A verdict about a group as its dialect writes it: status, annotation with the reason, events. Pure.

Nothing is written that says the same as what is there: times and the id of a decision do not count as news.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from trainmaster.api.groups import WHY
from trainmaster.api.meta import Object, metadata, timestamp
from trainmaster.cluster.scheduler.amounts import Amounts, shown
from trainmaster.cluster.scheduler.dialects import COSCHEDULING, KUBE_BATCH, T9K, Dialect, entries, fields
from trainmaster.cluster.scheduler.settings import Condition, Verdict


def status_patch(verdict: Verdict, dialect: Dialect, now: datetime, decision: str) -> Object | None:
    """The merge patch that brings the group's status up to date, or None."""
    there = fields(verdict.group.raw.get("status"))
    wanted: Object = {} if dialect is T9K else {"phase": _phase(verdict, dialect)}
    if dialect is COSCHEDULING and verdict.phase == "Scheduling" and not there.get("scheduleStartTime"):
        wanted["scheduleStartTime"] = timestamp(now)
    for name, count in (("running", verdict.running), ("succeeded", verdict.succeeded), ("failed", verdict.failed)):
        if count or there.get(name):
            wanted[name] = count or None
    news = {name: value for name, value in wanted.items() if there.get(name) != value}
    conditions = _conditions(entries(there.get("conditions")), verdict.condition, now, decision)
    if conditions is not None and dialect not in (COSCHEDULING, T9K):
        news["conditions"] = conditions
    return {"status": news} if news else None


def why_patch(verdict: Verdict) -> Object | None:
    """The annotation with the reason, brought up to date, or None."""
    there = (metadata(verdict.group.raw).get("annotations") or {}).get(WHY)
    wanted = None if verdict.why is None else orjson.dumps(
        {"why": verdict.why.told(), **verdict.why.compact()}).decode()
    return None if there == wanted else {"metadata": {"annotations": {WHY: wanted}}}


def queue_status(raw: Object, allocated: Amounts, counts: Mapping[str, int]) -> Object | None:
    """What a queue shows: what it has, and how many groups of it are in each state."""
    there = fields(raw.get("status"))
    had = fields(there.get("allocated"))
    wanted: dict[str, Any] = {"allocated": {name: shown(name, amount) for name, amount in sorted(allocated.items())
                                            if amount}}
    if not there.get("state"):
        wanted["state"] = "Open"
    for name in ("pending", "running", "inqueue", "unknown", "completed"):
        if counts.get(name, 0) != (there.get(name) or 0):
            wanted[name] = counts.get(name, 0)
    if wanted["allocated"] == had:
        del wanted["allocated"]
    else:      # a merge patch adds: what the queue has no longer must be said
        gone = {name: None for name in had if name not in wanted["allocated"]}
        wanted["allocated"] = {**gone, **wanted["allocated"]}
    return {"status": wanted} if wanted else None


def _phase(verdict: Verdict, dialect: Dialect) -> str:
    return "Pending" if dialect is KUBE_BATCH and verdict.phase == "Inqueue" else verdict.phase


def _conditions(there: list[Object], new: Condition | None, now: datetime, decision: str) -> list[Object] | None:
    if new is None:
        return None
    written = {"type": new.type, "status": "True", "reason": new.reason, "message": new.message}
    # Conditions never go back to False; the one with the newer time is the truth. So it is news only if it is that one.
    newest = max(there, key=lambda each: str(each.get("lastTransitionTime") or ""), default=None)
    same = next((each for each in there if each.get("type") == new.type), None)
    if same is not None and all((same.get(name) or "") == value for name, value in written.items()) and (
            newest is same or str(same.get("lastTransitionTime")) == str((newest or {}).get("lastTransitionTime"))):
        return None
    fresh = {**written, "lastTransitionTime": timestamp(now), "transitionID": decision}
    return [*(each for each in there if each.get("type") != new.type), fresh]
