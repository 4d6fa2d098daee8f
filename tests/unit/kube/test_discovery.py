"""What a server serves, also when it cannot say everything."""

import pytest

from trainmaster.kube.discovery import served, survey
from trainmaster.kube.errors import ApiError, NotFound, Unreachable
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Answer, Plan, Refuse, nothing, on

LEASES = "/apis/coordination.k8s.io/v1"


async def plurals(cluster: Cluster, plan: Plan = nothing) -> set[str]:
    return {kind.resource.plural for kind in (await survey(cluster.client(plan=plan))).kinds}


async def test_every_kind_is_told_once_with_its_verbs() -> None:
    async with embedded(VirtualClock()) as cluster:
        found = await served(cluster.client())

    assert len(found) == len({kind.resource for kind in found})
    assert [True] == [kind.can("list", "watch", "delete") for kind in found if kind.resource.plural == "pods"]
    assert not [kind for kind in found if "/" in kind.resource.plural]


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        pytest.param(Answer(503), {"coordination.k8s.io/v1"}, id="one group is out of order: it is named"),
        pytest.param(Answer(404), set(), id="one group went away between the questions: it is not there"),
    ],
)
async def test_a_group_that_fails_hides_no_other(answer: Answer, failed: set[str]) -> None:
    async with embedded(VirtualClock()) as cluster:
        found = await survey(cluster.client(plan=on("GET", LEASES, answer)))
        whole = await plurals(cluster)

    assert failed == set(found.failed)
    assert {"leases"} == whole - {kind.resource.plural for kind in found.kinds}


async def test_a_server_that_says_nothing_is_no_empty_server() -> None:
    async with embedded(VirtualClock()) as cluster:
        with pytest.raises(Unreachable):
            await survey(cluster.client(plan=on("GET", "/apis", Refuse())))


async def test_who_needs_all_of_it_is_told_of_a_failure() -> None:
    async with embedded(VirtualClock()) as cluster:
        with pytest.raises(ApiError) as caught:
            await served(cluster.client(plan=on("GET", LEASES, Answer(503))))

    assert not isinstance(caught.value, NotFound)
