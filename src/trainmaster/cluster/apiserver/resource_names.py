"""What resources are called: cpu and memory, counts of objects, and what others bring under their own domain."""

from collections.abc import Iterator

from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_QUOTA = checks.COUNTED | frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
})
_STANDARD = _QUOTA | {"storage"}
_HUGE, _QUOTA_HUGE = "hugepages-", ("hugepages-", "requests.hugepages-")
_OURS = "kubernetes.io/"


def rules(name: str, path: str) -> Iterator[Cause]:
    """A resource by its name: one that Kubernetes knows, or one of somebody's domain."""
    faults = names.qualified(name)
    yield from names.refused(path, name, faults)
    if not faults and "/" not in name and name not in _STANDARD and not name.startswith(_QUOTA_HUGE):
        yield causes.invalid(path, name, "must be a standard resource type or fully qualified")


def container_rules(name: str, path: str) -> Iterator[Cause]:
    """One that a container can ask for."""
    yield from rules(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not name.startswith(_HUGE):
            yield causes.invalid(path, name, "must be a standard resource for containers")
    elif _OURS not in name and (name.startswith("requests.") or names.qualified(f"requests.{name}")):
        yield causes.invalid(path, name, "doesn't follow extended resource name standard")


def is_quota(name: str) -> bool:
    return name in _QUOTA or name.startswith(_QUOTA_HUGE)


def is_shared(name: str) -> bool:
    """Whether more of it may be promised than there is."""
    return ("/" not in name or _OURS in name) and not name.startswith(_HUGE)
