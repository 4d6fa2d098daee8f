"""Kubernetes quantities: `500m`, `2Gi`, `1e3`. Parsed exactly, printed as Kubernetes would.

Go takes any number of digits and any exponent. Here both are bounded, far beyond anything that can be counted: custom
kinds carry quantities that no schema has looked at, and `1e99999999` would keep the whole process busy for hours.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(
    r"([+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300}))([eE][+-]?\d{1,2}|[KMGTPE]i|[numkMGTPE]?)", re.ASCII)
_SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@lru_cache(maxsize=4096)
def parse(text: str | int | float) -> Fraction:
    """The exact value. Raises ValueError with what is wrong."""
    found = _FORM.fullmatch(str(text))
    if found is None:
        raise ValueError(f"'{str(text)[:100]}' is not a quantity; write a number with an optional suffix, such as "
                         "500m, 2 or 4Gi")
    number, suffix = found.groups()
    if suffix[:1] in ("e", "E") and suffix[1:] not in ("", "i"):
        return Fraction(Decimal(number)) * Fraction(10) ** int(suffix[1:])
    return Fraction(Decimal(number)) * _SUFFIXES[suffix]


def show(value: Fraction) -> str:
    """In the decimal form that Kubernetes prints: whole numbers plain, parts of a core in thousandths."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{-(-value.numerator * 1000 // value.denominator)}m"


class Notation(Enum):
    """The family of suffixes that a quantity was written with, and is written with again."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


def notation(text: str) -> Notation:
    if text.endswith("i"):
        return Notation.BINARY
    exponent = any(sign in text for sign in "eE") and not text.endswith("E")
    return Notation.EXPONENT if exponent else Notation.DECIMAL


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The text Kubernetes writes for a quantity (`0.5` is `500m`, `1024Mi` is `1Gi`); what is none stays."""
    try:
        amount = parse(text)
    except ValueError:
        return text
    return written(amount, notation(text))


def written(amount: Fraction, how: Notation) -> str:
    """An amount in the form that Kubernetes prints, with the suffixes of a notation."""
    number = amount * 10**9
    nanos = math.ceil(number) if number >= 0 else math.floor(number)     # away from zero, as Go rounds
    if how is Notation.EXPONENT:
        return _exponent(nanos)
    if nanos % 10**9:
        return _scaled(nanos, 1000, _SMALL)
    if how is Notation.BINARY and abs(amount) >= 1024:
        return _scaled(nanos // 10**9, 1024, _BINARY)
    return _scaled(nanos // 10**9, 1000, _DECIMAL)


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ("n", "u", "m")


def _scaled(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    at = 0
    while number and number % base == 0 and at < len(suffixes) - 1:
        number, at = number // base, at + 1
    return f"{number}{suffixes[at]}"


def _exponent(nanos: int) -> str:
    number, power = nanos, -9
    while number and number % 1000 == 0:
        number, power = number // 1000, power + 3
    return f"{number}e{power}" if number and power else str(number)


def total(amounts: Sequence[str]) -> str:
    """Their sum in the notation of the first that is not zero, as Kubernetes adds: `1Gi` and `1Gi` are `2Gi`."""
    values = [parse(amount) for amount in amounts]
    first = next((amount for amount, value in zip(amounts, values, strict=True) if value), "0")
    return written(sum(values, Fraction()), notation(first))


def same(one: str | int, other: str | int) -> bool:
    """Whether both say the same amount, in whatever form; what is no amount must be equal."""
    try:
        return parse(one) == parse(other)
    except ValueError:
        return one == other
