"""What the claims of a pod have to say about whether and where it may run, in the words of kube-scheduler. Pure.

A claim that waits for its first consumer is in nobody's way: its volume is made where the pod goes. Until claims and
volumes are known (or where they may not be read at all) there is no opinion.
"""

from dataclasses import dataclass, field

from trainmaster.api.meta import Key, Object, being_deleted
from trainmaster.cluster.scheduler.selecting import node_term

IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"


@dataclass(slots=True)
class Storage:
    """Claims, volumes and classes as far as the watches have told."""

    known: bool = False
    claims: dict[Key, Object] = field(default_factory=dict)
    volumes: dict[str, Object] = field(default_factory=dict)
    classes: dict[str, Object] = field(default_factory=dict)

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
            if phase != "Bound" and not self._waits(claim):
                return IMMEDIATE
        return ""

    def reachable(self, namespace: str, names: tuple[str, ...], node: str, labels: dict[str, str]) -> bool:
        """Whether the bound volumes of these claims can be used on a node."""
        for name in names if self.known else ():
            claim = self.claims.get(Key(namespace, name)) or {"spec": {}}
            volume = self.volumes.get(str(claim["spec"].get("volumeName") or ""))
            terms = (((volume or {"spec": {}})["spec"].get("nodeAffinity") or {}).get("required") or {}).get(
                "nodeSelectorTerms")
            if terms and not any(node_term(term).matches(node, labels) for term in terms):
                return False
        return True

    def _waits(self, claim: Object) -> bool:
        class_ = self.classes.get(str(claim["spec"].get("storageClassName") or ""))
        return class_ is not None and class_.get("volumeBindingMode") == "WaitForFirstConsumer"


def about_the_pod(obstacle: str) -> bool:
    """Whether an obstacle is the pod's own, so that nodes are not counted for it."""
    return obstacle == IMMEDIATE or obstacle.startswith('persistentvolumeclaim "')
