"""What a person sees while a job runs."""

import io
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from trainmaster.cli.view import ForOneOfMany, LiveView, PlainView
from trainmaster.progress.curves import Curves
from trainmaster.sdk.replicas import Replica
from trainmaster.sdk.usage import Usage

NOON = datetime(2026, 1, 1, tzinfo=UTC)


def terminal(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=100, height=height, color_system=None)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def foot(view: LiveView, console: Console) -> list[str]:
    with console.capture() as shown:
        console.print(view.shown())
    return [" ".join(line.split()) for line in shown.get().splitlines()]


def replica(name: str, state: str = "Running", **more: Any) -> Replica:
    return Replica(f"a-{name}", f"uid of {name}", name, state, **more)


def test_a_line_for_each_replica_in_the_order_of_numbers() -> None:
    view = LiveView(console := terminal())
    for name in ("worker-10", "worker-2", "ps-0"):
        view.replica(replica(name))

    assert ["REPLICA STATE RESTARTS 0 s", "ps-0 Running 0", "worker-2 Running 0", "worker-10 Running 0"] == foot(
        view, console)


def test_what_is_known_gets_a_column_and_what_is_not_gets_none() -> None:
    view = LiveView(console := terminal())
    view.replica(replica("worker-0"))
    view.replica(replica("worker-1", "Error", why="exit code 3", exit_code=3, restarts=2))
    view.used("worker-0", Usage(1.5, 3 << 29))
    view.lines("worker-0", ["step 30/100 loss 0.5"])

    assert ["REPLICA STATE RESTARTS CPU MEMORY PROGRESS 0 s", "worker-0 Running 0 1.50 1.5 GB 30 %",
            "worker-1 Error 2 exit code 3"] == foot(view, console)


def test_the_job_has_a_headline_once_it_says_how_far_it_is() -> None:
    view = LiveView(console := terminal())
    curve = ((0.0, 2.0), (9.0, 0.5))
    view.progress("mnist", Curves(NOON, NOON, percent=50.0, remaining=120.0, metrics={"loss": curve}))

    assert "mnist ━━━━━━────── 50 %, 2 min left loss █▁ 0.5" == foot(view, console)[0]


def test_more_replicas_than_fit_are_counted() -> None:
    view = LiveView(console := terminal(height=12))
    for index in range(16):
        view.replica(replica(f"worker-{index}"))

    assert "and 10 more: 10 Running" == foot(view, console)[-1]


def test_output_scrolls_above_with_the_name_of_its_replica_and_only_the_last_state_of_a_bar() -> None:
    view = LiveView(console := terminal())
    view.lines("worker-0", ["hello", " 10%|█\r 20%|██\r"])

    assert ["worker-0     hello", "worker-0      20%|██"] == [line.rstrip() for line in printed(console).splitlines()]


def test_piped_output_has_only_the_last_state_of_a_bar_too(capsys: pytest.CaptureFixture[str]) -> None:
    PlainView().lines("worker-0", ["\r 10%|█\r 20%|██", "done\r"])

    assert "[worker-0]  20%|██\n[worker-0] done\n" == capsys.readouterr().out


def test_output_goes_aside_where_standard_output_is_for_the_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    PlainView(aside=True).lines("worker-0", ["hello"])

    assert ("", "[worker-0] hello\n") == capsys.readouterr()


def test_a_job_that_does_nothing_is_given_the_time_after_which_it_is_said_to_hang(
        monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    view = LiveView(console := terminal(), hangs_after=60)
    view.replica(replica("worker-0"))
    view.used("worker-0", Usage(0.0, 1 << 20))
    early = foot(view, console)
    now += 45

    assert "silent" not in early[-1]
    assert "silent and idle for 45 s; said to hang after 60 s (--hangs-after)" == foot(view, console)[-1]

    view.used("worker-0", Usage(1.0, 1 << 20))
    assert "silent" not in foot(view, console)[-1]


def test_what_is_printed_while_the_person_is_asked_comes_after() -> None:
    view = LiveView(console := terminal())
    with view.quiet():
        view.note("later")
        assert "later" not in printed(console)

    assert "later" in printed(console)


def test_plain_lines_say_who_and_of_several_jobs_which(capsys: pytest.CaptureFixture[str]) -> None:
    view = ForOneOfMany(PlainView(), "mnist")
    view.lines("worker-0", ["a", "b"])
    view.replica(replica("worker-0", restarts=1))
    view.note("done")

    assert ("[mnist/worker-0] a\n[mnist/worker-0] b\n", "· mnist/worker-0: Running restarts: 1\n· mnist: done\n"
            ) == capsys.readouterr()
