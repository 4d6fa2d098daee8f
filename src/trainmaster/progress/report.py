"""One statement of a job about itself, in our words and in those of Kubeflow Trainer's status protocol.

Transformers, and whoever else speaks that protocol, need not know that somebody else listens.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

MOST_METRICS = 256       # in one report; the protocol's own limits
LONGEST_WORD = 64


class BadReport(Exception):
    """What was sent is not a report; the message says why."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is known at one moment. None is what nobody said."""

    fraction: float | None = None              # of the whole, 0 to 1
    remaining: float | None = None             # seconds
    metrics: Mapping[str, float] = field(default_factory=dict)
    label: str = ""                            # what the fraction is of, if not of the whole: `epoch 3`

    def __bool__(self) -> bool:
        return self.fraction is not None or self.remaining is not None or bool(self.metrics)


class _Metric(msgspec.Struct, frozen=True):
    name: str
    value: str | float


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    last_updated_time: str
    progress_percentage: float | None = None
    estimated_remaining_seconds: float | None = None
    metrics: list[_Metric] = []


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    trainer_status: _Status


_decoder = msgspec.json.Decoder(_Body)


def decoded(body: bytes) -> Report:
    """A report as Kubeflow Trainer's clients send it. Raises BadReport."""
    try:
        status = _decoder.decode(body).trainer_status
    except msgspec.MsgspecError as problem:
        raise BadReport(f"the body is not a training status: {problem}") from problem
    percent, remaining = status.progress_percentage, status.estimated_remaining_seconds
    if percent is not None and not 0 <= percent <= 100:
        raise BadReport(f"trainerStatus.progressPercentage is {percent}; it must be from 0 to 100")
    if remaining is not None and not remaining >= 0:
        raise BadReport(f"trainerStatus.estimatedRemainingSeconds is {remaining}; it must not be negative")
    if len(status.metrics) > MOST_METRICS:
        raise BadReport(f"trainerStatus.metrics has {len(status.metrics)} entries; it may have {MOST_METRICS}")
    return Report(None if percent is None else percent / 100, remaining, dict(map(_metric, status.metrics)))


def encoded(report: Report, moment: str) -> bytes:
    """The same, to be sent."""
    status = _Status(
        moment, None if report.fraction is None else round(report.fraction * 100, 2), report.remaining,
        [_Metric(name[:LONGEST_WORD], f"{value:.8g}") for name, value in list(report.metrics.items())[:MOST_METRICS]],
    )
    return msgspec.json.encode(_Body(status))


def _metric(given: _Metric) -> tuple[str, float]:
    if not given.name or len(given.name) > LONGEST_WORD or len(str(given.value)) > LONGEST_WORD:
        raise BadReport(f"metric {given.name[:LONGEST_WORD]!r}: name and value must have 1 to {LONGEST_WORD} letters")
    try:
        value = float(given.value)
    except ValueError as problem:
        raise BadReport(f"metric {given.name!r}: {given.value!r} is not a number") from problem
    return given.name, value


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Those that can be drawn."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
