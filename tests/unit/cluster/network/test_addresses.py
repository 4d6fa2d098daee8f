"""Addresses are given in order and round."""

import pytest

from trainmaster.cluster.network.addresses import Addresses, Exhausted, next_address


@pytest.mark.parametrize(("expected", "taken", "last"), [
    pytest.param("10.88.0.2", set(), None, id="the first: after network and bridge"),
    pytest.param("10.88.0.3", {"10.88.0.2"}, None, id="one that is taken is passed over"),
    pytest.param("10.88.0.9", set(), "10.88.0.8", id="a freed address is not given again at once"),
    pytest.param("10.88.1.0", set(), "10.88.0.255", id="across a byte"),
    pytest.param("10.88.0.2", set(), "10.88.255.254", id="after the last comes the first"),
])
def test_next(expected: str, taken: set[str], last: str | None) -> None:
    assert expected == next_address(taken, last)


def test_none_is_left() -> None:
    everything = {f"10.88.{high}.{low}" for high in range(256) for low in range(256)}

    with pytest.raises(Exhausted):
        next_address(everything, None)


def test_an_address_is_somebody_s_until_it_is_freed() -> None:
    addresses = Addresses({"adopted": "10.88.0.3"})
    given = [addresses.reserve(uid) for uid in ("a", "b", "a")]
    addresses.free("a")

    assert ["10.88.0.2", "10.88.0.4", "10.88.0.2"] == given
    assert "10.88.0.5" == addresses.reserve("c")
    assert "10.88.0.3" == addresses.of("adopted")
