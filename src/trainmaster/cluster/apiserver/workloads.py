"""Kinds that keep pods running: Deployment, ReplicaSet, StatefulSet, DaemonSet, and the older and smaller ones.

What they share is a template and a selector that must select what the template makes. The controllers that act on them
are elsewhere; here is what a server says to whoever writes one.
"""

import re
from collections.abc import Iterator

from trainmaster.api.labels import holds
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    labels,
    names,
    pod_rules,
    pods,
    storage,
    workload_columns,
    workload_status,
)
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

_UNMATCHED = "`selector` does not match template `labels`"
_STATEFUL = ("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
             "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
_STATEFUL_LOOSE = frozenset({"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                             "persistentVolumeClaimRetentionPolicy", "minReadySeconds"})
_NAMED_LATER = frozenset({"hostname", "subdomain"})
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def template_defaults(template: Object) -> None:
    template.setdefault("metadata", {})
    pods.spec_defaults(template.setdefault("spec", {}))


def template_rules(template: Object, path: str) -> Iterator[Cause]:
    meta = template.get("metadata") or {}
    yield from names.labels(meta.get("labels") or {}, f"{path}.labels")
    yield from names.annotations(meta.get("annotations") or {}, f"{path}.annotations")
    yield from pod_rules.spec_rules(template.get("spec") or {}, f"{path}.spec")
    yield from pod_rules.host_network_rules(template.get("spec") or {}, f"{path}.spec", in_pod=False)


def _kept_running(template: Object, path: str, owner: str) -> Iterator[Cause]:
    """Pods that a controller replaces must not end by themselves."""
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") in {"OnFailure", "Never"}:
        yield causes.unsupported(f"{path}.spec.restartPolicy", spec["restartPolicy"], ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        yield causes.forbidden(f"{path}.spec.activeDeadlineSeconds",
                               f"activeDeadlineSeconds in {owner} is not Supported")


def _labels_of(template: Object) -> dict[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _selector_rules(spec: Object, name: str) -> Iterator[Cause]:
    """The selector is there, can be read, selects not everything, and selects the pods of the template."""
    selector, path = spec.get("selector"), "spec.selector"
    template = spec.get("template") or {}
    if selector is None:
        if name != "daemonset":         # a daemon set says no more than that its pods are not selected
            yield causes.required(path)
        yield _unmatched(template)
        return
    faults = list(labels.rules(selector, path))
    yield from faults
    if faults and name != "daemonset":
        yield causes.invalid(path, selector, "" if name == "statefulset" else "invalid label selector")
    elif labels.is_empty(selector):
        yield causes.invalid(path, selector, f"empty selector is invalid for {name}")
    elif not faults and not holds(selector, _labels_of(template)):
        yield _unmatched(template)


def _is_readable(spec: Object) -> bool:
    """Whether one can say which pods are selected. If not, their template is not looked at."""
    return spec.get("selector") is None or not any(labels.rules(spec["selector"], "spec.selector"))


def _unmatched(template: Object) -> Cause:
    return causes.invalid("spec.template.metadata.labels", _labels_of(template) or None, _UNMATCHED)


def _replicated_rules(spec: Object) -> Iterator[Cause]:
    """Of a deployment or a replica set; a real server calls both by the name of the first."""
    yield from _selector_rules(spec, "deployment")
    if _is_readable(spec):
        yield from template_rules(spec["template"], "spec.template")
        yield from _kept_running(spec["template"], "spec.template", "ReplicaSet")


def _fixed_selector(spec: Object, old: Object | None) -> Iterator[Cause]:
    if old is not None:
        yield from checks.unchanged(spec.get("selector"), (old.get("spec") or {}).get("selector"), "spec.selector")


def _deployment_defaults(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template_defaults(spec.setdefault("template", {}))
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _deployment_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec = thing["spec"]
    yield from checks.not_negative(spec, "spec", "replicas")
    yield from _replicated_rules(spec)
    yield from _strategy_rules(spec["strategy"])
    yield from checks.not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    if (spec.get("minReadySeconds") or 0) >= spec["progressDeadlineSeconds"]:
        yield causes.invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"],
                             "must be greater than minReadySeconds")
    yield from _fixed_selector(spec, old)


def _strategy_rules(strategy: Object) -> Iterator[Cause]:
    path: str = "spec.strategy.rollingUpdate"
    rolling: Json = strategy.get("rollingUpdate")
    if strategy["type"] == "Recreate":
        if rolling is not None:
            yield causes.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif strategy["type"] == "RollingUpdate":
        for field in ("maxUnavailable", "maxSurge"):
            yield from checks.share(rolling[field], f"{path}.{field}", most=field == "maxUnavailable")
        if checks.is_none(rolling["maxUnavailable"]) and checks.is_none(rolling["maxSurge"]):
            yield causes.invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"],
                                 "may not be 0 when `maxSurge` is 0")
    else:
        yield causes.unsupported("spec.strategy", _go_strategy(strategy, maxUnavailable=0, maxSurge=0),
                                 ("Recreate", "RollingUpdate"))


def _go_strategy(strategy: Object, **zeros: Json) -> Object:
    """A strategy as Go names and fills its fields: the one form in which Kubernetes quotes it."""
    rolling = strategy.get("rollingUpdate")
    told = None if rolling is None else {
        field[:1].upper() + field[1:]: rolling.get(field, zero) for field, zero in zeros.items()}
    return {"Type": strategy.get("type"), "RollingUpdate": told}


def _replica_set_defaults(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template_defaults(spec.setdefault("template", {}))
    found = _labels_of(spec["template"])
    if found and not thing["metadata"].get("labels"):
        thing["metadata"]["labels"] = dict(found)


def _plain_replica_set_defaults(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template_defaults(spec.setdefault("template", {}))


def _replica_set_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec = thing["spec"]
    yield from checks.not_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from _replicated_rules(spec)
    yield from _fixed_selector(spec, old)


def _controller_defaults(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    if spec.get("template") is not None:
        _replica_set_defaults(thing)
        if not spec.get("selector"):
            spec["selector"] = dict(_labels_of(spec["template"]))
    spec.setdefault("replicas", 1)


def _controller_rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    spec = thing["spec"]
    yield from checks.not_negative(spec, "spec", "minReadySeconds", "replicas")
    selector = spec.get("selector") or {}
    if not selector:
        yield causes.required("spec.selector")
    template = spec.get("template")
    if template is None:
        yield causes.required("spec.template")
        return
    if selector and not holds({"matchLabels": selector}, _labels_of(template)):
        yield _unmatched(template)
    yield from template_rules(template, "spec.template")
    yield from _kept_running(template, "spec.template", "ReplicationController")


def _stateful_defaults(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template_defaults(spec.setdefault("template", {}))
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    elif strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    kept = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for field in ("whenDeleted", "whenScaled"):
        kept[field] = kept.get(field) or "Retain"
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim["status"] = {"phase": "Pending", **(claim.get("status") or {})}


def _stateful_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec = thing["spec"]
    if spec["podManagementPolicy"] not in {"OrderedReady", "Parallel"}:
        yield causes.invalid("spec.podManagementPolicy", spec["podManagementPolicy"],
                             "must be 'OrderedReady' or 'Parallel'")
    strategy = spec["updateStrategy"]
    rolling, path = strategy.get("rollingUpdate"), "spec.updateStrategy.rollingUpdate"
    if strategy["type"] == "OnDelete" and rolling is not None:
        told = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
        yield causes.invalid(path, told, "only allowed for updateStrategy 'RollingUpdate'")
    elif strategy["type"] == "RollingUpdate":
        yield from checks.not_negative(rolling or {}, path, "partition")
        # Kubernetes has this field behind a switch that is off, and drops it unseen; here it is honoured.
        yield from checks.share((rolling or {}).get("maxUnavailable"), f"{path}.maxUnavailable")
    elif strategy["type"] != "OnDelete":
        yield causes.invalid("spec.updateStrategy", _go_strategy(strategy, partition=0, maxUnavailable=None),
                             "must be 'RollingUpdate' or 'OnDelete'")
    for field in ("whenDeleted", "whenScaled"):
        yield from checks.choice(spec["persistentVolumeClaimRetentionPolicy"][field],
                                 f"spec.persistentVolumeClaimRetentionPolicy.{field}", ("Retain", "Delete"))
    claims = spec.get("volumeClaimTemplates") or []
    for index, claim in enumerate(claims if old is None else ()):
        yield from storage.claim_rules(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from checks.not_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from checks.not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
    if spec.get("serviceName") and old is None:
        yield from names.refused("spec.serviceName", spec["serviceName"], names.label(spec["serviceName"]))
    yield from _selector_rules(spec, "statefulset")
    if _is_readable(spec):
        yield from template_rules(_with_claims(spec["template"], claims), "spec.template")
    yield from _kept_running(spec["template"], "spec.template", "StatefulSet")
    if old is not None and _fixed_part(spec) != _fixed_part(old.get("spec") or {}):
        yield causes.forbidden("spec", _STATEFUL)


def _with_claims(template: Object, claims: list[Object]) -> Object:
    """The template as the pods will have it: each claim is a volume, and each pod has a name of its own."""
    pod = {field: value for field, value in (template.get("spec") or {}).items() if field not in _NAMED_LATER}
    made = {str((claim.get("metadata") or {}).get("name") or ""): None for claim in claims}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in made]
    pod["volumes"] = volumes + [each for each in pod.get("volumes") or () if (each.get("name") or "") not in made]
    return {**template, "spec": pod}


def _fixed_part(spec: Object) -> Object:
    return {field: value for field, value in spec.items() if field not in _STATEFUL_LOOSE}


def _daemon_defaults(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    template_defaults(spec.setdefault("template", {}))
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    thing["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "1")


def _daemon_carry(thing: Object, old: Object) -> None:
    """A number that goes up with each change of the template, for controllers older than `generation`."""
    count = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
    _daemon_defaults(thing)
    if thing["spec"]["template"] != (old.get("spec") or {}).get("template") and _COUNT.fullmatch(count):
        count = str(int(count) + 1)
    thing["metadata"]["annotations"][_TEMPLATE_GENERATION] = count


def _daemon_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec = thing["spec"]
    yield from _selector_rules(spec, "daemonset")
    yield from template_rules(spec["template"], "spec.template")
    yield from _kept_running(spec["template"], "spec.template", "DaemonSet")
    yield from checks.not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy, path = spec["updateStrategy"], "spec.updateStrategy.rollingUpdate"
    if strategy["type"] == "RollingUpdate":
        gone, more = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
        for field in ("maxUnavailable", "maxSurge"):
            yield from checks.share(strategy["rollingUpdate"][field], f"{path}.{field}")
        if not checks.is_none(gone) and not checks.is_none(more):
            yield causes.invalid(f"{path}.maxSurge", more, "may not be set when maxUnavailable is non-zero")
        if checks.is_none(gone) and checks.is_none(more):
            yield causes.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif strategy["type"] != "OnDelete":
        yield causes.unsupported("spec.updateStrategy", _go_strategy(strategy, maxUnavailable=0, maxSurge=0),
                                 ("RollingUpdate", "OnDelete"))
    yield from _fixed_selector(spec, old)


def _revision_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    yield from checks.not_negative(thing, "", "revision")
    data: Json = thing.get("data")
    if data is None:
        yield causes.required("data", "data is mandatory")
    if old is not None:
        yield from checks.unchanged(data, old.get("data"), "data")


def _pod_template_defaults(thing: Object) -> None:
    template_defaults(thing.setdefault("template", {}))


def _pod_template_rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    yield from template_rules(thing["template"], "template")


KINDS: tuple[Kind, ...] = (
    row("apps/v1", "deployments", generation=True, defaults=_deployment_defaults, rules=_deployment_rules,
        status_carry=workload_status.keep_labels, status_rules=workload_status.DEPLOYMENT,
        columns=workload_columns.DEPLOYMENT),
    row("apps/v1", "replicasets", generation=True, defaults=_plain_replica_set_defaults, rules=_replica_set_rules,
        status_rules=workload_status.REPLICA_SET, columns=workload_columns.REPLICA_SET),
    row("apps/v1", "statefulsets", generation=True, defaults=_stateful_defaults, rules=_stateful_rules,
        status_rules=workload_status.STATEFUL_SET, columns=workload_columns.STATEFUL_SET),
    row("apps/v1", "daemonsets", generation=True, defaults=_daemon_defaults, rules=_daemon_rules, carry=_daemon_carry,
        status_rules=workload_status.DAEMON_SET, columns=workload_columns.DAEMON_SET),
    row("apps/v1", "controllerrevisions", rules=_revision_rules, columns=workload_columns.CONTROLLER_REVISION),
    row("v1", "replicationcontrollers", generation=True, defaults=_controller_defaults, rules=_controller_rules,
        orphans=True, status_rules=workload_status.REPLICATION_CONTROLLER, selectable=("status.replicas",),
        columns=workload_columns.REPLICATION_CONTROLLER),
    row("v1", "podtemplates", generation=True, defaults=_pod_template_defaults, rules=_pod_template_rules,
        columns=workload_columns.POD_TEMPLATE),
)
