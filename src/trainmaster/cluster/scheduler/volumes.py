"""What the claims of a pod have to say about whether and where it may run, in the words of kube-scheduler. Pure.

A claim that waits for its first consumer goes where the pod goes: to a node that has a free volume for it, or anywhere
if its class has a provisioner. Once a node was selected for it, it is that one. Until claims and volumes are known (or
where they may not be read at all) there is no opinion.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainmaster.api.meta import Key, Object, being_deleted, name_of
from trainmaster.api.volumes import LATER, NO_PROVISIONER, best_volume, class_of, selected_node
from trainmaster.cluster.scheduler.selecting import node_term

IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NONE_HERE = "node(s) didn't find available persistent volumes to bind"
IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
# What these make can be used on one node only, so the first pod decides for all that share a claim. Of others it is not
# known before the volume is there.
OF_ONE_NODE = frozenset({"rancher.io/local-path"})
NOBODY: Mapping[Key, str] = {}
NOT_KEPT: Mapping[str, Key] = {}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The node of the first pod that was given one and uses the claim."""

    pod: str      # UID
    node: str


NO_CHOICE = Chosen("", "")


@dataclass(slots=True)
class Storage:
    """Claims, volumes and classes as far as the watches have told, and what we have chosen for claims ourselves."""

    known: bool = False
    claims: dict[Key, Object] = field(default_factory=dict)
    volumes: dict[str, Object] = field(default_factory=dict)
    classes: dict[str, Object] = field(default_factory=dict)
    chosen: dict[Key, Chosen] = field(default_factory=dict)   # until the watch shows the pod on its node
    disk: frozenset[str] = frozenset()                        # nodes of one machine: what is on one is on all

    def trouble(self, namespace: str, names: tuple[str, ...]) -> str:
        """What keeps a pod with these claims off every node; "" if nothing does."""
        for name in names if self.known else ():
            claim = self.claims.get(Key(namespace, name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if being_deleted(claim):
                return f'persistentvolumeclaim "{name}" is being deleted'
            phase, volume = (claim.get("status") or {}).get("phase"), claim["spec"].get("volumeName")
            if phase == "Lost":
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            if phase != "Bound" and (volume or self._class(claim).get("volumeBindingMode") != LATER):
                return IMMEDIATE
        return ""

    def obstacle(self, namespace: str, names: tuple[str, ...], node: str, labels: Mapping[str, str],
                 placed: Mapping[Key, str] = NOBODY, kept: Mapping[str, Key] = NOT_KEPT) -> str:
        """What keeps a pod with these claims off one node; `placed` are the claims of pods that get a node now, `kept`
        the volumes that are for these claims then."""
        taken = dict(kept)
        for name in names if self.known else ():
            key = Key(namespace, name)
            claim = self.claims.get(key)
            if claim is None:
                continue
            if volume := self.volumes.get(str(claim["spec"].get("volumeName") or "")):
                if not usable_on(node, labels)(volume):
                    return ELSEWHERE
            elif not is_bound(claim) and not self._comes(claim, key, node, labels, placed, taken):
                return NONE_HERE
        return ""

    def exclusive(self, key: Key) -> bool:
        """Whether a claim is for one pod alone."""
        claim = self.claims.get(key) if self.known else None
        return claim is not None and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())

    def keep(self, namespace: str, names: tuple[str, ...], node: str, labels: Mapping[str, str],
             kept: dict[str, Key]) -> None:
        """Note which of the volumes that are there are for these claims if their pod goes to a node."""
        for name in names if self.known else ():
            key = Key(namespace, name)
            claim = self.claims.get(key)
            if claim is not None and not is_bound(claim) and self._found(claim):
                self._free(claim, key, node, labels, kept)

    def together(self, one: str, other: str) -> bool:
        """Whether a volume that is made for one node can be used on the other."""
        return self.seat(one) == self.seat(other)

    def seat(self, node: str) -> str:
        """What the nodes have in common on which a volume is that was made for this one."""
        return "/" if node in self.disk else node

    def undecided(self, key: Key, placed: Mapping[Key, str]) -> bool:
        """Whether the next pod that uses the claim decides for all others on which node they must be."""
        claim = self.claims.get(key) if self.known else None
        if claim is None or is_bound(claim) or claim["spec"].get("volumeName") or selected_node(claim):
            return False
        return (str(self._class(claim).get("provisioner")) in OF_ONE_NODE
                and not placed.get(key) and key not in self.chosen)

    def _found(self, claim: Object) -> bool:
        """Whether nobody makes volumes for a claim: it gets one that is there, or none."""
        return str(self._class(claim).get("provisioner") or NO_PROVISIONER) == NO_PROVISIONER

    def _free(self, claim: Object, key: Key, node: str, labels: Mapping[str, str], kept: dict[str, Key]) -> bool:
        """Whether there is a volume for a claim on a node that is for nobody else; it is for this one from now on."""
        if key in kept.values():
            return any(owner == key and usable_on(node, labels)(self.volumes[name]) for name, owner in kept.items())
        left = (volume for name, volume in self.volumes.items() if name not in kept)
        found = best_volume(claim, left, usable_on(node, labels))
        if found is not None:
            kept[name_of(found)] = key
        return found is not None

    def _comes(self, claim: Object, key: Key, node: str, labels: Mapping[str, str],
               placed: Mapping[Key, str], kept: dict[str, Key]) -> bool:
        """Whether a claim that waits for its consumer can have a volume on a node."""
        provisioner = str(self._class(claim).get("provisioner") or NO_PROVISIONER)
        there = selected_node(claim)
        if not there and provisioner in OF_ONE_NODE:
            there = placed.get(key) or self.chosen.get(key, NO_CHOICE).node
        if there:
            return self.together(there, node)
        return provisioner != NO_PROVISIONER or self._free(claim, key, node, labels, kept)

    def _class(self, claim: Object) -> Object:
        return self.classes.get(class_of(claim) or "") or {}


def is_bound(claim: Object) -> bool:
    return (claim.get("status") or {}).get("phase") == "Bound" and bool(claim["spec"].get("volumeName"))


def usable_on(node: str, labels: Mapping[str, str]) -> Callable[[Object], bool]:
    """Whether a volume can be used on this node."""
    def usable(volume: Object) -> bool:
        terms = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
        return not terms or any(node_term(term).matches(node, dict(labels)) for term in terms)

    return usable


def about_the_pod(obstacle: str) -> bool:
    """Whether an obstacle is the pod's own, so that nodes are not counted for it."""
    return obstacle == IMMEDIATE or obstacle.startswith('persistentvolumeclaim "')
