"""What a pod may tell its containers of itself, in variables and in files: its own fields, and their resources."""

from collections.abc import Iterator, Sequence

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, names
from trainmaster.cluster.apiserver.causes import Cause

IN_VARIABLES = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)
IN_FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN = frozenset({*IN_VARIABLES, *IN_FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_OLD_NAMES = {"spec.host": "spec.nodeName"}
_MAPS = ("metadata.annotations", "metadata.labels")
_RESOURCES = tuple(f"{group}.{name}" for group in ("limits", "requests")
                   for name in ("cpu", "ephemeral-storage", "memory"))
_HUGE = ("requests.hugepages-", "limits.hugepages-")
_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
# By the end of the resource's name: the divisors, how they are listed, and what the resource is called.
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1", "cpu"),
    "memory": (_BYTES, ", ".join(_BYTES), "memory"),
    "ephemeral-storage": (_BYTES, ", ".join(_BYTES), "local ephemeral storage"),
}


def field_rules(reference: Object, path: str, choices: Sequence[str]) -> Iterator[Cause]:
    """A `fieldRef` to one of `choices`, or to one label or annotation."""
    version, text = reference.get("apiVersion") or "", reference.get("fieldPath") or ""
    for name, value in (("apiVersion", version), ("fieldPath", text)):
        if not value:
            yield causes.required(f"{path}.{name}")
            return
    text = _OLD_NAMES.get(text, text)
    whole, key = _parted(text)
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif key is not None and whole not in _MAPS:
        problem = f"field label does not support subscript: {text}"
    elif key is None and text not in _KNOWN:
        problem = f"field label not supported: {text}"
    elif key is not None:
        key = key.lower() if whole == "metadata.annotations" else key
        yield from names.refused(path, key, names.qualified(key))
        return
    else:
        if text not in choices:
            yield causes.unsupported(f"{path}.fieldPath", text, choices)
        return
    yield causes.invalid(f"{path}.fieldPath", text, f"error converting fieldPath: {problem}")


def resource_rules(reference: Object, path: str, *, in_file: bool) -> Iterator[Cause]:
    """A `resourceFieldRef`; a file must say whose resource it is, a variable means that of its container."""
    name = reference.get("resource") or ""
    if in_file and not reference.get("containerName"):
        yield causes.required(f"{path}.containerName")
    elif not name:
        yield causes.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        yield causes.unsupported(f"{path}.resource", name, _RESOURCES)
    divisor = reference.get("divisor")
    if divisor is None or quantity.parse(divisor) == 0:
        return
    if name in _RESOURCES:
        choices, listed, called = _DIVISORS[name.partition(".")[2]]
    elif name.startswith(_HUGE):
        choices, listed, called = _BYTES, ", ".join(_BYTES), "hugepages"
    else:
        return
    if quantity.canonical(str(divisor)) not in choices:
        yield causes.invalid(f"{path}.divisor", name,
                             f"only divisor's values {listed} are supported with the {called} resource")


def _parted(text: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` in two; anything else as it is."""
    whole, bracket, key = text.removesuffix("']").partition("['")
    return (whole, key) if text.endswith("']") and bracket and whole else (text, None)
