"""Job and CronJob: pods that are meant to end.

A job marks its pods with its own UID, so that two jobs never fight over one; the marks are made here, when the job is
created, because the template must carry them before any controller sees it.
"""

import re
import zoneinfo
from collections.abc import Iterator

from trainmaster.api.labels import holds
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    failure_policies,
    indexed_jobs,
    job_status,
    labels,
    names,
    workload_columns,
)
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row
from trainmaster.cluster.apiserver.workloads import template_defaults, template_rules

UID, NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
OLD_UID, OLD_NAME = "controller-uid", "job-name"
_UNMATCHED = "`selector` does not match template `labels`"
_NO_LIMIT = 2**31 - 1
_LONGEST_MANAGER = 63
_MODES = ("NonIndexed", "Indexed")
_RESTARTS = ("OnFailure", "Never")
# A cron job's jobs are called after it, with eleven more letters.
_LONGEST_CRON_NAME = 52
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
# What a suspended job may change in its template before it starts: where its pods go, and what they are labelled with.
_LONGEST_FIGURE = 18
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def _begin(job: Object) -> None:
    """Give the job the selector of its own pods, unless the user took that over."""
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    meta = spec.setdefault("template", {}).setdefault("metadata", {})
    uid, name = job["metadata"]["uid"], job["metadata"].get("name", "")
    meta["labels"] = {**(meta.get("labels") or {}), UID: uid, NAME: name, OLD_UID: uid, OLD_NAME: name}
    spec.setdefault("selector", {}).setdefault("matchLabels", {})[UID] = uid


