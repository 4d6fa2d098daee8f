"""What each node of a machine that is split offers. Together they offer what the machine does, and no more. Pure."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from trainmaster.api import quantity

T = TypeVar("T")
# In which parts a resource can be shared out, by the beginning of its name; everything else comes in pieces.
_PARTS = {"cpu": Fraction(1, 1000), "memory": Fraction(1024), "hugepages-": Fraction(1024),
          "ephemeral-storage": Fraction(1024)}


def split(offers: Mapping[str, str], count: int) -> list[dict[str, str]]:
    """An equal share for each; what cannot be shared out goes to the first ones."""
    if count == 1:
        return [dict(offers)]
    found: list[dict[str, str]] = [{} for _ in range(count)]
    for name, amount in offers.items():
        part = next((size for start, size in _PARTS.items() if name.startswith(start)), Fraction(1))
        for node, parts in zip(found, shares(int(quantity.parse(amount) / part), count), strict=True):
            if parts:
                node[name] = f"{parts}Ki" if part > 1 else quantity.show(parts * part)
    return found


def deal(things: Sequence[T], count: int) -> list[tuple[T, ...]]:
    """The same of things that are there one by one."""
    found, rest = [], list(things)
    for share in shares(len(things), count):
        found.append(tuple(rest[:share]))
        del rest[:share]
    return found


def shares(whole: int, count: int) -> list[int]:
    return [whole // count + (number < whole % count) for number in range(count)]
