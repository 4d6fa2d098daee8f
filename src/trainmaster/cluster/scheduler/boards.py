"""The best node for one more pod of a sort, without looking at all nodes again.

Pods of one sort see the cluster alike, and a placement changes one node. So the nodes are ranked once for each sort and
trial; after that only the nodes that changed are looked at. Pods for which their neighbours matter are not served so:
for them one placement may change the worth of every node.
"""

import heapq
from collections.abc import Sequence

from trainmaster.cluster.scheduler import filters, flocks, scores
from trainmaster.cluster.scheduler.amounts import fits
from trainmaster.cluster.scheduler.snapshot import Node, Pod
from trainmaster.cluster.scheduler.trial import Trial


class Board:
    """Nodes by how good they are for a sort of pods; entries of nodes that changed since are skipped."""

    def __init__(self, trial: Trial, pod: Pod) -> None:
        self._seen = len(trial.changes)
        self._current: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        verdicts = trial.snapshot.verdicts.setdefault(pod.demands, {})
        for name, node in trial.snapshot.nodes.items():
            verdict = verdicts.get(name)
            if verdict is None:
                verdict = verdicts[name] = filters.by_nature(pod.demands, node)
            if not verdict and fits(pod.requests, trial.idle(node)):
                worth = -scores.score(trial, pod, node)
                self._current[name] = worth
                self._heap.append((worth, name))
        heapq.heapify(self._heap)

    def best(self, trial: Trial, pod: Pod) -> Node | None:
        for name in set(trial.changes[self._seen:]):
            self._look_again(trial, pod, name)
        self._seen = len(trial.changes)
        while self._heap:
            worth, name = self._heap[0]
            if self._current.get(name) == worth:
                return trial.snapshot.nodes[name]
            heapq.heappop(self._heap)
        return None

    def _look_again(self, trial: Trial, pod: Pod, name: str) -> None:
        node = trial.snapshot.nodes[name]
        self._current.pop(name, None)
        if not trial.snapshot.verdicts[pod.demands].get(name) and fits(pod.requests, trial.idle(node)):
            worth = self._current[name] = -scores.score(trial, pod, node)
            heapq.heappush(self._heap, (worth, name))


def choose(trial: Trial, pod: Pod, needed: Sequence[Pod] = ()) -> Node | None:
    """The best node for a pod, or None. `needed` are those that are to be placed with it, itself among them."""
    demands = pod.demands
    if demands.social or demands.ports or demands.pod_wishes or demands.claims or trial.holds \
            or trial.hermits:
        found = filters.candidates(trial, pod)
        if len(found) > 1 and len(needed) > 1 and (flock := flocks.led_by(trial, pod, needed)) is not None:
            ranked = scores.ranked(trial, pod, found)
            return flocks.roomy(trial, ranked, flock) or ranked[0]
        return scores.best(trial, pod, found) if found else None
    key = (demands, tuple(pod.requests.items()), pod.batch, trial.future)
    board = trial.boards.get(key)
    if board is None:
        board = trial.boards[key] = Board(trial, pod)
    assert isinstance(board, Board)
    return board.best(trial, pod)
