"""What is refused of queues before it is stored: those that contradict themselves, and the end of those that must be.

The rules and words are those of Volcano's own webhook, which stands at the door where Volcano is installed; here the
API server of the embedded cluster calls `judged` in its own process. A queue that got in another way is still read with
care. What needs a look at other queues (a parent that is not there, children of a deleted queue) is not asked here:
whoever waits in such a queue is told why.
"""

from trainmaster.api.groups import VOLCANO_QUEUES
from trainmaster.api.meta import Object, name_of
from trainmaster.cluster.scheduler.amounts import Amounts
from trainmaster.cluster.scheduler.dialects import HIERARCHY, HIERARCHY_WEIGHTS, ROOT, fields, levels, read_queue

KEPT = ("default", ROOT)
STATES = ("Open", "Closed", "Closing", "Unknown")
CONFIGURATION: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "volcano-admission-service-queues-validate"},
    "webhooks": [{
        "name": "validatequeue.volcano.sh", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"service": {"name": "", "namespace": "", "path": "/queues/validate", "port": 443}},
        "rules": [{"apiGroups": [VOLCANO_QUEUES.group], "apiVersions": [VOLCANO_QUEUES.version],
                   "operations": ["CREATE", "UPDATE", "DELETE"], "resources": [VOLCANO_QUEUES.plural]}],
    }],
}


def judged(request: Object) -> Object:
    """The `response` to the `request` of an AdmissionReview."""
    allowed: Object = {"uid": request.get("uid", ""), "allowed": True}
    name = str(request.get("name") or "")
    if request.get("operation") == "DELETE":
        said = f"`{name}` queue can not be deleted" if name in KEPT else ""
    else:
        thing, before = fields(request.get("object")), fields(request.get("oldObject"))
        changed = any(thing.get(part) != before.get(part) for part in ("spec", "status", "metadata"))
        said = problem(thing) if changed else ""
    if not said:
        return allowed
    return {**allowed, "allowed": False, "status": {"metadata": {}, "message": said, "reason": "Forbidden",
                                                    "code": 403}}


def problem(raw: Object) -> str:
    """What is wrong with a queue, or nothing."""
    queue = read_queue(raw)
    parts: dict[str, Amounts | None] = {
        "guarantee": queue.guarantee, "deserved": queue.deserved, "capability": queue.capability}
    for low, high in (("deserved", "capability"), ("guarantee", "deserved"), ("guarantee", "capability")):
        most = parts[high] or {}
        over = sorted(name for name, amount in (parts[low] or {}).items() if amount > most.get(name, amount))
        if over:
            return f"queue {name_of(raw)}: {low} should less equal than {high}, but it is more of {', '.join(over)}"
    if levels(raw) is None:
        return (f"queue {name_of(raw)}: {HIERARCHY} and {HIERARCHY_WEIGHTS} must have the same length, names between "
                "the slashes and numbers as weights, such as root/research/vision and 1/2/4")
    state = fields(raw.get("status")).get("state")
    if state and state not in STATES:
        return f"queue {name_of(raw)}: state must be one of {', '.join(STATES)}, not {state}"
    return ""
