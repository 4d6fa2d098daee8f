"""What pods ask for and nodes offer, as whole numbers: thousandths of whatever the resource counts.

A decision compares millions of amounts. Fractions are exact and fifty times slower; thousandths are exact for every
quantity that Kubernetes lets a pod ask for (it rounds finer ones up itself), so nothing is lost.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object

Amounts = Mapping[str, int]
PODS = "pods"
ONE = 1000


@lru_cache(maxsize=4096)
def thousandths(text: str | int | float) -> int:
    value = quantity.parse(text) * ONE
    return -(-value.numerator // value.denominator)


def amounts(quantities: Mapping[str, Json] | None) -> dict[str, int]:
    """A resource list. What is no quantity counts as nothing: the API refuses such, and a scheduler must not stop."""
    found = {}
    for name, text in (quantities or {}).items():
        try:
            found[name] = thousandths(text)
        except (TypeError, ValueError):
            continue
    return found


def shown(name: str, amount: int) -> str:
    """As people write it: `4` GPUs, `500m` of a core, `2Gi`."""
    if amount % ONE:
        return f"{amount}m"
    whole = amount // ONE
    if name in {"memory", "ephemeral-storage"} or name.startswith("hugepages-"):
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if whole and whole % size == 0:
                return f"{whole // size}{unit}"
            if whole >= size * 10:
                return f"{round(whole / size, 1):g}{unit}"
    return str(whole)


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    summed: dict[str, int] = {}
    for part in parts:
        add(summed, part)
    return summed


def add(into: dict[str, int], part: Amounts) -> None:
    """The same in place, for sums over thousands of pods."""
    for name, amount in part.items():
        into[name] = into.get(name, 0) + amount


def plus(one: Amounts, other: Amounts) -> dict[str, int]:
    return total((one, other))


def minus(one: Amounts, other: Amounts) -> dict[str, int]:
    return {name: one.get(name, 0) - other.get(name, 0) for name in {**one, **other}}


def lacking(wanted: Amounts, free: Amounts) -> list[str]:
    """The resources of which there is not enough, in the order in which they were asked for."""
    return [name for name, amount in wanted.items() if amount and amount > free.get(name, 0)]


def fits(wanted: Amounts, free: Amounts) -> bool:
    get = free.get
    for name, amount in wanted.items():      # noqa: SIM110  the innermost loop of every decision: no generator here
        if amount > get(name, 0) and amount:
            return False
    return True


def requests(pod: Object) -> dict[str, int]:
    """What a pod needs at once: containers and sidecars together, or its hungriest init container beside the sidecars
    that started before it; the overhead; and one place."""
    spec = pod["spec"]
    running = total(_asked(container) for container in spec.get("containers") or ())
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            sidecars = plus(sidecars, asked)
            asked = sidecars
        else:
            asked = plus(sidecars, asked)
        peak = {name: max(peak.get(name, 0), asked.get(name, 0)) for name in {**peak, **asked}}
    running = plus(running, sidecars)
    needed = {name: max(running.get(name, 0), peak.get(name, 0)) for name in {**running, **peak}}
    needed = plus(needed, amounts(spec.get("overhead")))
    return {**{name: amount for name, amount in sorted(needed.items()) if amount}, PODS: ONE}


def _asked(container: Object) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})
