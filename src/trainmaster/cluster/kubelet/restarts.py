"""Which ended containers come back, and how long they must wait: the kubelet's rules."""

from datetime import datetime, timedelta

from trainmaster.cluster.kubelet.observed import Attempt

FIRST_DELAY = timedelta(seconds=10)
LONGEST_DELAY = timedelta(minutes=5)
# A container that ran for twice the longest delay is healthy again: the kubelet forgets its back-off.
HEALTHY = 2 * LONGEST_DELAY


def comes_back(policy: str, code: int) -> bool:
    """Whether restartPolicy starts a container again that ended with this code."""
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def next_level(ended: Attempt) -> int:
    """Quick ends in a row, counting this one; 0 after a long healthy run."""
    if ended.ended is None or ended.ended.finished - ended.created > HEALTHY:
        return 0
    return ended.level + 1


def delay(level: int) -> timedelta:
    """How long after its end a container waits. The first restart is immediate, as the kubelet's is."""
    if level <= 1:
        return timedelta(0)
    doublings: int = 2 ** min(level - 2, 10)
    return min(LONGEST_DELAY, FIRST_DELAY * doublings)


def due(ended: Attempt) -> datetime:
    """When the next attempt may start."""
    assert ended.ended is not None
    return ended.ended.finished + delay(next_level(ended))
