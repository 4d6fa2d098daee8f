"""Subresources that are more than a slice of the object: binding, eviction, token, scale, finalize. Pure.

Each becomes an edit, a function from the newest state of the object to the next one, which `resources` carries out.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.meta import Json, Object, Resource, timestamp
from trainmaster.cluster.apiserver import builtin, causes, failures, inspection, labels, lifecycle, pod_rules
from trainmaster.cluster.apiserver.bodies import as_object
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.lifecycle import DeleteOptions
from trainmaster.cluster.apiserver.options import delete_options
from trainmaster.cluster.apiserver.routing import Query

BINDING = Resource("", "v1", "pods/binding", "Binding")
EVICTION = Resource("policy", "v1", "evictions", "Eviction")
SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


@dataclass(frozen=True, slots=True)
class Bind:
    """A pod gets its node, once."""

    pod: str
    node: str
    uid: str
    annotations: Object
    now: datetime

    def __call__(self, pod: Object) -> Object:
        spec, meta = pod.setdefault("spec", {}), pod["metadata"]
        if self.uid and self.uid != meta["uid"]:
            raise failures.conflict(BINDING, self.pod, f"Precondition failed: UID in precondition: {self.uid}, UID in "
                                                       f"object meta: {meta['uid']}")
        if meta.get("deletionTimestamp"):
            raise failures.conflict(BINDING, self.pod, f"pod {self.pod} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            raise failures.conflict(BINDING, self.pod,
                                    f'pod {self.pod} is already assigned to node "{spec["nodeName"]}"')
        spec["nodeName"] = self.node
        if self.annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **self.annotations}
        status = pod.setdefault("status", {})
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None,
                     "lastTransitionTime": timestamp(self.now)}
        others = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
        status["conditions"] = [*others, scheduled]
        return pod


def binding(body: Json, name: str, now: datetime) -> Bind:
    """Read a Binding. Raises Failure 400 or 422."""
    thing = as_object(body)
    _refuse_faults(thing, "v1", "Binding")
    meta, target = thing.get("metadata") or {}, thing.get("target") or {}
    pod = name or meta.get("name") or ""
    if meta.get("name", pod) != pod:
        raise failures.misnamed(meta["name"], pod)
    if target.get("kind", "Node") not in ("Node", "") or not target.get("name"):
        raise failures.bad_request("the target of a binding is a Node with a name")
    return Bind(pod, target["name"], meta.get("uid") or "", meta.get("annotations") or {}, now)


def eviction(body: Json, name: str, query: Query) -> DeleteOptions:
    """Read an Eviction: how to delete (`evicting` decides whether). A query says no more than `dryRun`."""
    thing = as_object(body)
    _refuse_faults(thing, "policy/v1", "Eviction")
    if (as_object(thing.get("metadata") or {})).get("name", name) != name:
        raise failures.bad_request("name in URL does not match name in Eviction object")
    said = Query([("dryRun", value) for value in query.all("dryRun")])
    return delete_options(thing.get("deleteOptions") or {}, said)


def token_request(body: Json) -> Object:
    """Read a TokenRequest. Raises Failure 400."""
    thing = as_object(body)
    _refuse_faults(thing, "authentication.k8s.io/v1", "TokenRequest")
    return thing


def finalized(kind: Kind, body: Json) -> Callable[[Object], Object]:
    """PUT namespaces/NAME/finalize: only `spec.finalizers` is taken from the body."""
    new, _ = lifecycle.readable(kind, body)

    def edit(newest: Object) -> Object:
        revision = new["metadata"].get("resourceVersion")
        if revision:
            newest["metadata"]["resourceVersion"] = revision
        newest["spec"] = {"finalizers": list((new.get("spec") or {}).get("finalizers") or ())}
        return newest

    return edit


def scale_of(kind: Kind, thing: Object, *, before: bool = False) -> Object:
    """The Scale of an object. Raises Failure 500 when the count is not there, unless it is about to be set."""
    assert kind.scale is not None
    wanted = _at(thing, kind.scale.spec)
    if before and wanted is None:
        wanted = 0
    if not isinstance(wanted, int):
        raise failures.internal(f"the spec replicas field \".{'.'.join(kind.scale.spec)}\" does not exist")
    found, meta = _at(thing, kind.scale.status), thing["metadata"]
    status: Object = {"replicas": found if isinstance(found, int) else 0}
    if kind.scale.selector and (selector := _at(thing, kind.scale.selector)):
        status["selector"] = selector if isinstance(selector, str) else labels.text(selector)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {"kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {field: meta[field] for field in kept if field in meta},
            "spec": {"replicas": wanted}, "status": status}


def scaled(kind: Kind, change: Callable[[Object], Json]) -> Callable[[Object], Object]:
    """An edit of the object that makes its Scale what `change` makes of the present one."""
    return lambda newest: rescaled(kind, newest, change(scale_of(kind, newest, before=True)))


def rescaled(kind: Kind, newest: Object, wanted: Json) -> Object:
    """The object with the count of this Scale. Raises Failure 400 or 422."""
    assert kind.scale is not None
    scale = as_object(wanted)
    _refuse_faults(scale, "autoscaling/v1", "Scale")
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        raise failures.invalid_kind("Scale", "autoscaling", newest["metadata"]["name"], [
            causes.invalid("spec.replicas", replicas, "must be greater than or equal to 0")])
    meta = scale.get("metadata") or {}
    if meta.get("name") and meta["name"] != newest["metadata"]["name"]:
        raise failures.misnamed(meta["name"], newest["metadata"]["name"])
    if meta.get("resourceVersion"):
        newest["metadata"]["resourceVersion"] = meta["resourceVersion"]
    inner = newest
    for part in kind.scale.spec[:-1]:
        inner = inner.setdefault(part, {})
    inner[kind.scale.spec[-1]] = replicas
    return newest


def _refuse_faults(thing: Object, api_version: str, kind: str) -> None:
    """Raises Failure 400 for values of the wrong type."""
    type_ = builtin.shape_of(api_version, kind)
    assert type_ is not None
    if faults := inspection.inspect(thing, type_).faults:
        raise failures.bad_request(f"{kind}: {faults[0]}")


def attached(kind: Kind, change: Callable[[Object], Json]) -> Callable[[Object], Object]:
    """An edit of a pod that takes its ephemeral containers, and nothing else, from what `change` makes of it."""
    def edit(newest: Object) -> Object:
        wanted, _ = lifecycle.readable(kind, change(copy.deepcopy(newest)))
        old = newest.setdefault("spec", {}).get("ephemeralContainers") or []
        new = (wanted.get("spec") or {}).get("ephemeralContainers") or []
        faults = [*_ephemeral_faults(new, old),
                  *pod_rules.ephemeral_rules({**newest["spec"], "ephemeralContainers": new})]
        if faults:
            raise failures.invalid(kind.resource, newest["metadata"]["name"], faults)
        if wanted["metadata"].get("resourceVersion"):
            newest["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"]
        newest["spec"]["ephemeralContainers"] = new
        return newest

    return edit


def _ephemeral_faults(new: list[Object], old: list[Object]) -> Iterator[Cause]:
    """One that is there stays as it is."""
    found = {container.get("name"): container for container in new}
    for container in old:
        name = container.get("name", "")
        if name not in found:
            yield causes.forbidden("spec.ephemeralContainers",
                                   f'existing ephemeral containers "{name}" may not be removed\n')
        elif {**container, **found[name]} != container:
            yield causes.forbidden("spec.ephemeralContainers",
                                   f'existing ephemeral containers "{name}" may not be changed\n')


def _at(thing: Object, path: Sequence[str]) -> Json:
    found: Json = thing
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found
