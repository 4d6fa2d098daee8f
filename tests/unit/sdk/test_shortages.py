"""What is said about a device that no node has."""

import pytest

from trainmaster.sdk.shortages import remedy

TOLD = "; it would not fit even if nothing else ran"


@pytest.mark.parametrize(("why", "device"), [
    pytest.param(f"the cluster is too full to begin: 1 nvidia.com/gpu short{TOLD}; number 2 in queue default",
                 "nvidia.com/gpu", id="a GPU that nobody has"),
    pytest.param(f"0 of 2 members fit: 4 example.com/card.v2 short (each needs 2){TOLD}", "example.com/card.v2",
                 id="another device"),
    pytest.param("0 of 2 members fit: 4 nvidia.com/gpu short", "", id="a GPU that others have now"),
    pytest.param(f"the cluster is too full to begin: 792 cpu short{TOLD}", "", id="more CPUs than there are"),
    pytest.param("", "", id="nothing"),
])
def test_remedy(why: str, device: str) -> None:
    assert (f"`trainmaster up --resource {device}=N`" in remedy(why)) if device else remedy(why) == ""
