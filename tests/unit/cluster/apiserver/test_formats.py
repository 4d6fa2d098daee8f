"""Texts with a form of their own, as the Go types read them."""

import pytest

from trainmaster.cluster.apiserver import formats


@pytest.mark.parametrize(("text", "expected"), [
    *(pytest.param(text, True, id=f"a quantity: {text}")
      for text in ("0", "1", "-1", "+1", "1.5", ".5", "1.", "500m", "2Gi", "1e3", "1E-3", "1E", "100n", "1Ei")),
    *(pytest.param(text, False, id=f"not a quantity: {text!r}")
      for text in ("", "Gi", "1 Gi", "1gi", "1ee3", "one", "0x1", "1e", "١", "1" * 31, "1e100", "1\n")),
])
def test_quantities(text: str, expected: bool) -> None:
    assert expected == formats.is_quantity(text)


@pytest.mark.parametrize(("text", "coarse", "fine"), [
    pytest.param("2024-02-29T23:59:59Z", True, False, id="whole seconds"),
    pytest.param("2024-02-29T23:59:59.123456Z", True, True, id="six decimals"),
    pytest.param("2024-02-29T23:59:59.5Z", True, False, id="one decimal"),
    pytest.param("2024-02-29T23:59:59.123456+02:00", True, True, id="another zone"),
    pytest.param("2023-02-29T00:00:00Z", False, False, id="a day that year did not have"),
    pytest.param("2024-01-01T24:00:00Z", False, False, id="an hour too many"),
    pytest.param("2024-01-01T00:00:60Z", False, False, id="a leap second"),
    pytest.param("2024-01-01T00:00:00", False, False, id="no zone"),
    pytest.param("2024-01-01 00:00:00Z", False, False, id="a space"),
    pytest.param("2024-01-01t00:00:00z", False, False, id="small letters"),
    pytest.param("", False, False, id="nothing"),
])
def test_moments(text: str, coarse: bool, fine: bool) -> None:
    assert (coarse, fine) == (formats.is_time(text), formats.is_micro_time(text))


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("", True, id="no bytes"),
    pytest.param("AAEC/w==", True, id="padded"),
    pytest.param("AAEC\r\n/w==", True, id="over two lines"),
    pytest.param("AAEC/w", False, id="not padded"),
    pytest.param("AAEC_w==", False, id="the alphabet of URLs"),
    pytest.param("AAEC /w==", False, id="a space"),
    pytest.param("ž", False, id="not ASCII"),
])
def test_bytes(text: str, expected: bool) -> None:
    assert expected == formats.is_base64(text)
