"""The small history that a job carries: how far it is, and a few curves of a few points, whatever it runs for.

It lives in an annotation of the job: nothing to install, it goes where the job goes, and every client can read it. So
it must stay small: when a curve is full every second point goes, and what is left still spans the whole run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from trainmaster.api.meta import Object, metadata
from trainmaster.progress.report import Report, finite

ANNOTATION = "trainmaster.dev/progress"
MOST_METRICS, MOST_POINTS = 8, 48
LONGEST_NAME = 48
COUNTERS = frozenset({"step", "steps", "global_step", "current_step", "total_steps", "epoch", "current_epoch"})
REPORTED, TENSORBOARD, PRINTED = "report", "tensorboard", "log"
_ORDER = (PRINTED, TENSORBOARD, REPORTED)          # whom to believe, the last most
_BARS = "▁▂▃▄▅▆▇█"

Point = tuple[float, float]                        # seconds since the first report, value


class Curves(msgspec.Struct, frozen=True, omit_defaults=True):
    """As it is written; `percent` and `remaining` are the last that were said."""

    began: datetime
    updated: datetime
    source: str = PRINTED
    replica: str = ""
    percent: float | None = None
    remaining: float | None = None
    label: str = ""
    metrics: dict[str, tuple[Point, ...]] = {}


@dataclass(frozen=True, slots=True)
class Said:
    """A report, who made it, and how it came to us."""

    report: Report
    moment: datetime
    replica: str = ""
    leads: bool = True             # it is the replica whose word counts for the job
    source: str = REPORTED


_decoder = msgspec.json.Decoder(Curves)


def of(job: Object) -> Curves | None:
    """What a job carries; None if that is nothing, or nothing that we wrote."""
    text = (metadata(job).get("annotations") or {}).get(ANNOTATION)
    try:
        return _decoder.decode(text) if text else None
    except msgspec.MsgspecError:
        return None


def written(curves: Curves) -> str:
    return msgspec.json.encode(curves).decode()


def added(before: Curves | None, said: Said) -> Curves | None:
    """The history with one more report; unchanged if somebody whose word counts more has spoken already."""
    if not said.report or (before is not None and not _counts(before, said)):
        return before
    moment = said.moment.astimezone(UTC).replace(microsecond=0)
    # Another voice begins anew: lines that said `loss` and a file that says `loss` are two things.
    same = before is not None and (before.source, before.replica) == (said.source, said.replica)
    now = before if before is not None and same else Curves(before.began if before else moment, moment, said.source,
                                                            said.replica)
    report, at = said.report, (moment - now.began).total_seconds()
    curves = dict(now.metrics)
    for name, value in finite(report.metrics).items():
        short = name[:LONGEST_NAME]
        if short in curves or len(curves) < MOST_METRICS:
            curves[short] = _thinned([*curves.get(short, ()), (at, _short(value))])
    percent = now.percent if report.fraction is None else round(report.fraction * 100, 1)
    return Curves(
        now.began, moment, said.source, said.replica, percent,
        report.remaining if report.fraction is not None else now.remaining,
        report.label if report.fraction is not None else now.label, curves,
    )


def completed(before: Curves, newest: Mapping[str, float], moment: datetime) -> Curves:
    """The history with the last values that its own voice gave of what it has; unchanged if it has them."""
    known = {name: points[-1][1] for name, points in before.metrics.items() if points}
    changed = {name: value for name, value in newest.items() if name in known and known[name] != _short(value)}
    return added(before, Said(Report(metrics=changed), moment, before.replica, source=before.source)) or before


def _counts(before: Curves, said: Said) -> bool:
    if said.replica != before.replica and not said.leads:
        return False
    return _ORDER.index(said.source) >= (_ORDER.index(before.source) if before.source in _ORDER else 0)


def _thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    if len(points) <= MOST_POINTS:
        return tuple(points)
    return (*points[:-1:2], points[-1])


def _short(value: float) -> float:
    """Six digits are enough for an eye."""
    return float(f"{value:.6g}")


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """A curve in one line of text; the newest `width` steps of it, evenly spread."""
    if not values:
        return ""
    count = min(width, len(values))
    chosen = [values[round(number * (len(values) - 1) / max(1, count - 1))] for number in range(count)]
    low, high = min(chosen), max(chosen)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in chosen)


def told(curves: Curves, now: datetime) -> list[str]:
    """For people: `describe` and the end of `run` print these lines."""
    seconds = max(0, round((now - curves.updated).total_seconds()))
    how = {REPORTED: "reported by", TENSORBOARD: "from TensorBoard files of", PRINTED: "from lines of"}
    source = f"{how.get(curves.source, 'from')} {curves.replica or 'the job'}, {lasting(seconds)} ago"
    lines = [f"{short_progress(curves) or 'how far it is was not said'} ({source})"]
    shown = worth_showing(curves)
    wide = max((len(name) for name, _ in shown), default=0)
    for name, points in shown:
        values = [value for _, value in points]
        course = f"{sparkline(values)}  {values[0]:g} → " if len(values) > 1 else ""
        lines.append(f"{name:<{wide}}  {course}{values[-1]:g}")
    return lines


def worth_showing(curves: Curves) -> list[tuple[str, tuple[Point, ...]]]:
    """Losses first, and without counters, which the progress says already; only counters if there is nothing else."""
    found = [each for each in curves.metrics.items() if each[0].lower() not in COUNTERS] or list(curves.metrics.items())
    return sorted(found, key=lambda each: "loss" not in each[0].lower())


def short_progress(curves: Curves) -> str:
    """`37 %, 2 min left`, or nothing."""
    if curves.percent is None:
        return ""
    left = f", {lasting(curves.remaining)} left" if curves.remaining and curves.percent < 100 else ""
    return f"{curves.percent:.0f} %{f' of {curves.label}' if curves.label else ''}{left}"


def lasting(seconds: float) -> str:
    """A time for people: 40 s, 3 min, 2.5 h, 4 days."""
    for limit, unit, word in ((90, 1, "s"), (5400, 60, "min")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {word}"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
