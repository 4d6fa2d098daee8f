"""Which kinds are served right now: the built-in ones, and those of the installed definitions."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import definitions
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.kinds import BUILT_IN

# Where two groups have a kind of the same short name (`mpijob`, `podgroup`), kubectl takes the group listed first.
# Those that Kubernetes brings come first, in the order of a real server.
FIRST_GROUPS = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy",
    "rbac.authorization.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io",
    "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io", "kubeflow.org", "scheduling.volcano.sh",
)
_FRONT = ("name", "namespace", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """One version of a group, with its kinds in the order of their plurals."""

    group: str
    version: str
    kinds: tuple[Kind, ...]

    @property
    def name(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Catalog:
    """Kinds by group, version and plural. `generation` changes with every change of it, for caches and ETags."""

    def __init__(self, built_in: Iterable[Kind] = BUILT_IN) -> None:
        self._kinds = {_key(kind): kind for kind in built_in}
        self._definitions: dict[str, Object] = {}
        self._since: dict[str, int] = {}           # the revision that brought the stored schema of a definition
        self.generation = 0

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def serves(self, group: str) -> bool:
        return any(key[0] == group for key in self._kinds)

    def install(self, definition: Object) -> None:
        """Serve what the definition says, instead of what an earlier state of it said."""
        name = definition["metadata"]["name"]
        known = self._definitions.get(name)
        if known is None or definitions.storage_schema(known) != definitions.storage_schema(definition):
            self._since[name] = int(definition["metadata"].get("resourceVersion") or 0)
        self.remove(name)
        self._definitions[name] = definition
        for kind in definitions.kinds_of(definition, self._since[name]):
            self._kinds[_key(kind)] = kind
        self.generation += 1

    def remove(self, name: str) -> None:
        known = self._definitions.pop(name, None)
        if known is not None:
            spec = known["spec"]
            gone = [key for key, kind in self._kinds.items()
                    if kind.custom and (key[0], key[2]) == (spec["group"], spec["names"]["plural"])]
            for key in gone:
                del self._kinds[key]
            self.generation += 1

    def definition_of(self, kind: Kind) -> Object | None:
        return self._definitions.get(f"{kind.resource.plural}.{kind.resource.group}")

    def storage_of(self, kind: Kind) -> Kind:
        """The same kind in the version it is stored in."""
        definition = self.definition_of(kind) if kind.custom else None
        for version in (definition or {"spec": {"versions": ()}})["spec"]["versions"]:
            if version.get("storage"):
                return self.find(kind.resource.group, version["name"], kind.resource.plural) or kind
        return kind

    def encoder(self, kind: Kind, thing: Object) -> Callable[[int], bytes]:
        """Gives the bytes to store by the revision that the write gets."""
        storage = self.storage_of(kind)

        def encode(revision: int) -> bytes:
            meta = thing["metadata"]
            meta["resourceVersion"] = str(revision)
            if kind.custom:      # near the front, where `Renewal` finds it
                thing["metadata"] = {**{field: meta[field] for field in _FRONT if field in meta}, **meta}
            return storage.encode(thing)

        return encode

    def equivalents(self, kind: Kind) -> list[Kind]:
        """The other ways to name what is stored as this kind is: its other versions, its name in another group."""
        return [other for other in self._kinds.values() if other.prefix == kind.prefix and other is not kind]

    def definitions(self) -> list[Object]:
        return list(self._definitions.values())

    def kinds(self) -> Iterator[Kind]:
        """Every kind once, in the version it is stored in."""
        seen = set()
        for kind in self._kinds.values():
            if kind.prefix not in seen:
                seen.add(kind.prefix)
                yield self.storage_of(kind)

    def versions(self) -> list[GroupVersion]:
        """Everything served, groups in their order, the preferred version of a group first."""
        found: dict[tuple[str, str], list[Kind]] = {}
        for kind in self._kinds.values():
            found.setdefault((kind.resource.group, kind.resource.version), []).append(kind)
        ordered = sorted(found.items(), key=lambda pair: (*_rank(pair[0][0]), version_rank(pair[0][1])))
        return [GroupVersion(group, version, tuple(sorted(kinds, key=lambda kind: kind.resource.plural)))
                for (group, version), kinds in ordered]

    def digest(self) -> str:
        """Changes when what is served changes, and is the same after a restart."""
        sums = hashlib.sha256()
        for served in self.versions():
            for kind in served.kinds:
                meta = (self.definition_of(kind) or {}).get("metadata", {})
                sums.update(f"{kind.resource.path()} {meta.get('uid')} {meta.get('generation')}\n".encode())
        return sums.hexdigest()


def version_rank(version: str) -> tuple[int, ...]:
    """Sorts v2, v1, v1beta2, v1beta1, v1alpha1; anything else comes last, in its own order."""
    for marker, rank in (("alpha", 2), ("beta", 1)):
        major, found, minor = version.removeprefix("v").partition(marker)
        if found and _counts(major) and (_counts(minor) or not minor):
            return (0, rank, -int(major), -int(minor or 0))
    number = version.removeprefix("v")
    return (0, 0, -int(number), 0) if version.startswith("v") and _counts(number) else (1, *version.encode())


def _counts(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _rank(group: str) -> tuple[int, str]:
    return (FIRST_GROUPS.index(group), group) if group in FIRST_GROUPS else (len(FIRST_GROUPS), group)


def _key(kind: Kind) -> tuple[str, str, str]:
    return kind.resource.group, kind.resource.version, kind.resource.plural
