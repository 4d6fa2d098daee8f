"""What all Kubernetes objects share: where a kind lives, metadata, owners, moments.

Objects whose fields we do not own stay plain dictionaries, so that nothing a newer API adds is lost on the way through;
the functions here are the one vocabulary for reading them.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = Any                # a JSON value that nobody has looked into yet
Object: TypeAlias = dict[str, Any]   # a Kubernetes object as it came off the wire

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Resource(NamedTuple):
    """Where objects of one kind live: the group, version and plural of their URL, and their kind.

    This and `Key` are tuples, because they are compared and looked up at every step of every request and event.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of a subresource of it."""
        parts = [f"/apis/{self.group}" if self.group else "/api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/".join([*parts, *(part for part in (name, subresource) if part)])


class Key(NamedTuple):
    """The address of one object of a known kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def metadata(thing: Mapping[str, Json]) -> Object:
    found = thing.get("metadata")
    return found if isinstance(found, dict) else {}


def name_of(thing: Mapping[str, Json]) -> str:
    return str(metadata(thing).get("name", ""))


def namespace_of(thing: Mapping[str, Json]) -> str:
    return str(metadata(thing).get("namespace", ""))


def uid_of(thing: Mapping[str, Json]) -> str:
    return str(metadata(thing).get("uid", ""))


def key_of(thing: Mapping[str, Json]) -> Key:
    about = metadata(thing)
    return Key(str(about.get("namespace", "")), str(about.get("name", "")))


def revision_of(thing: Mapping[str, Json]) -> str:
    """The resourceVersion: opaque to clients, compared only for equality."""
    return str(metadata(thing).get("resourceVersion", ""))


def labels_of(thing: Mapping[str, Json]) -> dict[str, str]:
    return metadata(thing).get("labels") or {}


def controller_of(thing: Mapping[str, Json]) -> Object | None:
    """The owner reference of the controller, if the object has one."""
    for owner in metadata(thing).get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


def being_deleted(thing: Mapping[str, Json]) -> bool:
    return bool(metadata(thing).get("deletionTimestamp"))


@lru_cache(maxsize=16)
def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes writes `Time`. One write writes one moment several times."""
    # `isoformat` takes a sixth of the time of `strftime`, and every write has a time in it.
    return f"{(moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat(timespec='seconds')[:19]}Z"


def micro_timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as Kubernetes writes `MicroTime`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """The moment that a `Time` or `MicroTime` names. Raises ValueError for anything else."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moment_if_any(text: Json) -> datetime | None:
    """The same of what may be missing, or nonsense from a clock that is not ours, by which nobody may be stopped."""
    try:
        return moment(text) if text else None
    except (ValueError, TypeError, OverflowError):
        return None


def is_dns_label(text: str) -> bool:
    """RFC 1123 label: what names of namespaces, and of pods that get a host name, must be."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """RFC 1123 subdomain: what names of most objects must be."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None
