"""What `kubectl get` prints for kinds that run pods: replicas wanted and there, containers, images, selectors."""

from collections.abc import Callable

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import labels
from trainmaster.cluster.apiserver.columns import AGE, NAME, NONE, Since, at
from trainmaster.cluster.apiserver.kind import Column

Cell = Callable[[Object], Json]


def _figure(*path: str) -> Cell:
    return at(*path, other=0)


def _template(thing: Object) -> Object:
    found: Object = (thing.get("spec") or thing).get("template") or thing.get("template") or {}
    return found


def _listed(field: str, template: Callable[[Object], Object] = _template) -> Cell:
    def cell(thing: Object) -> Json:
        containers = (template(thing).get("spec") or {}).get("containers") or ()
        return ",".join(str(each.get(field, "")) for each in containers)

    return cell


def _selector(thing: Object) -> Json:
    return labels.text((thing.get("spec") or {}).get("selector")) or NONE


def _share(ready: Cell, wanted: Cell) -> Cell:
    return lambda thing: f"{ready(thing)}/{wanted(thing)}"


_CONTAINERS = (Column("Containers", _listed("name"), priority=1), Column("Images", _listed("image"), priority=1))
_SELECTOR = Column("Selector", _selector, priority=1)
_READY = Column("Ready", _share(_figure("status", "readyReplicas"), _figure("spec", "replicas")))

DEPLOYMENT = (
    NAME, _READY, Column("Up-to-date", _figure("status", "updatedReplicas")),
    Column("Available", _figure("status", "availableReplicas")), AGE, *_CONTAINERS, _SELECTOR,
)
REPLICA_SET = REPLICATION_CONTROLLER = (
    NAME, Column("Desired", _figure("spec", "replicas"), type="integer"),
    Column("Current", _figure("status", "replicas"), type="integer"),
    Column("Ready", _figure("status", "readyReplicas"), type="integer"), AGE, *_CONTAINERS, _SELECTOR,
)
STATEFUL_SET = (NAME, _READY, AGE, *_CONTAINERS)


def _node_selector(thing: Object) -> Json:
    return labels.text((_template(thing).get("spec") or {}).get("nodeSelector")) or NONE


DAEMON_SET = (
    NAME,
    *(Column(name, _figure("status", field), type="integer") for name, field in (
        ("Desired", "desiredNumberScheduled"), ("Current", "currentNumberScheduled"), ("Ready", "numberReady"),
        ("Up-to-date", "updatedNumberScheduled"), ("Available", "numberAvailable"))),
    Column("Node Selector", _node_selector), AGE, *_CONTAINERS, _SELECTOR,
)


def _controller(thing: Object) -> Json:
    for owner in thing["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group, _, _ = str(owner.get("apiVersion", "")).rpartition("/")
            return f"{str(owner.get('kind', '')).lower()}{'.' if group else ''}{group}/{owner.get('name')}"
    return NONE


CONTROLLER_REVISION = (NAME, Column("Controller", _controller), Column("Revision", at("revision", other=0)), AGE)


def _pod_labels(thing: Object) -> Json:
    return labels.text((_template(thing).get("metadata") or {}).get("labels")) or NONE


POD_TEMPLATE = (
    NAME, Column("Containers", _listed("name")), Column("Images", _listed("image")), Column("Pod Labels", _pod_labels),
)


def _job_status(job: Object) -> Json:
    status = job.get("status") or {}
    true = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for type_ in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if type_ in true:
            return type_
    return "Running"


def _completions(job: Object) -> Json:
    spec, done = job.get("spec") or {}, (job.get("status") or {}).get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Object) -> Json:
    status = job.get("status") or {}
    return Since(str(status.get("startTime") or ""), until=str(status.get("completionTime") or ""), other="")


JOB = (
    NAME, Column("Status", _job_status), Column("Completions", _completions), Column("Duration", _duration), AGE,
    *_CONTAINERS, _SELECTOR,
)


def _job_template(cron: Object) -> Object:
    found: Object = (((cron.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {})
    return found


def _cron_template(cron: Object) -> Object:
    found: Object = _job_template(cron).get("template") or {}
    return found


def _last_schedule(cron: Object) -> Json:
    return Since(str((cron.get("status") or {}).get("lastScheduleTime") or ""), other=NONE)


def _suspended(cron: Object) -> Json:
    return str(bool((cron.get("spec") or {}).get("suspend")))


def _active(cron: Object) -> Json:
    return len((cron.get("status") or {}).get("active") or ())


CRON_JOB = (
    NAME, Column("Schedule", at("spec", "schedule", other="")), Column("Timezone", at("spec", "timeZone")),
    Column("Suspend", _suspended, type="boolean"), Column("Active", _active, type="integer"),
    Column("Last Schedule", _last_schedule), AGE,
    Column("Containers", _listed("name", _cron_template), priority=1),
    Column("Images", _listed("image", _cron_template), priority=1),
    Column("Selector", lambda cron: labels.text(_job_template(cron).get("selector")) or NONE, priority=1),
)


def _reference(scaler: Object) -> Json:
    about = (scaler.get("spec") or {}).get("scaleTargetRef") or {}
    return f"{about.get('kind', '')}/{about.get('name', '')}"


def _metrics(scaler: Object) -> Json:
    wanted, found = (scaler.get("spec") or {}).get("metrics") or [], (scaler.get("status") or {}).get("currentMetrics")
    if not wanted:
        return NONE
    told = [_metric(metric, (found or [])[at:at + 1]) for at, metric in enumerate(wanted)]
    return ", ".join(told[:2]) + (f" + {len(told) - 2} more..." if len(told) > 2 else "")


def _metric(metric: Object, current: list[Object]) -> str:
    type_ = str(metric.get("type", ""))
    field = type_[:1].lower() + type_[1:]
    part = metric.get(field) or {}
    target = part.get("target") or {}
    now = ((current[0].get(field) or {}).get("current") or {}) if current else {}
    percent = target.get("averageUtilization")
    prefix = f"{part.get('name', '')}: " if field in {"resource", "containerResource"} else ""
    if percent is not None:
        seen = now.get("averageUtilization")
        return f"{prefix}{'<unknown>' if seen is None else f'{seen}%'}/{percent}%"
    name = "averageValue" if target.get("averageValue") is not None else "value"
    return (f"{prefix}{now.get(name) or '<unknown>'}/{target.get(name) or '<auto>'}"
            f"{' (avg)' if name == 'averageValue' and field in {'external', 'object'} else ''}")


def _least(scaler: Object) -> Json:
    found = (scaler.get("spec") or {}).get("minReplicas")
    return "<unset>" if found is None else str(found)


SCALER = (
    NAME, Column("Reference", _reference), Column("Targets", _metrics), Column("MinPods", _least),
    Column("MaxPods", _figure("spec", "maxReplicas")), Column("Replicas", _figure("status", "currentReplicas")), AGE,
)


def _budget(field: str) -> Cell:
    def cell(thing: Object) -> Json:
        found = (thing.get("spec") or {}).get(field)
        return "N/A" if found is None else str(found)

    return cell


BUDGET = (
    NAME, Column("Min Available", _budget("minAvailable")), Column("Max Unavailable", _budget("maxUnavailable")),
    Column("Allowed Disruptions", _figure("status", "disruptionsAllowed"), type="integer"), AGE,
)
