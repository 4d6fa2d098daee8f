"""A verdict about a group as its dialect writes it: status, annotation with the reason, events. Pure.

Nothing is written that says the same as what is there: times and the id of a decision do not count as news.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import orjson

from trainmaster.api.groups import WHY
from trainmaster.api.meta import Object, metadata, timestamp
from trainmaster.cluster.scheduler.amounts import Amounts, shown
from trainmaster.cluster.scheduler.dialects import COSCHEDULING, KUBE_BATCH, T9K, Dialect, entries, fields
from trainmaster.cluster.scheduler.settings import Condition, Verdict

T9K_STATES = frozenset({"GroupScheduled", "QueueClosed"})
PRESSURE = 0.9      # of its quota, above which a queue of T9k says so


def status_patch(verdict: Verdict, dialect: Dialect, now: datetime, decision: str) -> Object | None:
    """The merge patch that brings the group's status up to date, or None."""
    there = fields(verdict.group.raw.get("status"))
    if dialect is T9K:
        return _t9k_status(verdict, there, now, decision)
    wanted: Object = {"phase": _phase(verdict, dialect)}
    if dialect is COSCHEDULING and verdict.phase == "Scheduling" and not there.get("scheduleStartTime"):
        wanted["scheduleStartTime"] = timestamp(now)
    if dialect is COSCHEDULING and verdict.occupied and not there.get("occupiedBy"):
        wanted["occupiedBy"] = verdict.occupied
    for name, count in (("running", verdict.running), ("succeeded", verdict.succeeded), ("failed", verdict.failed)):
        if count or there.get(name):
            wanted[name] = count or None
    news = {name: value for name, value in wanted.items() if there.get(name) != value}
    conditions = _conditions(entries(there.get("conditions")), verdict.condition, now, decision)
    if conditions is not None and dialect is not COSCHEDULING:
        news["conditions"] = conditions
    return {"status": news} if news else None


def _t9k_status(verdict: Verdict, there: Object, now: datetime, decision: str) -> Object | None:
    """Its groups have no phase; that they were scheduled once stays true."""
    known = {str(each.get("type")): each for each in entries(there.get("conditions"))}
    sufficient = ("True", "SufficientMemberPods", "") if verdict.complete else (
        "False", "InsufficientMemberPod", "Insufficient members in PodGroup, waiting for more")
    said = [("SufficientGroupMember", *sufficient)]
    if verdict.ready or "GroupScheduled" in known:
        said.append(("GroupScheduled", "True", "PodGroupScheduled", "Resources have been allocated to PodGroup"))
    news: Object = {} if (conditions := _stated(known, said, now, decision)) is None else {"conditions": conditions}
    for name, count in (("pending", verdict.pending), ("running", verdict.running), ("succeeded", verdict.succeeded),
                        ("failed", verdict.failed)):
        if count != (there.get(name) or 0):
            news[name] = count
    return _with_allocated(news, there, verdict.allocated)


def _stated(known: Mapping[str, Object], said: Sequence[tuple[str, str, str, str]], now: datetime,
            decision: str) -> list[Object] | None:
    """T9k's conditions with what is said now, or None if that is what is there."""
    stated = [dict(zip(("type", "status", "reason", "message"), each, strict=True)) for each in said]
    if all(all((known.get(each["type"]) or {}).get(name) == value for name, value in each.items()) for each in stated):
        return None
    fresh: list[Object] = []
    for each in stated:
        before = known.get(each["type"]) or {}
        since = before.get("lastTransitionTime") if before.get("status") == each["status"] else None
        fresh.append({**each, "lastTransitionTime": since or timestamp(now), "transitionID": decision})
    return fresh


def _with_allocated(news: Object, there: Object, allocated: Amounts) -> Object | None:
    """The news of a status, and what is held if that is another."""
    had = fields(there.get("allocated"))
    now = {name: shown(name, amount) for name, amount in sorted(allocated.items()) if amount}
    if now != had:      # a merge patch adds: what is held no longer must be said
        news = {**news, "allocated": {**{name: None for name in had if name not in now}, **now}}
    return {"status": news} if news else None


def urgent(status: Object | None) -> bool:
    """Whether somebody waits for this news: a phase, on which operators make pods, the state of a queue, and what T9k
    has in their place. Counters and reasons can wait for a moment, as there will be more of them."""
    news = fields((status or {}).get("status"))
    return "phase" in news or "state" in news or ("conditions" in news and any(
        each.get("type") in T9K_STATES for each in entries(news["conditions"])))


def why_patch(verdict: Verdict) -> Object | None:
    """The annotation with the reason, brought up to date, or None."""
    there = (metadata(verdict.group.raw).get("annotations") or {}).get(WHY)
    wanted = None if verdict.why is None else orjson.dumps(
        {"why": verdict.why.told(), **verdict.why.compact()}).decode()
    return None if there == wanted else {"metadata": {"annotations": {WHY: wanted}}}


def queue_status(raw: Object, allocated: Amounts, counts: Mapping[str, int]) -> Object | None:
    """What a queue shows: what it has, and how many groups of it are in each state."""
    there = fields(raw.get("status"))
    wanted: Object = {}
    if not there.get("state"):
        wanted["state"] = "Open"
    elif there["state"] == "Closing" and not sum(counts.values()):
        wanted["state"] = "Closed"
    for name in ("pending", "running", "inqueue", "unknown", "completed"):
        if counts.get(name, 0) != (there.get(name) or 0):
            wanted[name] = counts.get(name, 0)
    return _with_allocated(wanted, there, allocated)


def t9k_queue_status(raw: Object, allocated: Amounts, quota: Amounts, verdicts: Sequence[Verdict], now: datetime,
                     decision: str) -> Object | None:
    """What one of T9k's queues shows: what it has, whether that is nearly all it may have, and its groups and pods."""
    there = fields(raw.get("status"))
    known = {str(each.get("type")): each for each in entries(there.get("conditions"))}
    closed = ("True", "QueueClosed", "Queue is closed") if fields(raw.get("spec")).get("closed") else (
        "False", "QueueOpen", "Queue is open")
    full = any(allocated.get(name, 0) > PRESSURE * amount for name, amount in quota.items())
    pressure = ("True", "QueueHasResourcePressure", "Queue has used more than 90% of its quota") if full else (
        "False", "QueueHasNoResourcePressure", "Queue has sufficient resource quota")
    said = [("QueueClosed", *closed), ("ResourcePressure", *pressure)]
    news: Object = {} if (conditions := _stated(known, said, now, decision)) is None else {"conditions": conditions}
    wanted: Object = {"podGroups": {"total": len(verdicts)}, "pods": {
        name: sum(getattr(verdict, name) for verdict in verdicts)
        for name in ("pending", "running", "succeeded", "failed")}}
    news |= {name: value for name, value in wanted.items() if there.get(name) != value}
    return _with_allocated(news, there, allocated)


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
