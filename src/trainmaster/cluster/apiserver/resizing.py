"""`pods/resize`: what a pod asks for of cpu and memory, changed while it lives. Pure.

A running pod can be resized only on a node that tells what its containers have (`containerStatuses[].resources`), as on
Kubernetes. Ours does not: it gives containers their limits when they start. So one that runs there is refused, and one
that still waits starts with what it was resized to. All else that is sent is left as it was.
"""

import copy
from collections.abc import Callable, Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import account_admission, causes, failures, lifecycle, pods
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind

RESIZABLE = ("cpu", "memory")
_LISTS = ("initContainers", "containers")
_FIELDS = ("resources", "resizePolicy")


def resized(kind: Kind, change: Callable[[Object], Json]) -> Callable[[Object], Object]:
    """An edit of a pod that takes the resources of its containers, and nothing else, from what `change` makes of it."""
    def edit(newest: Object) -> Object:
        wanted, _ = lifecycle.readable(kind, change(copy.deepcopy(newest)))
        made = _with_resources(newest, wanted.get("spec") or {})
        kind.defaults(made)
        if faults := list(_faults(kind, made, newest)):
            raise failures.invalid(kind.resource, newest["metadata"]["name"], faults)
        name = wanted["metadata"].get("name")
        if name and name != newest["metadata"]["name"]:
            raise failures.misnamed(name, newest["metadata"]["name"])
        if wanted["metadata"].get("resourceVersion"):
            made["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"]
        return made

    return edit


def _with_resources(pod: Object, spec: Object) -> Object:
    """The pod with the resources of these containers; with the containers where they are not the same ones."""
    made = copy.deepcopy(pod)
    for field in _LISTS:
        old, new = made["spec"].get(field) or [], spec.get(field) or []
        if [each.get("name") for each in old] != [each.get("name") for each in new]:
            made["spec"][field] = new
            continue
        for mine, theirs in zip(old, new, strict=True):
            for part in _FIELDS:
                mine.pop(part, None)
                if part in theirs:
                    mine[part] = theirs[part]
    return made


def _faults(kind: Kind, pod: Object, old: Object) -> Iterator[Cause]:
    if account_admission.is_mirror(old):
        yield causes.forbidden("", "static pods cannot be resized")
        return
    spec, was = pod["spec"], old["spec"]
    yield from kind.rules({**pod, "spec": {name: each for name, each in spec.items() if name != "ephemeralContainers"}},
                          None)
    if pods.qos(spec) != pods.qos(was):
        yield causes.invalid("spec", (old.get("status") or {}).get("qosClass") or "",
                             "Pod QOS Class may not change as a result of resizing")
    if not _supported(old):
        yield causes.forbidden("spec", "Pod running on node without support for resize")
    if moved := list(_moved(spec, was)):
        yield from moved
        return
    for field in _LISTS:
        for at, (new, before) in enumerate(zip(spec.get(field) or (), was.get(field) or (), strict=True)):
            yield from _removed(new, before, f"spec.{field}[{at}].resources")
    for field in _LISTS:
        for at, (new, before) in enumerate(zip(spec.get(field) or (), was.get(field) or (), strict=True)):
            yield from _others(new, before, field, at)


def _supported(pod: Object) -> bool:
    running = [each for each in (pod.get("status") or {}).get("containerStatuses") or ()
               if (each.get("state") or {}).get("running") is not None]
    return not running or running[0].get("resources") is not None


def _moved(spec: Object, was: Object) -> Iterator[Cause]:
    for field in reversed(_LISTS):
        new, old = spec.get(field) or [], was.get(field) or []
        if len(new) != len(old):
            yield causes.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for at, (one, other) in enumerate(zip(new, old, strict=True)):
            if one.get("name") != other.get("name"):
                yield causes.forbidden(f"spec.{field}[{at}].name", f"{field} may not be renamed or reordered on resize")


def _removed(new: Object, old: Object, path: str) -> Iterator[Cause]:
    for part in ("requests", "limits"):
        if set((old.get("resources") or {}).get(part) or ()) - set((new.get("resources") or {}).get(part) or ()):
            yield causes.forbidden(f"{path}.{part}", f"resource {part} cannot be removed")


def _others(new: Object, old: Object, field: str, at: int) -> Iterator[Cause]:
    """What of a container may not change this way."""
    if _fixed(new) != _fixed(old):
        yield causes.forbidden("spec", "only cpu and memory resources are mutable") if field == "containers" else \
            causes.forbidden(f"spec.{field}[{at}]",
                             "only cpu and memory resources for init or sidecar containers are mutable")
    restarts = any(each.get("restartPolicy") == "RestartContainer" for each in new.get("resizePolicy") or ())
    if field != "containers" and new.get("restartPolicy") != "Always" and restarts and _amounts(new) != _amounts(old):
        yield causes.forbidden(f"spec.{field}[{at}]", "non-sidecar init containers with a resize policy of "
                                                      "RestartContainer cannot be resized")


def _fixed(container: Object) -> Object:
    rest = {name: each for name, each in container.items() if name != "resources"}
    return {**rest, "resources": {
        part: {name: each for name, each in amounts.items() if name not in RESIZABLE}
        for part, amounts in _amounts(container).items()}}


def _amounts(container: Object) -> Object:
    found = container.get("resources") or {}
    return {part: {name: quantity.parse(each) for name, each in (found.get(part) or {}).items()}
            for part in ("requests", "limits")}
