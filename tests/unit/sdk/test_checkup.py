"""What a cluster lacks: one that knows nothing of training, and one that is not a Kubernetes of today."""

import pytest

from trainmaster.sdk.checkup import _version, checkup
from trainmaster.sdk.session import Session
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


async def test_a_plain_cluster_lacks_the_kinds_and_what_makes_gangs() -> None:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        found = {each.what: each for each in await checkup(Session(cluster.client(), clock, "default"), "here")}

    assert [True, False, True, True, True] == [each.fine for each in found.values()]
    assert found["kinds"].told.endswith("not defined. `trainmaster crds | kubectl apply -f -` does that.")
    assert found["gangs"].told.startswith("none: jobs start pod by pod")
    assert found["cluster"].told.endswith(", here")


@pytest.mark.parametrize(("version", "fine"), [
    pytest.param("v1.36.3", True, id="of today"), pytest.param("v1.22.0-eks-1", True, id="the oldest"),
    pytest.param("v1.21.9", False, id="older"), pytest.param("", False, id="no version at all"),
])
def test_a_cluster_must_not_be_too_old(version: str, fine: bool) -> None:
    assert fine == _version(version, "here").fine
