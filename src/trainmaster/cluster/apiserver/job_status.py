"""What the status of a Job may say, and which way it may go. Pure.

Another controller than ours may have a job (`spec.managedBy`), so the server holds whoever writes a job's status to
what readers rely on: an end is announced before it comes, it does not go away again, and a job that has ended has
nothing running. Most rules look only at what the write changes. A status that broke one earlier, or does because the
specification was changed since, does not keep its controller from mending the rest.
"""

from collections.abc import Iterator
from functools import partial

from trainmaster.api.meta import Json, Object, moment
from trainmaster.cluster.apiserver import causes, checks, indexed_jobs
from trainmaster.cluster.apiserver.causes import Cause

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_ENDS = ("Failed", "Complete", "FailureTarget")      # conditions that stay, once they hold


class _State:
    """The status of a job as its rules ask for it."""

    def __init__(self, job: Object) -> None:
        self.spec: Object = job["spec"]
        self.status: Object = job.get("status") or {}
        self.holding = {each.get("type") for each in self.status.get("conditions") or ()
                        if each.get("status") == "True"}
        self.denied = {each.get("type") for each in self.status.get("conditions") or ()
                       if each.get("status") == "False"}
        self.complete, self.failed = "Complete" in self.holding, "Failed" in self.holding
        self.finished = self.complete or self.failed
        self.failing, self.met = "FailureTarget" in self.holding, "SuccessCriteriaMet" in self.holding

    def count(self, field: str) -> int:
        return int(self.status.get(field) or 0)

    def uncounted(self) -> Object:
        return self.status.get("uncountedTerminatedPods") or {}


