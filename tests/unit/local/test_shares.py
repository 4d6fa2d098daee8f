"""What the nodes of one machine offer together is what it offers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api import quantity
from trainmaster.local.shares import deal, split


@pytest.mark.parametrize(("expected", "offers", "count"), [
    pytest.param([{"cpu": "8", "memory": "16Gi"}], {"cpu": "8", "memory": "16Gi"}, 1, id="one has all, as it was said"),
    pytest.param([{"cpu": "4", "memory": "8388608Ki"}] * 2, {"cpu": "8", "memory": "16Gi"}, 2, id="halves"),
    pytest.param([{"cpu": "2667m"}, {"cpu": "2667m"}, {"cpu": "2666m"}], {"cpu": "8"}, 3, id="cores in thousandths"),
    pytest.param([{"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}], {"nvidia.com/gpu": "3"}, 2,
                 id="a device is not cut in two"),
    pytest.param([{"nvidia.com/gpu": "1"}, {}], {"nvidia.com/gpu": "1"}, 2, id="who gets none does not mention it"),
])
def test_shares(expected: list[dict[str, str]], offers: dict[str, str], count: int) -> None:
    assert expected == split(offers, count)


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_nothing_is_lost_and_nobody_is_favoured(whole: int, count: int) -> None:
    offers = {"cpu": f"{whole}m", "memory": f"{whole}Ki", "nvidia.com/gpu": str(whole)}

    for name, amount in offers.items():
        parts = [quantity.parse(node.get(name, "0")) for node in split(offers, count)]
        assert quantity.parse(amount) == sum(parts)
        assert max(parts) - min(parts) <= {"cpu": Fraction(1, 1000), "memory": Fraction(1024)}.get(name, Fraction(1))


def test_devices_go_with_what_is_counted() -> None:
    assert [("a", "b"), ("c",)] == deal("abc", 2)
    assert [len(own) for own in deal("abcde", 3)] == [int(node["gpu"]) for node in split({"gpu": "5"}, 3)]
