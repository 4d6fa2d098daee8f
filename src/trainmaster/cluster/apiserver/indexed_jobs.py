"""Jobs whose pods have numbers: how large they may be, and what their success policies may say. Pure.

The bounds are Kubernetes': what is known of each index stands in the status of the job, which must stay an object of
bearable size.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks
from trainmaster.cluster.apiserver.causes import Cause

MOST = 100_000            # pods at once, failed indexes, and completions before the stricter bounds hold
MOST_OF_MANY = 10_000     # pods at once and failed indexes of a job with more completions than that
MOST_RULES = 20
LONGEST_INDEXES = 64 * 1024
_MANY = (f"must be less than or equal to {MOST_OF_MANY} when completions are above {MOST} and used with backoff "
         "limit per index")
_NONE = "at least one rules must be specified when the successPolicy is specified"


def rules(spec: Object, path: str) -> Iterator[Cause]:
    """Of a job with completion mode Indexed."""
    completions, parallelism, failed = (spec.get(field) for field in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        yield causes.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > MOST:
        yield causes.invalid(f"{path}.parallelism", parallelism,
                             f"must be less than or equal to {MOST} when completion mode is Indexed")
    if completions is not None and failed is not None and failed > completions:
        yield causes.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > MOST:
        yield causes.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MOST}")
    if completions is not None and completions > MOST and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            yield causes.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {MOST}")
        if parallelism is not None and parallelism > MOST_OF_MANY:
            yield causes.invalid(f"{path}.parallelism", parallelism, _MANY)
        if failed is not None and failed > MOST_OF_MANY:
            yield causes.invalid(f"{path}.maxFailedIndexes", failed, _MANY)


def success_rules(spec: Object, path: str) -> Iterator[Cause]:
    """Of the success policy of such a job."""
    found = (spec.get("successPolicy") or {}).get("rules") or []
    if not found:
        yield causes.required(f"{path}.rules", _NONE)
    if len(found) > MOST_RULES:
        yield causes.too_many(f"{path}.rules", len(found), MOST_RULES)
    for at, rule in enumerate(found):
        yield from _success_rule(rule, int(spec.get("completions") or 0), f"{path}.rules[{at}]")


def _success_rule(rule: Object, completions: int, path: str) -> Iterator[Cause]:
    indexes, count, total = rule.get("succeededIndexes"), rule.get("succeededCount"), 0
    if indexes is None and count is None:
        yield causes.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        if len(indexes) > LONGEST_INDEXES:
            yield causes.too_long(f"{path}.succeededIndexes", LONGEST_INDEXES)
        try:
            total = counted(indexes, completions)
        except ValueError as error:
            yield causes.invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    yield from checks.not_negative(rule, path, "succeededCount")
    bounds = [(completions, "specified completions")]
    if indexes is not None:
        bounds.append((total, "indexes in the specified succeededIndexes field"))
    for most, what in bounds:
        if count > most:
            yield causes.invalid(f"{path}.succeededCount", count,
                                 f"must be less than or equal to {most} (the number of {what})")


def counted(text: str, completions: int) -> int:
    """How many indexes `1,3-5` names. Raises ValueError in the words of Kubernetes."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def shared(done: str, failed: str, completions: int) -> int | None:
    """The first index that both texts name. What cannot be read names none: that is told elsewhere."""
    one, other = deque(_intervals(done, completions)), deque(_intervals(failed, completions))
    while one and other:
        if one[0][0] <= other[0][1] and other[0][0] <= one[0][1]:
            return max(one[0][0], other[0][0])
        (one if one[0][0] <= other[0][0] else other).popleft()
    return None


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        with suppress(ValueError):
            yield _interval(part, completions)


def _interval(part: str, completions: int) -> tuple[int, int]:
    limits = part.split("-")
    if len(limits) > 2:
        raise ValueError(f'the fragment "{part}" violates the requirement that an index interval can have at most '
                         "two parts separated by '-'")
    numbers = [_index(each, completions) for each in limits]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _index(text: str, completions: int) -> int:
    if not text.isascii() or not text.removeprefix("+").isdigit():
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)
