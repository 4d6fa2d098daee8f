"""Progress from what programs print anyway: the bars of Keras, tqdm and Lightning, and plain `name value` pairs.

A fallback: a job that reports by itself knows better. A line is read together with what earlier lines said, since
Keras says the epoch once and then only counts steps. Whatever is not recognised is nothing, never an error.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainmaster.progress.report import Report

LONGEST_LINE = 2_000      # letters that are looked at, from the end: a bar that redraws itself is one long line

_COLOUR = re.compile(r"\x1b\[[\d;]*[A-Za-z]|\x08")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf"
_EPOCH = re.compile(r"\bepochs?\b[\s:=#\[(]*(\d+)\s*(?:/|of)\s*(\d+)", re.IGNORECASE)
_STEP = re.compile(r"\b(?:global[_ ])?(?:steps?|iter(?:ation)?s?|batch(?:es)?)\b[\s:=#\[(]*(\d+)\s*(?:/|of)\s*(\d+)",
                   re.IGNORECASE)
# ` 120/469 ━━━━ 2s 5ms/step - loss: 0.35`, with another bar before Keras 3
_KERAS = re.compile(r"^\s*(\d+)/(\d+)\s+(?:\[[=>.\s]*\]|[━─\s]+)\s*(?:-\s*)?(?:ETA:\s*)?((?:\d+:)*\d+s?)?")
# `Epoch 3:  45%|████▌     | 422/938 [00:05<00:06, 76.2it/s, train_loss=0.123]`
_TQDM = re.compile(r"(?:^|[\r\s])(?:(?P<what>[^|\r]*?):\s*)?(?P<percent>\d{1,3})%\|[^|]*\|\s*(?P<done>[\d.]+\w?)/"
                   r"(?P<all>[\d.]+\w?)\s*\[(?P<spent>[\d:]+)<(?P<left>[\d:?]+)")
# `Train Epoch: 1 [640/60000 (1%)]  Loss: 2.2` as PyTorch's own examples print
_TORCH_EXAMPLE = re.compile(r"\bepoch:?\s*(\d+)\s*\[(\d+)/(\d+)", re.IGNORECASE)
_NOT_TRAINING = re.compile(r"download|fetch|map|load|generat|token|extract|resolv|shard|saniti", re.IGNORECASE)
_METRIC = re.compile(
    r"(?P<name>(?:[A-Za-z_][\w./-]*[-_./]|(?:train(?:ing)?|test|val(?:id(?:ation)?)?|eval|\w+'s) )?"
    r"(?:loss|logloss|mlogloss|accuracy|acc|auc|error|merror|mae|mse|rmse|f1|perplexity|ppl|lr|learning_rate|"
    r"grad_norm|reward|top1|top5))['\"]?\s*(?:[:=]|\bis\b)?\s*"
    rf"(?P<value>{_NUMBER})(?![\w/.]|\s*(?:->|→))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Heard:
    """What lines have said so far: the epoch in which later bars count."""

    epoch: int = 0
    epochs: int = 0


def read(before: Heard, line: str) -> tuple[Heard, Report]:
    """What a line adds. A report that says nothing is false."""
    text = _COLOUR.sub("", frame(line[-LONGEST_LINE:])).rstrip()
    if not any(sign.isdecimal() for sign in text):
        return before, Report()
    heard = before
    if match := _EPOCH.search(text):
        heard = Heard(int(match[1]), int(match[2]))
    metrics = _metrics(text)
    for reader in (_tqdm, _keras, _torch_example, _counted):
        if found := reader(heard, text):
            return heard, replace(found, metrics=metrics)
    if heard != before and heard.epochs:
        return heard, Report(_share(heard.epoch - 1, heard.epochs), None, metrics)
    return heard, Report(metrics=metrics)


def frame(line: str) -> str:
    """What a terminal would show of a line in the end: bars redraw themselves after a carriage return."""
    return line.rstrip("\r").rpartition("\r")[2]


def last_metrics(texts: Iterable[str]) -> dict[str, float]:
    """The newest value of each metric in these lines."""
    heard, found = Heard(), dict[str, float]()
    for text in texts:
        heard, report = read(heard, text)
        found.update(report.metrics)
    return found


def _tqdm(heard: Heard, text: str) -> Report:
    match = _TQDM.search(text)
    if match is None or _NOT_TRAINING.search(match["what"] or ""):
        return Report()
    inner, left = int(match["percent"]) / 100, _seconds(match["left"])
    if _EPOCH.search(match["what"] or "") and heard.epochs:
        return _within(heard, inner)
    label = (match["what"] or "").strip().lower()
    return Report(min(1.0, inner), left, label=label[:32])


def _keras(heard: Heard, text: str) -> Report:
    match = _KERAS.match(text)
    if match is None or not int(match[2]):
        return Report()
    inner = _share(int(match[1]), int(match[2]))
    return _within(heard, inner) if heard.epochs else Report(inner, label="epoch")


def _torch_example(heard: Heard, text: str) -> Report:
    match = _TORCH_EXAMPLE.search(text)
    if match is None or not int(match[3]):
        return Report()
    inner = _share(int(match[2]), int(match[3]))
    return _within(heard, inner) if heard.epochs else Report(inner, label=f"epoch {match[1]}")


def _counted(heard: Heard, text: str) -> Report:
    match = _STEP.search(text)
    if match is None or not int(match[2]):
        return Report()
    inner = _share(int(match[1]), int(match[2]))
    return _within(heard, inner) if heard.epochs else Report(inner)


def _within(heard: Heard, inner: float) -> Report:
    """Epochs are counted from one."""
    return Report(min(1.0, (max(0, heard.epoch - 1) + inner) / heard.epochs))


def _share(done: int, all_: int) -> float:
    return min(1.0, max(0.0, done / all_)) if all_ else 0.0


def _metrics(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for match in _METRIC.finditer(text):
        value = float(match["value"])
        if math.isfinite(value):
            found[match["name"].strip(" '\"-").replace("'s ", " ").replace(" ", "-").lower()[:64]] = value
    return found


def _seconds(clock: str) -> float | None:
    """`01:30` and `1:00:00`; `?` is unknown."""
    if not all(part.isdecimal() for part in clock.split(":")):
        return None
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return float(total)
