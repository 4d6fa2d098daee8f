"""Pods that must stay together: where the first of them goes, so that the others can follow.

A claim whose volume will be on one node, or affinity to pods like itself, ties the members of a gang to the place of
the first. Packing alone would send that one to the fullest node, where the others find no room, and the gang would wait
beside an empty node for ever. So the places are looked at best first, and the first in which all have room is taken.
Only amounts and the nature of nodes are looked at; what else keeps a member away is found when its turn comes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Key
from trainmaster.cluster.scheduler import filters
from trainmaster.cluster.scheduler.amounts import fits
from trainmaster.cluster.scheduler.snapshot import Node, Pod
from trainmaster.cluster.scheduler.trial import Trial

Place = Callable[[Node], str]      # which of the places, of which they must share one, a node belongs to


@dataclass(frozen=True, slots=True)
class Flock:
    """The pods that go where the first of them goes."""

    pods: Sequence[Pod]
    place: Place


def led_by(trial: Trial, pod: Pod, needed: Sequence[Pod]) -> Flock | None:
    """Of those that are needed, the ones whom this pod binds to its place; None if there are none."""
    storage = trial.snapshot.storage
    claims = {name for name in pod.demands.claims
              if storage.undecided(Key(pod.key.namespace, name), trial.stored)}
    if claims:
        sharing = [other for other in needed if not claims.isdisjoint(other.demands.claims)]
        return Flock(sharing, lambda node: storage.seat(node.name)) if len(sharing) > 1 else None
    first = next((term for term in pod.demands.near if not any(trial.neighbours(term).values())
                  and term.means(pod.key.namespace, pod.labels, trial.snapshot.spaces)), None)
    if first is None:
        return None
    near = [other for other in needed if first in other.demands.near]
    return Flock(near, lambda node: node.labels.get(first.topology, "")) if len(near) > 1 else None


def roomy(trial: Trial, ranked: Sequence[Node], flock: Flock) -> Node | None:
    """The first of these nodes in whose place all of the flock have room."""
    places: dict[str, list[Node]] = {}
    for node in trial.snapshot.nodes.values():
        places.setdefault(flock.place(node), []).append(node)
    refused: set[str] = set()
    for node in ranked:
        place = flock.place(node)
        if place not in refused and _all_fit(trial, places[place], flock.pods):
            return node
        refused.add(place)
    return None


def _all_fit(trial: Trial, nodes: Sequence[Node], pods: Sequence[Pod]) -> bool:
    """Whether the pods fit on these nodes, each on the first that has room for it."""
    left = [(node, dict(trial.idle(node))) for node in nodes]
    for pod in pods:
        found = next((idle for node, idle in left if fits(pod.requests, idle)
                      and not filters.by_nature(pod.demands, node)), None)
        if found is None:
            return False
        for name, amount in pod.requests.items():
            found[name] -= amount
    return True
