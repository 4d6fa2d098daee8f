"""What is warned of in an object that is taken: names that make odd host names, variables that hide others. Pure.

Only what people run into is here, in the words of Kubernetes; kubectl prints each as `Warning: ...`. As there, nothing
is said about changes of pods, which programs make, nor about changes that leave the specification as it was.
"""

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.api import quantity
from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import definitions, mountable, names
from trainmaster.cluster.apiserver.kind import Kind

_NAMED = frozenset({"Deployment", "Job", "ReplicaSet", "ReplicationController"})
_TEMPLATED = _NAMED | {"DaemonSet", "StatefulSet"}
_SURPRISE = "which can result in surprising behavior; a DNS label is recommended"
_PODS_STAY = ("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
              "them or set propagationPolicy=Orphan to suppress this warning")
_OLD_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"), "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}


def about(kind: Kind, thing: Object, old: Object | None = None) -> list[str]:
    """`old` is the object before a change."""
    if kind.resource == DEFINITIONS:
        return definitions.unenforced(thing)
    return [] if kind.custom else told(kind.resource.kind, thing, old)


def of_deletion(kind: Kind, propagation: str) -> list[str]:
    """`propagation` is what the deletion says of what the object owns; mostly nothing."""
    return [_PODS_STAY] if not propagation and kind.orphans and kind.resource.kind == "Job" else []


def told(kind: str, thing: Object, old: Object | None = None) -> list[str]:
    if old is not None and (kind == "Pod" or old.get("spec") == thing.get("spec")):
        return []
    return list(_told(kind, thing))


def _told(kind: str, thing: Object) -> Iterator[str]:
    meta, spec = thing["metadata"], thing.get("spec") or {}
    if kind == "Pod":
        yield from _odd_name(str(meta.get("name", "")), "the Pod's hostname")
        yield from _of_pod(spec, "spec")
    elif kind in _TEMPLATED:
        if kind in _NAMED:
            yield from _odd_name(str(meta.get("name", "")), "Pod names and hostnames")
        yield from _of_pod((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")
    elif kind == "ServiceAccount" and mountable.ANNOTATION in (meta.get("annotations") or {}):
        yield (f"metadata.annotations[{mountable.ANNOTATION}]: deprecated in v1.32+; prefer separate namespaces to "
               "isolate access to mounted secrets")
    elif kind == "Service" and spec.get("clusterIP") == "None" and spec.get("sessionAffinity", "None") != "None":
        yield "spec.SessionAffinity is ignored for headless services"
    elif kind == "Service" and spec.get("externalIPs"):
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    elif kind == "PersistentVolumeClaim":
        yield from _fractions((spec.get("resources") or {}).get("requests") or {}, "spec.resources.requests", "storage")
    elif kind == "PersistentVolume" and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield ("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
               "approach is to use dynamic provisioning.")


def _odd_name(name: str, used: str) -> Iterator[str]:
    if faults := names.label(name):
        yield f"metadata.name: this is used in {used}, {_SURPRISE}: [{' '.join(faults)}]"


def _of_pod(spec: Object, path: str) -> Iterator[str]:
    for label in spec.get("nodeSelector") or ():
        if label in _OLD_LABELS:
            since, better = _OLD_LABELS[label]
            yield f'{path}.nodeSelector[{label}]: deprecated since {since}; use "{better}" instead'
    for at, given in enumerate(spec.get("topologySpreadConstraints") or ()):
        if given.get("labelSelector") is None:
            yield (f"{path}.topologySpreadConstraints[{at}].labelSelector: a null labelSelector results in matching no "
                   "pod")
    for at, volume in enumerate(spec.get("volumes") or ()):
        if "gitRepo" in volume:
            yield f"{path}.volumes[{at}].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"
    if spec.get("imagePullSecrets"):
        yield from _of_pull_secrets(spec, path)
    for field in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(field) or ()):
            yield from _of_container(container, f"{path}.{field}[{at}]")


def _of_pull_secrets(spec: Object, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for at, given in enumerate(spec["imagePullSecrets"]):
        name = str(given.get("name") or "")
        if not name:
            yield f'{path}.imagePullSecrets[{at}].name: invalid empty name ""'
        elif name in seen:
            yield f'{path}.imagePullSecrets[{at}].name: duplicate name "{name}"'
        seen.add(name)


def _of_container(container: Object, path: str) -> Iterator[str]:
    variables = container.get("env") or ()
    if len({each.get("name") for each in variables}) != len(variables):
        seen: set[str] = set()
        for at, variable in enumerate(variables):
            name = str(variable.get("name", ""))
            if name in seen:
                yield f'{path}.env[{at}]: hides previous definition of "{name}", which may be dropped when using apply'
            seen.add(name)
    for group, amounts in (container.get("resources") or {}).items():
        if group in {"limits", "requests"}:
            yield from _fractions(amounts or {}, f"{path}.resources.{group}", "memory")
    if container.get("ports"):
        yield from _of_ports(container["ports"], path)


def _of_ports(ports: Sequence[Object], path: str) -> Iterator[str]:
    """A port that is there a second time, with the same or with another way to the outside."""
    seen: dict[tuple[object, object], list[int]] = {}
    for at, port in enumerate(ports):
        before = seen.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other in before[-1:]:
            same = port.get("hostPort") == ports[other].get("hostPort")
            word = "duplicate" if same else "overlapping"
            yield f"{path}.ports[{at}]: {word} port definition with {path}.ports[{other}]"
        before.append(at)


def _fractions(amounts: Mapping[str, object], path: str, name: str) -> Iterator[str]:
    """Parts of bytes, which nobody means."""
    amount = str(amounts.get(name, ""))
    if amount.endswith(("m", "u", "n")) and quantity.parse(amount).denominator != 1:
        yield f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'
