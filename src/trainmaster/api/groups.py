"""The kinds in which people write gangs: PodGroup and Queue of Volcano, kube-batch, scheduler-plugins and T9k, and the
Command by which Volcano's queues are opened and closed.

Where one of these systems runs, its own definitions are there and ours are not installed; the embedded cluster has all
of them, so that a manifest written for any runs as it is. Slim: fields that nobody here reads are kept, not described.
"""

import json

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Object, Resource, metadata

VOLCANO_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
VOLCANO_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
VOLCANO_COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")
KUBE_BATCH_GROUPS = Resource("scheduling.incubator.k8s.io", "v1alpha1", "podgroups", "PodGroup")
KUBE_BATCH_QUEUES = Resource("scheduling.incubator.k8s.io", "v1alpha1", "queues", "Queue", namespaced=False)
KUBE_BATCH_LATER_GROUPS = Resource("scheduling.sigs.dev", "v1alpha2", "podgroups", "PodGroup")
KUBE_BATCH_LATER_QUEUES = Resource("scheduling.sigs.dev", "v1alpha2", "queues", "Queue", namespaced=False)
COSCHEDULING_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
T9K_GROUPS = Resource("scheduler.tensorstack.dev", "v1beta1", "podgroups", "PodGroup")
T9K_QUEUES = Resource("scheduler.tensorstack.dev", "v1beta1", "queues", "Queue")

# How a pod names its group, its part in it and its queue: an annotation for Volcano and kube-batch, else labels.
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
T9K_GROUP, T9K_ROLE, T9K_QUEUE = (f"scheduler.tensorstack.dev/{word}" for word in ("group-name", "role", "queue"))

GROUPS = (VOLCANO_GROUPS, KUBE_BATCH_GROUPS, COSCHEDULING_GROUPS, T9K_GROUPS)
WHY = "trainmaster.dev/why-waiting"      # annotation of a group: why it waits, as JSON; `why` is a sentence

_KEEP = {"x-kubernetes-preserve-unknown-fields": True}
_TEXT: Object = {"type": "string"}
_COUNT: Object = {"type": "integer", "format": "int32", "minimum": 0}
_FLAG: Object = {"type": "boolean"}
_AMOUNTS: Object = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
}
_SELECTOR: Object = {"type": "object", **_KEEP}
# How long something may last: 1w2d, 36h, or 0.
_LONG = "^(0|" + "".join(f"(([0-9]+){unit})?" for unit in ("y", "w", "d", "h", "m", "s", "ms")) + ")$"
_AGE: Object = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def why_waiting(group: Object) -> str:
    """The sentence in which the scheduler says why a group waits; nothing if it does not, or said it in another way."""
    try:
        return str(json.loads((metadata(group).get("annotations") or {})[WHY])["why"])
    except (KeyError, TypeError, ValueError):
        return ""


def definitions() -> list[Object]:
    """The CustomResourceDefinition of each."""
    return [
        _definition(VOLCANO_GROUPS, ["pg", "podgroup-v1beta1"], {
            "minMember": _COUNT, "minTaskMember": {"type": "object", "additionalProperties": _COUNT},
            "queue": {**_TEXT, "default": "default"}, "priorityClassName": _TEXT, "minResources": _AMOUNTS,
        }, [_column("STATUS", "string", ".status.phase"), _column("minMember", "integer", ".spec.minMember"),
            _column("RUNNINGS", "integer", ".status.running"), _AGE,
            {**_column("QUEUE", "string", ".spec.queue"), "priority": 1}], status_part=False),
        _definition(VOLCANO_QUEUES, ["q", "queue-v1beta1"], {
            "weight": {**_COUNT, "default": 1, "minimum": 1, "maximum": 65535}, "capability": _AMOUNTS,
            "deserved": _AMOUNTS, "guarantee": {"type": "object", "properties": {"resource": _AMOUNTS}},
            "reclaimable": _FLAG, "priority": _COUNT, "parent": _TEXT,
        }, [_column("PARENT", "string", ".spec.parent")]),
        _definition(VOLCANO_COMMANDS, [], None, [], whole={      # an order is no state: neither spec nor status
            "action": _TEXT, "target": {"type": "object", **_KEEP}, "reason": _TEXT, "message": _TEXT,
        }, status_part=False),
        *(_definition(kind, [], {"minMember": _COUNT, "queue": _TEXT, "priorityClassName": _TEXT}, [_AGE],
                      status_part=False) for kind in (KUBE_BATCH_GROUPS, KUBE_BATCH_LATER_GROUPS)),
        *(_definition(kind, [], {"weight": _COUNT, "capability": _AMOUNTS}, [_AGE], status_part=False)
          for kind in (KUBE_BATCH_QUEUES, KUBE_BATCH_LATER_QUEUES)),
        _definition(COSCHEDULING_GROUPS, ["pgs"], {      # its other short name, pg, is Volcano's here
            "minMember": {**_COUNT, "minimum": 1}, "minResources": _AMOUNTS, "scheduleTimeoutSeconds": _COUNT,
        }, [_column("Phase", "string", ".status.phase"), _column("MinMember", "integer", ".spec.minMember"),
            _column("Running", "integer", ".status.running"), _column("Succeeded", "integer", ".status.succeeded"),
            _column("Failed", "integer", ".status.failed"), _AGE]),
        _definition(T9K_GROUPS, [], {
            "minMember": _COUNT, "queue": {**_TEXT, "default": "default"}, "priority": {**_COUNT, "maximum": 100},
            "roles": {"type": "array", "items": {"type": "object", "properties": {"name": _TEXT,
                                                                                  "minMember": _COUNT}}},
        }, [_AGE]),
        _definition(T9K_QUEUES, [], {
            "quota": {"type": "object", "properties": {"requests": _AMOUNTS}}, "requests": _AMOUNTS,
            "priority": {**_COUNT, "maximum": 100}, "preemptible": _FLAG, "closed": _FLAG,
            "maxDuration": {**_TEXT, "pattern": _LONG}, "nodeSelector": _SELECTOR, "namespaceSelector": _SELECTOR,
        }, [_AGE]),
    ]


def _definition(resource: Resource, short: list[str], spec: Object | None, columns: list[Object], *,
                whole: Object | None = None, status_part: bool = True) -> Object:
    """`whole` are the fields of a kind that has no spec."""
    fields: Object = whole or {"spec": {"type": "object", "properties": spec, **_KEEP},
                               "status": {"type": "object", **_KEEP}}
    schema = {"type": "object", "properties": {
        "apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}, **fields}}
    version: Object = {"name": resource.version, "served": True, "storage": True,
                       "schema": {"openAPIV3Schema": schema},
                       **({"additionalPrinterColumns": columns} if columns else {})}
    if status_part:
        version["subresources"] = {"status": {}}
    annotations = {}
    if resource.group.endswith(".k8s.io"):      # groups of Kubernetes' own must say who approved them
        annotations = {"api-approved.kubernetes.io": "unapproved, kept as its first users know it"}
    return {
        "apiVersion": DEFINITIONS.api_version, "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}",
                     **({"annotations": annotations} if annotations else {})},
        "spec": {
            "group": resource.group, "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural,
                      "singular": resource.kind.lower(), **({"shortNames": short} if short else {})},
            "versions": [version],
        },
    }


def _column(name: str, type_: str, path: str) -> Object:
    return {"name": name, "type": type_, "jsonPath": path}