def _spec_defaults(spec: Object) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if spec.get("backoffLimitPerIndex") is not None else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    judged = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if judged else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    template_defaults(spec.setdefault("template", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def _defaults(job: Object) -> None:
    spec = job.setdefault("spec", {})
    _spec_defaults(spec)
    found = (spec["template"].get("metadata") or {}).get("labels")
    if found and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(found)


def _rules(job: Object, old: Object | None) -> Iterator[Cause]:
    spec, name = job["spec"], job["metadata"].get("name", "")
    selector, template = spec.get("selector"), spec["template"]
    faults = [causes.required("spec.selector")] if selector is None else list(labels.rules(selector, "spec.selector"))
    marks = {**dict.fromkeys((UID, OLD_UID), job["metadata"]["uid"]), **dict.fromkeys((NAME, OLD_NAME), name)}
    if not faults and not spec["manualSelector"] and not holds(selector or {}, marks):
        yield causes.invalid("spec.selector", selector, "`selector` not auto-generated")
    yield from spec_rules(spec, "spec")
    yield from faults
    found = (template.get("metadata") or {}).get("labels") or {}
    if selector is None or (not faults and not holds(selector, found)):
        yield causes.invalid("spec.template.metadata.labels", found or None, _UNMATCHED)
    if old is None and spec["completionMode"] == "Indexed" and (spec.get("completions") or 0) > 0:
        host = f"{name}-{spec['completions'] - 1}"
        if names.label(host):
            yield causes.invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {host}")
    if old is not None:
        yield from _update_rules(spec, old["spec"], job)


def spec_rules(spec: Object, path: str) -> Iterator[Cause]:
    yield from checks.not_negative(spec, path, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                                   "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield causes.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from checks.domain_path(spec["managedBy"], f"{path}.managedBy")
        if len(spec["managedBy"]) > _LONGEST_MANAGER:
            yield causes.too_long(f"{path}.managedBy", _LONGEST_MANAGER)
    mode = spec.get("completionMode")
    yield from checks.choice(mode, f"{path}.completionMode", _MODES)
    if mode == "Indexed":
        yield from indexed_jobs.rules(spec, path)
    for field in ("backoffLimitPerIndex", "maxFailedIndexes") if mode in {None, "NonIndexed"} else ():
        if spec.get(field) is not None:
            yield causes.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
    yield from failure_policies.rules(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None and mode == "Indexed":
        yield from indexed_jobs.success_rules(spec, f"{path}.successPolicy")
    elif spec.get("successPolicy") is not None:
        yield causes.invalid(f"{path}.successPolicy", _go_success(spec["successPolicy"]),
                             "requires indexed completion mode")
    yield from checks.choice(spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy",
                             ("Failed",) if spec.get("podFailurePolicy") is not None
                             else ("Failed", "TerminatingOrFailed"))
    yield from template_rules(spec["template"], f"{path}.template")
    yield from _restart_rules(spec, f"{path}.template.spec.restartPolicy")


def _restart_rules(spec: Object, path: str) -> Iterator[Cause]:
    """A pod that is always started again never ends."""
    restart = (spec["template"].get("spec") or {}).get("restartPolicy")
    if restart == "Always" or not restart:
        yield causes.required(path, 'valid values: "OnFailure", "Never"')
    elif restart not in _RESTARTS:
        yield causes.unsupported(path, restart, _RESTARTS)
    elif spec.get("podFailurePolicy") is not None and restart != "Never":
        yield causes.invalid(path, restart, 'only "Never" is supported when podFailurePolicy is specified')


def _go_success(policy: Object) -> Object:
    """A success policy as Go names its fields: the one form in which Kubernetes quotes it."""
    return {"Rules": [{"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
                      for rule in policy.get("rules") or ()]}


def _update_rules(spec: Object, old: Object, job: Object) -> Iterator[Cause]:
    yield from _completion_rules(spec, old)
    yield from checks.unchanged(spec.get("selector"), old.get("selector"), "spec.selector")
    yield from _template_rules(spec, old, waits=bool(old.get("suspend")) and _rests(job.get("status") or {}))
    for field in _FIXED:
        yield from checks.unchanged(spec.get(field), old.get(field), f"spec.{field}")


def _completion_rules(spec: Object, old: Object) -> Iterator[Cause]:
    """An indexed job may grow or shrink while completions and parallelism are the same number."""
    now = spec.get("completions")
    if now == old.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        yield causes.invalid("spec.completions", now, checks.IMMUTABLE)
    elif now is not None and now != spec.get("parallelism"):
        yield causes.invalid("spec.completions", now, "can only be modified in tandem with spec.parallelism")


def _template_rules(spec: Object, old: Object, *, waits: bool) -> Iterator[Cause]:
    """The template stays; before a job starts, where its pods go and what their containers ask for may change."""
    now, was = spec["template"], old["template"]
    if not waits:
        yield from checks.unchanged(now, was, "spec.template")
        return
    fixed, before = _without_amounts(now.get("spec") or {}, was), _without_amounts(was.get("spec") or {}, now)
    if fixed != before:
        yield causes.invalid("spec.template.spec", now.get("spec"), checks.IMMUTABLE)


def _rests(status: Object) -> bool:
    """Nothing of the job runs: it has not begun, or was stopped again."""
    stopped = any(each.get("type") == "Suspended" and each.get("status") == "True"
                  for each in status.get("conditions") or ())
    return (not status.get("startTime") or stopped) and not status.get("active")


def _without_amounts(spec: Object, other: Object) -> Object:
    """What stays of a pod of a job that waits; amounts are compared with those of the same container only."""
    kept = {field: value for field, value in spec.items() if field not in _SCHEDULING}
    near = {field: value for field, value in (spec.get("affinity") or {}).items() if field != "nodeAffinity"}
    if near:
        kept["affinity"] = near
    for field in ("containers", "initContainers"):
        mine, theirs = spec.get(field) or [], (other.get("spec") or {}).get(field) or []
        if len(mine) == len(theirs):
            kept[field] = [
                {key: value for key, value in container.items() if key != "resources"}
                if container.get("name") == beside.get("name") else container
                for container, beside in zip(mine, theirs, strict=True)]
    return kept


def _cron_defaults(cron: Object) -> None:
    spec = cron.setdefault("spec", {})
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    template_defaults(job.setdefault("template", {}))


def _cron_rules(cron: Object, old: Object | None) -> Iterator[Cause]:
    spec, name = cron["spec"], cron["metadata"].get("name", "")
    was = (old or {}).get("spec") or {}
    schedule, zone = str(spec.get("schedule") or ""), spec.get("timeZone")
    yield from _schedule_rules(schedule, zone, "TZ" in str(was.get("schedule") or ""))
    yield from checks.not_negative(spec, "spec", "startingDeadlineSeconds")
    if zone is not None and (old is None or zone != was.get("timeZone")):
        yield from _zone_rules(zone)
    yield from checks.choice(spec["concurrencyPolicy"], "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    job = spec["jobTemplate"]["spec"]
    yield from spec_rules(job, "spec.jobTemplate.spec")
    if job.get("selector") is not None:
        yield causes.invalid("spec.jobTemplate.spec.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield causes.unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    yield from checks.not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if old is None and len(name) > _LONGEST_CRON_NAME:
        yield causes.invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters")


def _schedule_rules(schedule: str, zone: Json, zoned: bool) -> Iterator[Cause]:
    """`zoned`: the schedule had a zone in it before, which was allowed once."""
    if not schedule:
        yield causes.required("spec.schedule")
        return
    if said := schedule_fault(_ZONE.sub("", schedule)):
        yield causes.invalid("spec.schedule", schedule, said)
    if "TZ" in schedule and zoned and zone is not None:
        yield causes.invalid("spec.schedule", schedule,
                             "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    elif "TZ" in schedule and not zoned:
        yield causes.invalid("spec.schedule", schedule,
                             "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")


def _zone_rules(zone: str) -> Iterator[Cause]:
    if not zone:
        yield causes.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        yield causes.invalid("spec.timeZone", zone,
                             "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if zone != "Local" and zone not in _zones():
        yield causes.invalid("spec.timeZone", zone, f"unknown time zone {zone}")


def _zones() -> set[str]:
    return zoneinfo.available_timezones()


_ZONE = re.compile(r"^(TZ|CRON_TZ)=\S* +")
_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTHS = {name: str(at) for at, name in enumerate(
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1)}
_DAYS = {name: str(at) for at, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_PARTS: tuple[tuple[int, int, dict[str, str]], ...] = (
    (0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS))


def schedule_fault(schedule: str) -> str:
    """Why a schedule cannot be followed, or the empty string."""
    if schedule in _WORDS or re.fullmatch(r"@every (\d+(\.\d+)?(h|m|s|ms))+", schedule):
        return ""
    if schedule.startswith("@"):
        return f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_PARTS):
        return f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
    for part, (least, most, words) in zip(parts, _PARTS, strict=True):
        for each in part.split(","):
            if said := _range_fault(each, least, most, words):
                return said
    return ""


def _range_fault(text: str, least: int, most: int, words: dict[str, str]) -> str:
    span, slash, step = text.partition("/")
    start, dash, end = span.partition("-")
    figures = []
    for figure in (start, *((end,) if dash else ()), *((step,) if slash else ())):
        figure = words.get(figure.lower(), figure)
        if figure in {"*", "?"} and figure is not step:
            continue
        if not (figure.isascii() and figure.isdigit()):
            return f"failed to parse int from {figure}: strconv.Atoi: parsing \"{figure}\": invalid syntax"
        if len(figure) > _LONGEST_FIGURE:
            return f"failed to parse int from {figure}: strconv.Atoi: parsing \"{figure}\": value out of range"
        figures.append(int(figure))
    if slash and not figures[-1]:
        return f"step of range should be a positive number: {text}"
    bounds = figures[:-1] if slash else figures
    if not bounds:
        return ""
    if bounds[0] < least:
        return f"beginning of range ({bounds[0]}) below minimum ({least}): {text}"
    if bounds[-1] > most:
        return f"end of range ({bounds[-1]}) above maximum ({most}): {text}"
    if bounds[0] > bounds[-1]:
        return f"beginning of range ({bounds[0]}) beyond end of range ({bounds[-1]}): {text}"
    return ""


KINDS: tuple[Kind, ...] = (
    row("batch/v1", "jobs", generation=True, begin=_begin, defaults=_defaults, rules=_rules, orphans=True,
        status_rules=job_status.rules, selectable=("status.successful",), columns=workload_columns.JOB),
    row("batch/v1", "cronjobs", generation=True, naming=names.subdomain, defaults=_cron_defaults, rules=_cron_rules,
        columns=workload_columns.CRON_JOB),
)
