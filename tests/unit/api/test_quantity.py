"""Quantities are exact, and what is none costs nothing."""

from fractions import Fraction

import pytest

from trainmaster.api import quantity


@pytest.mark.parametrize(("text", "value"), [
    pytest.param("500m", Fraction(1, 2), id="half a core"),
    pytest.param("2Gi", Fraction(2 * 2**30), id="powers of two"),
    pytest.param("1E", Fraction(10**18), id="a suffix that looks like an exponent"),
    pytest.param("1e99", Fraction(10**99), id="the largest exponent"),
    pytest.param(".5", Fraction(1, 2), id="nothing before the point"),
    pytest.param("5.", Fraction(5), id="nothing behind the point"),
    pytest.param(3, Fraction(3), id="a number of JSON"),
])
def test_what_a_quantity_says(text: str | int, value: Fraction) -> None:
    assert value == quantity.parse(text)


@pytest.mark.parametrize("text", [
    pytest.param("", id="nothing"),
    pytest.param("two", id="a word"),
    pytest.param("\u0662", id="a digit of another script"),
    pytest.param("1e100", id="an exponent that nobody can mean"),
    pytest.param("1e999999999", id="one that would take hours to work out"),
    pytest.param("1e-999999999", id="or as long in the other direction"),
    pytest.param("9" * 100_000, id="too many digits"),
])
def test_what_is_no_quantity_is_said_at_once_and_left_as_it_is(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as said:
        quantity.parse(text)

    assert len(str(said.value)) < 250
    assert text == quantity.canonical(text)
