"""The history that a job carries."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.progress import curves
from trainmaster.progress.curves import PRINTED, REPORTED, TENSORBOARD, Curves, Said, worth_showing
from trainmaster.progress.report import Report

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def history(*said: Said) -> Curves | None:
    found: Curves | None = None
    for each in said:
        found = curves.added(found, each)
    return found


def said(seconds: float = 0, *, source: str = REPORTED, replica: str = "worker-0", leads: bool = True,
         fraction: float | None = None, **metrics: float) -> Said:
    return Said(Report(fraction, None, metrics), NOON + timedelta(seconds=seconds), replica, leads, source)


@pytest.mark.parametrize(("first", "then", "wins"), [
    pytest.param(said(loss=1), said(1, source=PRINTED, loss=2), 1, id="a report counts more than a line"),
    pytest.param(said(source=PRINTED, loss=1), said(1, loss=2), 2, id="whenever it comes"),
    pytest.param(said(source=TENSORBOARD, loss=1), said(1, source=PRINTED, loss=2), 1, id="a file more than a line"),
    pytest.param(said(loss=1), said(1, replica="worker-1", leads=False, loss=2), 1, id="other replicas only follow"),
    pytest.param(said(replica="worker-1", leads=False, loss=1), said(1, loss=2), 2, id="whoever leads takes over"),
    pytest.param(said(loss=1), said(1), 1, id="nothing said changes nothing"),
])
def test_whose_word_counts(first: Said, then: Said, wins: float) -> None:
    found = history(first, then)

    assert found is not None
    assert wins == found.metrics["loss"][-1][1]


def test_a_job_carries_what_was_written() -> None:
    found = history(said(fraction=0.1, loss=2.0), said(10, fraction=0.2, loss=1.0))
    assert found is not None
    job = {"metadata": {"annotations": {curves.ANNOTATION: curves.written(found)}}}

    assert found == curves.of(job)
    assert (20.0, ((0.0, 2.0), (10.0, 1.0))) == (found.percent, found.metrics["loss"])


@pytest.mark.parametrize("text", ["", "{}", "not JSON", '{"began": 1}'])
def test_what_we_did_not_write_is_nothing(text: str) -> None:
    assert curves.of({"metadata": {"annotations": {curves.ANNOTATION: text}}}) is None


@given(st.lists(st.tuples(st.floats(0, 1e7), st.floats(allow_nan=True)), min_size=1, max_size=150))
def test_it_stays_small_and_spans_the_whole_run(points: list[tuple[float, float]]) -> None:
    found = history(*(
        Said(Report(0.5, None, {"loss": 1.0, f"{number % 12}{'n' * 60}": value}), NOON + timedelta(seconds=at))
        for number, (at, value) in enumerate(sorted(points))
    ))

    assert found is not None
    assert len(curves.written(found)) < 16_384
    assert found.metrics["loss"][-1][0] == (found.updated - found.began).total_seconds()
    assert 0 == found.metrics["loss"][0][0]


@pytest.mark.parametrize(("values", "line"), [
    pytest.param([], "", id="nothing"),
    pytest.param([1.0], "▁", id="a point"),
    pytest.param([1, 1, 1], "▁▁▁", id="flat"),
    pytest.param([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█", id="up"),
    pytest.param(list(range(100)), "▁▃▆█", id="many: evenly chosen, first and last among them"),
])
def test_a_curve_in_one_line(values: list[float], line: str) -> None:
    assert line == curves.sparkline(values, 4 if len(values) == 100 else 24)


def test_what_people_are_told() -> None:
    found = history(said(fraction=0.1, loss=2.0), said(10, fraction=0.37, loss=1.0))
    assert found is not None

    assert ["37 % (reported by worker-0, 5 s ago)", "loss  █▁  2 → 1"] == curves.told(
        found, NOON + timedelta(seconds=15))


def test_one_value_is_no_course_and_nothing_is_left_of_what_is_done() -> None:
    found = history(Said(Report(1.0, 1.0, {"loss": 2.0}), NOON, "worker-0", True, REPORTED))
    assert found is not None

    assert ["100 % (reported by worker-0, 5 s ago)", "loss  2"] == curves.told(found, NOON + timedelta(seconds=5))


@pytest.mark.parametrize(("newest", "expected"), [
    pytest.param({"loss": 0.25}, {"loss": [1.0, 0.25]}, id="a newer value is added"),
    pytest.param({"loss": 1.0}, {"loss": [1.0]}, id="the one that is there is not"),
    pytest.param({"lr": 0.1}, {"loss": [1.0]}, id="nor what the history does not have"),
    pytest.param({}, {"loss": [1.0]}, id="nothing new"),
])
def test_what_was_printed_last_completes_the_history(newest: dict[str, float],
                                                     expected: dict[str, list[float]]) -> None:
    before = history(said(source=PRINTED, fraction=0.5, loss=1.0))
    assert before is not None

    after = curves.completed(before, newest, NOON + timedelta(seconds=2))

    assert expected == {name: [value for _, value in points] for name, points in after.metrics.items()}
    assert 50.0 == after.percent


def test_losses_come_first_and_counters_only_if_there_is_nothing_else() -> None:
    """As Transformers reports them."""
    point = ((0.0, 1.0),)
    found = Curves(NOON, NOON, metrics={"total_steps": point, "learning_rate": point, "eval_loss": point})

    assert ["eval_loss", "learning_rate"] == [name for name, _ in worth_showing(found)]
    assert ["step"] == [name for name, _ in worth_showing(Curves(NOON, NOON, metrics={"step": point}))]
