"""What is refused or filled in of Volcano's queues and groups before it is stored.

The rules and words are those of Volcano's own webhooks, which stand at the door where Volcano is installed; here the
API server of the embedded cluster calls these functions in its own process, and they may look at what is stored. What
of it needs no look at other objects is also written as policies that any API server judges by (`policies`). A queue or
a group that got in another way is still read with care.

A group for a queue that is not there is let in: it waits and says why, and starts when somebody makes the queue. So is
one that belongs to a job: refusing it would hide from the job's owner what the group can tell, that its queue is
closed.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Protocol

import orjson

from trainmaster.api.core import NAMESPACES
from trainmaster.api.groups import VOLCANO_GROUPS, VOLCANO_QUEUES
from trainmaster.api.meta import Object, Resource, controller_of, metadata, name_of
from trainmaster.cluster.scheduler.amounts import Amounts
from trainmaster.cluster.scheduler.dialects import (
    DEFAULT_QUEUE,
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    QUEUE_NAME,
    ROOT,
    fields,
    levels,
    read_queue,
)

KEPT = (DEFAULT_QUEUE, ROOT)
STATES = ("Open", "Closed", "Closing", "Unknown")
DEEPEST = 5      # queues below each other, the root included


class Look(Protocol):
    """What is stored."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...

    def all(self, resource: Resource) -> list[Object]: ...


def judge_queue(request: Object, look: Look) -> Object:
    """The `response` to the `request` of an AdmissionReview."""
    name = str(request.get("name") or "")
    if request.get("operation") == "DELETE":
        return _answer(request, _kept(name, look))
    thing, before = fields(request.get("object")), fields(request.get("oldObject"))
    changed = any(thing.get(part) != before.get(part) for part in ("spec", "status", "metadata"))
    return _answer(request, (problem(thing) or _misplaced(thing, look)) if changed else "")


def complete_queue(request: Object, _look: Look) -> Object:
    """Fill in what a queue leaves out: the root above it, in both ways of drawing a tree."""
    queue = fields(request.get("object"))
    patch: list[Object] = []
    if name_of(queue) != ROOT and not fields(queue.get("spec")).get("parent"):
        patch += _put(queue, "spec", "parent", ROOT)
    said = fields(metadata(queue).get("annotations"))
    names, weights = said.get(HIERARCHY), said.get(HIERARCHY_WEIGHTS)
    if isinstance(names, str) and isinstance(weights, str) and names and names.split("/")[0] != ROOT:
        for key, value in ((HIERARCHY, f"{ROOT}/{names}"), (HIERARCHY_WEIGHTS, f"1/{weights}")):
            patch.append({"op": "replace", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": value})
    return _answer(request, "", patch)


def judge_group(request: Object, look: Look) -> Object:
    group = fields(request.get("object"))
    name = str(fields(group.get("spec")).get("queue") or DEFAULT_QUEUE)
    queue = look.get(VOLCANO_QUEUES, name)
    state = fields((queue or {}).get("status")).get("state") or "Open"
    closed = queue is not None and state != "Open" and controller_of(group) is None
    return _answer(request, f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`"
                   if closed else "")


def place_group(request: Object, look: Look) -> Object:
    """Into the queue of its namespace, if it names none of its own."""
    group = fields(request.get("object"))
    space = look.get(NAMESPACES, str(request.get("namespace") or "")) or {}
    queue = fields(metadata(space).get("annotations") if space else None).get(QUEUE_NAME)
    if not queue or fields(group.get("spec")).get("queue") not in {None, "", DEFAULT_QUEUE}:
        return _answer(request, "")
    return _answer(request, "", _put(group, "spec", "queue", str(queue)))


def _answer(request: Object, said: str, patch: list[Object] | None = None) -> Object:
    answer: Object = {"uid": request.get("uid", ""), "allowed": not said}
    if said:
        answer["status"] = {"metadata": {}, "message": said, "reason": "Forbidden", "code": 403}
    elif patch:
        answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(patch)).decode()}
    return answer


def _put(thing: Object, part: str, name: str, value: str) -> list[Object]:
    if not isinstance(thing.get(part), dict):
        return [{"op": "add", "path": f"/{part}", "value": {name: value}}]
    return [{"op": "add", "path": f"/{part}/{name}", "value": value}]


def problem(raw: Object) -> str:
    """What is wrong with a queue by itself, or nothing."""
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


def _misplaced(raw: Object, look: Look) -> str:
    """What is wrong with its place among the others, or nothing."""
    name = name_of(raw)
    above = list(_above(raw, look))
    if name in above:
        return f"queue {name} cannot be below itself: {' is below '.join([name, *above])}"
    if above and look.get(VOLCANO_QUEUES, above[-1]) is None and above[-1] != ROOT:
        return f"queue {name}: there is no queue {above[-1]} to be its parent; create that one first"
    if len(above) >= DEEPEST:
        return f"queue {name} would be on level {len(above) + 1}; there may be {DEEPEST}"
    own = tuple(place for place, _ in levels(raw) or ())
    for other in look.all(VOLCANO_QUEUES) if own else ():
        there = tuple(place for place, _ in levels(other) or ())
        if name_of(other) != name and there and there != own and (there[:len(own)] == own or own[:len(there)] == there):
            return (f"{'/'.join((ROOT, *own))} is not allowed to be in the sub path of {'/'.join((ROOT, *there))} of "
                    f"queue {name_of(other)}")
    return ""


def _above(raw: Object, look: Look) -> Iterator[str]:
    """The names of the queues above it, from below; the last may be none that is there."""
    seen, queue = {name_of(raw)}, raw
    while parent := str(fields(queue.get("spec")).get("parent") or ""):
        yield parent
        if parent in seen:
            return
        seen.add(parent)
        queue = look.get(VOLCANO_QUEUES, parent) or {}


def _kept(name: str, look: Look) -> str:
    """Why a queue cannot be deleted, or nothing."""
    if name in KEPT:
        return f"`{name}` queue can not be deleted"
    below = sorted(name_of(queue) for queue in look.all(VOLCANO_QUEUES)
                   if fields(queue.get("spec")).get("parent") == name)
    return (f"queue {name} can not be deleted because it has {len(below)} child queues: {', '.join(below)}"
            if below else "")


def _configuration(kind: str, what: str, resource: Resource, operations: list[str]) -> Object:
    """As Volcano's own are called, so that whoever knows those finds these."""
    verb = "mutate" if kind == "Mutating" else "validate"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": f"volcano-admission-service-{resource.plural}-{verb}"},
        "webhooks": [{
            "name": f"{verb}{what}.volcano.sh", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"service": {"name": "", "namespace": "", "path": f"/{resource.plural}/{verb}",
                                         "port": 443}},
            "rules": [{"apiGroups": [resource.group], "apiVersions": [resource.version], "operations": operations,
                       "resources": [resource.plural]}],
        }],
    }


DOORS: tuple[tuple[Object, Callable[[Object, Look], Object]], ...] = (
    (_configuration("Validating", "queue", VOLCANO_QUEUES, ["CREATE", "UPDATE", "DELETE"]), judge_queue),
    (_configuration("Mutating", "queue", VOLCANO_QUEUES, ["CREATE"]), complete_queue),
    (_configuration("Validating", "podgroup", VOLCANO_GROUPS, ["CREATE"]), judge_group),
    (_configuration("Mutating", "podgroup", VOLCANO_GROUPS, ["CREATE"]), place_group),
)
