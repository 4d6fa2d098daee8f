"""Sums of quantities that keep the notation they were written in: 100Mi and 100Mi are 200Mi, not 209715200."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from trainmaster.api import quantity
from trainmaster.api.quantity import Notation


@dataclass(frozen=True, slots=True)
class Amount:
    value: Fraction
    notation: Notation = Notation.DECIMAL

    def __str__(self) -> str:
        return quantity.written(self.value, self.notation)

    def plus(self, other: "Amount") -> "Amount":
        """As Go adds: the first amount that is not zero says how the sum is written."""
        return Amount(self.value + other.value, self.notation if self.value else other.notation)

    def minus(self, other: "Amount") -> "Amount":
        return Amount(self.value - other.value, self.notation if self.value else other.notation)


Amounts: TypeAlias = dict[str, Amount]   # by name of the resource

NONE = Amount(Fraction(0))
ONE = Amount(Fraction(1))


@lru_cache(maxsize=4096)
def amount(text: str | int | float) -> Amount:
    return Amount(quantity.parse(text), quantity.notation(str(text)))


def read(texts: Mapping[str, str] | None) -> Amounts:
    return {name: amount(text) for name, text in (texts or {}).items()}


def shown(amounts: Amounts) -> dict[str, str]:
    return {name: str(each) for name, each in amounts.items()}


def plus(one: Amounts, other: Amounts) -> Amounts:
    return {**one, **{name: one[name].plus(each) if name in one else each for name, each in other.items()}}


def minus(one: Amounts, other: Amounts) -> Amounts:
    return {**one, **{name: one.get(name, NONE).minus(each) for name, each in other.items()}}


def most(one: Amounts, other: Amounts) -> Amounts:
    """The larger of the two for each resource."""
    larger = {name: each for name, each in other.items() if name not in one or one[name].value < each.value}
    return {**one, **larger}


def only(amounts: Amounts, names: Iterable[str]) -> Amounts:
    return {name: amounts[name] for name in names if name in amounts}


def listed(amounts: Amounts) -> str:
    """As Kubernetes writes them into a refusal: `cpu=1,memory=1Gi`."""
    return ",".join(f"{name}={each}" for name, each in sorted(amounts.items()))
