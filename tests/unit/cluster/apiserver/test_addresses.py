"""Addresses and networks: what is read as what, and what is refused although it can be read."""

import pytest

from trainmaster.cluster.apiserver import addresses


@pytest.mark.parametrize(("text", "meant", "said"), [
    pytest.param("10.0.0.1", "10.0.0.1", "", id="an address"),
    pytest.param("2001:DB8::0:1", "2001:db8::1", "", id="an address with other letters and more zeros"),
    pytest.param("010.0.00.1", "10.0.0.1", "must not have leading 0s", id="leading zeros, which some read as octal"),
    pytest.param("0.0.0.0", "0.0.0.0", "", id="a zero is no leading one"),
    pytest.param("::ffff:10.0.0.1", "::ffff:a00:1", "must not be an IPv4-mapped IPv6 address", id="one in the other"),
    pytest.param("fe80::1%eth0", None, addresses.NOT_AN_ADDRESS, id="an address of one machine's network"),
    pytest.param("10.0.0", None, addresses.NOT_AN_ADDRESS, id="too short"),
    pytest.param("10.0.0.256", None, addresses.NOT_AN_ADDRESS, id="too large"),
    pytest.param("", None, addresses.NOT_AN_ADDRESS, id="nothing"),
    pytest.param("1" * 5000, None, addresses.NOT_AN_ADDRESS, id="far too long"),
    pytest.param("١.1.1.1", None, addresses.NOT_AN_ADDRESS, id="digits of another script"),
])
def test_an_address(text: str, meant: str | None, said: str) -> None:
    found = addresses.parsed(text)

    assert meant == (None if found is None else str(found))
    assert [True] * bool(said) == [cause.message.endswith(f": {said}") for cause in addresses.rules(text, "p")]


@pytest.mark.parametrize(("text", "meant", "said"), [
    pytest.param("10.0.0.0/8", "10.0.0.0/8", "", id="a network"),
    pytest.param("::/0", "::/0", "", id="everything"),
    pytest.param("10.0.0.1/8", "10.0.0.0/8", "must not have bits set beyond the prefix length", id="an address in one"),
    pytest.param("10.0.0.0/08", "10.0.0.0/8", "must not have leading 0s in IP or prefix length", id="leading zeros"),
    pytest.param("10.0.0.0/255.0.0.0", None, addresses.NOT_A_NETWORK, id="a mask"),
    pytest.param("10.0.0.0/33", None, addresses.NOT_A_NETWORK, id="too many bits"),
    pytest.param("10.0.0.0", None, addresses.NOT_A_NETWORK, id="an address"),
    pytest.param("10.0.0.0/²", None, addresses.NOT_A_NETWORK, id="a digit that is none"),
    pytest.param("10.0.0.0/" + "9" * 5000, None, addresses.NOT_A_NETWORK, id="far too long"),
])
def test_a_network(text: str, meant: str | None, said: str) -> None:
    found = addresses.network(text)

    assert meant == (None if found is None else str(found))
    assert [True] * bool(said) == [cause.message.endswith(f": {said}") for cause in addresses.network_rules(text, "p")]
