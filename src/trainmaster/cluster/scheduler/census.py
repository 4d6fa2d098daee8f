"""What the pods of one group are, counted once and kept until one of them changes.

Decisions are many, and most groups are as they were at the last one: without this, each decision would look at every
pod that runs anywhere.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainmaster.api.meta import metadata
from trainmaster.cluster.scheduler.amounts import Amounts, total
from trainmaster.cluster.scheduler.demands import narrowed
from trainmaster.cluster.scheduler.selecting import Selector
from trainmaster.cluster.scheduler.snapshot import GroupKey, Pod, Snapshot, State

# States that hold a place and count for the gang.
ALLOCATED = frozenset({State.BOUND, State.RUNNING})


@dataclass(frozen=True, slots=True)
class Census:
    pods: tuple[Pod, ...]
    states: Counter[State]
    mustered: Counter[str]      # by role: those that have a place, or have done their part
    ready: int                  # as many as these are
    able: Counter[str]          # by role: those that have not failed and may start
    valid: int                  # pods that can be part of the gang: a failed one cannot
    leaving: int                # those on their way out that are still on a node
    line: tuple[Pod, ...]       # those that want a place, in the order in which they get one
    held: Amounts
    wanted: Amounts             # by those in line
    gated: Amounts              # by those that may not start yet
    allocated: int              # pods that have it
    owners: str
    priority: int


def census_of(pods: Iterable[Pod]) -> Census:
    there = tuple(pods)
    allocated = [pod for pod in there if pod.state in ALLOCATED]
    mustered = Counter(pod.role for pod in there if pod.state in ALLOCATED or pod.state is State.SUCCEEDED)
    line = [pod for pod in there if pod.state is State.PENDING and not pod.gated]
    line.sort(key=lambda pod: (pod.best_effort, -pod.priority, pod.order, pod.created, pod.uid))
    owners = {f"{pod.key.namespace}/{owner['name']}" for pod in there
              for owner in metadata(pod.raw).get("ownerReferences") or ()}
    return Census(
        there, Counter(pod.state for pod in there),
        mustered=mustered, ready=mustered.total(),
        able=Counter(pod.role for pod in there if pod.state is not State.FAILED and not pod.gated),
        valid=sum(1 for pod in there if pod.state not in {State.FAILED, State.RELEASING} and not pod.gated),
        leaving=sum(1 for pod in there if pod.state is State.RELEASING and pod.node),
        line=tuple(line), allocated=len(allocated),
        held=total(pod.requests for pod in allocated), wanted=total(pod.requests for pod in line),
        gated=total(pod.requests for pod in there if pod.gated), owners=",".join(sorted(owners)),
        priority=max((pod.priority for pod in there), default=0))


def taken(snapshot: Snapshot, group: GroupKey, nodes: Selector | None) -> Census:
    """That of a group; `nodes` are those that its queue may use. Kept with the snapshot, which forgets it in time."""
    known = snapshot.censuses.setdefault(group, {})
    found = known.get(nodes)
    if found is None:
        pods = snapshot.pods_of(group)
        if nodes is not None:
            pods = [replace(pod, demands=narrowed(pod.demands, nodes)) if pod.state is State.PENDING else pod
                    for pod in pods]
        found = known[nodes] = census_of(pods)
    assert isinstance(found, Census)
    return found
