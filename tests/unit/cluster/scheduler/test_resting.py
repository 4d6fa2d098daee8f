"""Which groups a decision need not look at, and what makes it look again. That they change nothing is a property."""

from collections.abc import Callable
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.dialects import VOLCANO
from trainmaster.cluster.scheduler.settings import Verdict
from trainmaster.cluster.scheduler.snapshot import Snapshot, read_pod
from trainmaster.testing.scheduling import decided, gang, machine, members, snapshot


def there(pods: list[Object], phase: str = "Running", **spec: Any) -> Snapshot:
    return snapshot([machine("a", cpu=2)], pods, [gang("g", 2, phase=phase, **spec)], classes={"high": 10})


def seen(of: Snapshot) -> Verdict:
    (verdict,) = decided(of).verdicts
    return verdict


RUNNING = members("g", "w", 2, on="a", phase="Running")
ENDED = members("g", "w", 2, on="a", phase="Succeeded")
BROKEN = members("g", "w", 2, on="a", phase="Failed")


@pytest.mark.parametrize(("rests", "pods", "phase"), [
    pytest.param(True, RUNNING, "Running", id="all of it runs"),
    pytest.param(True, ENDED, "Completed", id="all of it has ended"),
    pytest.param(True, BROKEN, "Completed", id="all of it has ended badly"),
    pytest.param(False, [*RUNNING, *members("g", "x", 1, asks={"cpu": 9})], "Running", id="one more wants a place"),
    pytest.param(False, RUNNING[:1], "Running", id="it has lost a member"),
    pytest.param(False, RUNNING[:1], "Inqueue", id="the rest of it is to be made"),
    pytest.param(False, [], "Inqueue", id="none of it has been made"),
    pytest.param(False, [], "Pending", id="it is not let in"),
    pytest.param(False, members("g", "w", 2, asks={"cpu": 9}), "Inqueue", id="it does not fit"),
])
def test_groups_that_have_all_they_want_rest(rests: bool, pods: list[Object], phase: str) -> None:
    found = there(pods, phase)

    first, second = seen(found), seen(found)

    assert first == second
    assert rests is (first is second)


def a_pod_ends(there: Snapshot) -> None:
    (pod,) = members("g", "w", 1, on="a", phase="Succeeded")
    there.put_pod(read_pod(pod, dialects.group_of(pod)))


def it_is_written(there: Snapshot) -> None:
    read = dialects.read_group(gang("g", 2, phase="Running", priorityClassName="high"), VOLCANO)
    there.groups[read.key] = read


def its_class_is_changed(there: Snapshot) -> None:
    there.classes["high"] = {"metadata": {"name": "high"}, "value": 20}


def another_group_comes(there: Snapshot) -> None:
    read = dialects.read_group(gang("h", 2), VOLCANO)
    there.groups[read.key] = read


@pytest.mark.parametrize(("rests", "change"), [
    pytest.param(False, a_pod_ends, id="one of its pods ends"),
    pytest.param(False, it_is_written, id="somebody writes to it"),
    pytest.param(False, its_class_is_changed, id="it is more important now"),
    pytest.param(True, another_group_comes, id="not because of another group"),
])
def test_it_rests_until_it_changes(rests: bool, change: Callable[[Snapshot], None]) -> None:
    found = there(RUNNING, priorityClassName="high")
    before = seen(found)
    change(found)

    assert rests is (before is decided(found).verdicts[0])
