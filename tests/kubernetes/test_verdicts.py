"""How the report of the conformance suite is read. These tests need neither Go nor a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.conformance import judge, reported

NAME = "[sig-x] Things should work [Conformance]"


def spec(
    name: str = NAME, state: str = "passed", kind: str = "It", attempts: int = 1, message: str = ""
) -> dict[str, Any]:
    first, _, rest = name.partition(" ")
    return {
        "ContainerHierarchyTexts": [first] if rest else None,
        "LeafNodeText": rest,
        "LeafNodeType": kind,
        "State": state,
        "NumAttempts": attempts,
        "Failure": {"Message": message},
    }


@pytest.mark.parametrize(
    ("specs", "outcome", "reason"),
    [
        pytest.param([spec()], "passed", "", id="one test ran and passed"),
        pytest.param([spec(), spec("[sig-x] Other", "skipped", attempts=0)], "passed", "", id="others are left out"),
        pytest.param([spec(state="failed", message="no\n  luck")], "failed", "no luck", id="a failure says why"),
        pytest.param([spec(state="panicked", message="oh")], "failed", "oh", id="a panic is a failure"),
        pytest.param([spec(state="timedout")], "timed out", "", id="a test that was late"),
        pytest.param([spec(state="skipped", message="no nodes")], "skipped", "no nodes", id="skipped is not passed"),
        pytest.param(
            [spec(attempts=0, state="skipped")], "no such test", "0 tests of exactly this name ran",
            id="none was chosen",
        ),
        pytest.param(
            [spec("[sig-y] More " + NAME)], "no such test", "0 tests of exactly this name ran", id="a longer name ran"
        ),
        pytest.param(
            [spec("", "failed", "SynchronizedBeforeSuite", message="no service"), spec(state="skipped", attempts=0)],
            "failed",
            "SynchronizedBeforeSuite: no service",
            id="the suite could not begin",
        ),
        pytest.param(
            [spec(), spec("", "failed", "SynchronizedAfterSuite", message="left over")],
            "failed",
            "SynchronizedAfterSuite: left over",
            id="the suite could not end",
        ),
    ],
)
def test_the_report_decides(tmp_path: Path, specs: list[dict[str, Any]], outcome: str, reason: str) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps([{"SpecReports": specs}]))

    said, _, why = judge(reported(report), NAME)

    assert (outcome, reason) == (said, why)


def test_no_report_is_a_failure(tmp_path: Path) -> None:
    assert judge(reported(tmp_path / "report.json"), NAME)[0] == "failed"