def rules(job: Object, old: Object) -> Iterator[Cause]:
    new, was = _State(job), _State(old)
    yield from checks.not_negative(new.status, "status", *_COUNTS)
    yield from _uncounted_rules(new.uncounted())
    yield from _end_rules(new, was)
    yield from _finished_rules(new, was)
    yield from _index_rules(new, was)
    if new.finished and new.count("terminating") and _changed(new, was, "terminating", finished=True):
        yield causes.invalid("status.terminating", new.count("terminating"),
                             "terminating>0 is invalid for finished job")
    if new.status.get("ready") is not None and new.count("ready") > new.count("active") \
            and _changed(new, was, "ready", "active"):
        yield causes.invalid("status.ready", new.count("ready"), "cannot set more ready pods than active")
    if new.met and new.failed:
        yield _wrong("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if new.met and new.failing:
        yield _wrong("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if new.spec.get("successPolicy") is not None and new.complete and not new.met:
        yield _wrong("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
    yield from _change_rules(new, was)


_wrong = partial(causes.unquoted, "status.conditions")


def _changed(new: _State, was: _State, *fields: str, finished: bool = False) -> bool:
    return (finished and new.finished != was.finished) or any(
        new.status.get(field) != was.status.get(field) for field in fields)


def _uncounted_rules(found: Object) -> Iterator[Cause]:
    """Each pod that has ended is counted once."""
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(found.get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                yield causes.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield causes.duplicate(path, uid)
            seen.add(uid)


def _end_rules(new: _State, was: _State) -> Iterator[Cause]:
    """The conditions that end a job, and the moment of its end."""
    start, end = new.status.get("startTime"), new.status.get("completionTime")
    completes, fails = new.complete != was.complete, new.failed != was.failed
    if new.complete and new.failed and (completes or fails):
        yield _wrong("cannot set Complete=True and Failed=true conditions")
    if new.complete and new.failing and (completes or new.failing != was.failing):
        yield _wrong("cannot set Complete=True and FailureTarget=true conditions")
    if completes or _changed(new, was, "completionTime"):
        if end is not None and not new.complete:
            yield causes.invalid("status.completionTime", end,
                                 "cannot set completionTime when there is no Complete=True condition")
        if end is None and new.complete:
            yield causes.required("status.completionTime", "completionTime is required for Complete jobs")
    if start is not None and end is not None and _changed(new, was, "startTime", "completionTime") \
            and moment(end) < moment(start):
        yield causes.invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if new.failed and not new.failing and (fails or _changed(new, was, "failedIndexes")):
        yield _wrong("cannot set Failed=True condition without the FailureTarget=true condition")
    if new.complete and not new.met and (completes or new.met != was.met):
        yield _wrong("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _finished_rules(new: _State, was: _State) -> Iterator[Cause]:
    """What a job that has ended cannot have."""
    if not new.finished:
        return
    if new.count("active") > 0 and _changed(new, was, "active", finished=True):
        yield causes.invalid("status.active", new.count("active"), "active>0 is invalid for finished job")
    of_nothing = new.spec.get("suspend") and new.spec.get("completions") == 0
    if new.status.get("startTime") is None and not of_nothing and _changed(new, was, "startTime", finished=True):
        yield causes.required("status.startTime", "startTime is required for finished job")
    left = new.uncounted()
    if (left.get("succeeded") or left.get("failed")) and _changed(new, was, "uncountedTerminatedPods", finished=True):
        quoted = {"Succeeded": left.get("succeeded"), "Failed": left.get("failed")}
        yield causes.invalid("status.uncountedTerminatedPods", quoted, "must be empty for finished job")


def _index_rules(new: _State, was: _State) -> Iterator[Cause]:
    spec, done, failed = new.spec, new.status.get("completedIndexes") or "", new.status.get("failedIndexes")
    did, fails = _changed(new, was, "completedIndexes"), _changed(new, was, "failedIndexes")
    completions, limit = spec.get("completions"), spec.get("backoffLimitPerIndex")
    if did and completions is not None:
        yield from _readable("completedIndexes", done, completions)
    if fails and completions is not None and limit is not None and failed is not None:
        yield from _readable("failedIndexes", failed, completions)
    if did and done and spec.get("completionMode") != "Indexed":
        yield causes.invalid("status.completedIndexes", done,
                             "cannot set non-empty completedIndexes when non-indexed completion mode")
    if fails and limit is None and failed is not None:
        yield causes.invalid("status.failedIndexes", failed,
                             "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
    if (did or fails) and completions is not None and failed:
        shared = indexed_jobs.shared(done, failed, completions)
        if shared is not None:
            yield causes.invalid("status.failedIndexes", failed,
                                 f"failedIndexes and completedIndexes overlap at index: {shared}")


def _readable(field: str, text: str, completions: int) -> Iterator[Cause]:
    try:
        indexed_jobs.counted(text, completions)
    except ValueError as error:
        yield causes.invalid(f"status.{field}", text, f"error parsing {field}: {error}")


def _change_rules(new: _State, was: _State) -> Iterator[Cause]:
    """What no later status takes back."""
    for condition in _ENDS:
        if condition in was.holding and condition not in new.holding:
            yield _wrong(f"cannot disable the terminal {condition}=True condition")
    spec = new.spec
    # An indexed job that may grow and shrink counts the indexes that it still has.
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed",) if elastic else ("failed", "succeeded"):
        if new.count(field) < was.count(field):
            yield causes.invalid(f"status.{field}", new.count(field), f"cannot decrease the {field} counter")
    ends: list[Json] = [each.status.get("completionTime") for each in (was, new)]
    if None not in ends and ends[0] != ends[1]:
        yield causes.invalid("status.completionTime", ends[1], checks.IMMUTABLE)
    resumed = "Suspended" in was.holding and "Suspended" in new.denied
    if was.status.get("startTime") is not None and _changed(new, was, "startTime") \
            and not resumed and not spec.get("suspend"):
        yield causes.invalid("status.startTime", new.status.get("startTime"),
                             "field is immutable for unsuspended job once set")
    if was.met and not new.met:
        yield _wrong("cannot disable the SuccessCriteriaMet=True condition")
    if was.complete and not was.met and new.met:
        yield _wrong("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
