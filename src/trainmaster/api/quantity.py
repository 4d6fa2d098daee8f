"""Kubernetes quantities: `500m`, `2Gi`, `1e3`. Parsed exactly, printed as Kubernetes would."""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE]?)")
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
        raise ValueError(f"'{text}' is not a quantity; write a number with an optional suffix, such as 500m, 2 or 4Gi")
    number, suffix = found.groups()
    if suffix[:1] in ("e", "E") and suffix[1:] not in ("", "i"):
        return Fraction(Decimal(number)) * Fraction(10) ** int(suffix[1:])
    return Fraction(Decimal(number)) * _SUFFIXES[suffix]


def show(value: Fraction) -> str:
    """In the decimal form that Kubernetes prints: whole numbers plain, parts of a core in thousandths."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{-(-value.numerator * 1000 // value.denominator)}m"
