"""Every test that kubeflow has of its operator, and others of their gang schedulers, has a counterpart here; tables of
them say which.

The whole lists of conditions stand in this module: upstream's table only asks whether a condition is present.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.spec import parity
from tests.unit.engine.stories import job_of
from tests.unit.engine.world import World

TESTS = Path(__file__).parents[1]
HERE, SPECS = Path(__file__).parent, parity.KIT.parent / "spec"


@dataclass(frozen=True, slots=True)
class Table:
    """Tests of others, in the tables of one section of the specification."""

    file: str
    spec: Path
    section: int
    column: int         # of the name of a test
    heading: str        # above those

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for rows in yaml.safe_load((HERE / self.file).read_text()).values() for row in rows]

    def listed(self) -> Iterator[str]:
        section = self.spec.read_text().partition(f"\n## {self.section}. ")[2].partition("\n## ")[0]
        for line in section.splitlines():
            cell = line.split("|")[self.column].strip() if line.startswith("|") else ""
            if cell and cell != self.heading and not cell.startswith("---"):
                yield cell


TABLES = [
    Table("upstream-tests.yaml", SPECS / "training-jobs.md", 10, 1, "test"),
    Table("upstream-scheduler-tests.yaml", SPECS / "gang-scheduling.md", 11, 3, "Test"),
]
ROWS = [row for table in TABLES for row in table.rows]
CREATED, RUNNING = ("Created", "True"), ("Running", "True")
SUCCEEDED, FAILED, RESTARTING = ("Succeeded", "True"), ("Failed", "True"), ("Restarting", "True")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["test"])
def test_it_has_a_counterpart(row: dict[str, Any]) -> None:
    assert row.keys() <= {"test", "ours", "scenarios", "differs"}
    assert row.get("ours") or row.get("differs")
    assert [] == [name for name in row.get("ours", []) if not exists(name)]


def exists(name: str) -> bool:
    """Whether there is a test of this name, and a row that begins so."""
    path, _, test = name.partition("::")
    function, _, beginning = test.partition("[")
    text = (TESTS / path).read_text()
    return re.search(rf"^(async )?def {function}\(", text, re.MULTILINE) is not None and beginning in text


MARKS: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "scheduler-marks.yaml").read_text())


@pytest.mark.parametrize("row", [row for rows in MARKS.values() for row in rows], ids=lambda row: row["mark"])
def test_a_mark_of_the_specification_of_gangs_is_seen(row: dict[str, Any]) -> None:
    assert row.get("ours") or row.get("differs")
    assert [] == [name for name in row.get("ours", []) if not exists(name)]


@pytest.mark.skipif(not SPECS.exists(), reason=f"the specification is not in {SPECS}")
@pytest.mark.parametrize(("section", "pattern"), [
    pytest.param("10. Requirements", r"^(R\d+) ", id="requirements"),
    pytest.param("13. Known bugs, surprises, wishes", r"^\| (\d+) \|", id="verdicts on what is wrong elsewhere"),
])
def test_no_mark_of_the_specification_of_gangs_is_left_out(section: str, pattern: str) -> None:
    text = (SPECS / "gang-scheduling.md").read_text().partition(f"\n## {section}")[2].partition("\n## ")[0]

    assert re.findall(pattern, text, re.MULTILINE) == [row["mark"] for row in MARKS[section]]


@pytest.mark.skipif(not parity.scenarios(), reason=f"the recordings are not in {parity.KIT}")
def test_every_scenario_that_is_named_was_recorded() -> None:
    named = {name for row in ROWS for name in row.get("scenarios", [])}

    assert set() == named - set(parity.scenarios())


@pytest.mark.skipif(not SPECS.exists(), reason=f"the specification is not in {SPECS}")
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file)
def test_no_test_of_upstream_is_left_out(table: Table) -> None:
    assert [row["test"] for row in table.rows] == list(table.listed())


@pytest.mark.parametrize(
    ("roles", "policy", "deeds", "expected"),
    [
        pytest.param({"Chief": 1, "Worker": 4, "PS": 2}, "", [("succeed", "*chief*")], [CREATED, SUCCEEDED],
                     id="the chief is done"),
        pytest.param({"Chief": 1, "Worker": 4, "PS": 2}, "", [("run", "*chief*")], [CREATED, RUNNING],
                     id="the chief runs"),
        pytest.param({"Chief": 1, "Worker": 4, "PS": 2}, "", [("fail", "*chief*")], [CREATED, FAILED],
                     id="the chief failed"),
        pytest.param({"Worker": 1}, "", [("fail", "*")], [CREATED, FAILED], id="the only worker failed"),
        pytest.param({"Worker": 1}, "", [("succeed", "*")], [CREATED, SUCCEEDED], id="the only worker is done"),
        pytest.param({"Worker": 1}, "", [("run", "*")], [CREATED, RUNNING], id="the only worker runs"),
        pytest.param({"Worker": 2, "PS": 2}, "", [("run", "*")], [CREATED, RUNNING], id="two and two run"),
        pytest.param({"Worker": 2, "PS": 2}, "", [("run", "*-ps-*"), ("succeed", "*worker*")], [CREATED, SUCCEEDED],
                     id="two servers run, both workers are done"),
        pytest.param({"Worker": 2, "PS": 2}, "", [("run", "*-ps-*"), ("fail", "*worker*")], [CREATED, FAILED],
                     id="two servers run, both workers failed"),
        pytest.param({"Worker": 2, "PS": 2}, "", [("run", "*-ps-*"), ("succeed", "*worker-1"), ("run", "*worker-0")],
                     [CREATED, RUNNING], id="worker 1 is done, worker 0 runs"),
        pytest.param({"Worker": 4, "PS": 2}, "", [("succeed", "*worker-0"), ("run", "*")], [CREATED, SUCCEEDED],
                     id="worker 0 is done, by default that is enough"),
        pytest.param({"Worker": 4, "PS": 2}, "AllWorkers", [("succeed", "*worker-0"), ("run", "*")], [CREATED, RUNNING],
                     id="worker 0 is done, all are wanted"),
        pytest.param({"Worker": 4}, "AllWorkers", [("succeed", "*")], [CREATED, SUCCEEDED],
                     id="all four are done, all are wanted"),
        pytest.param({"Worker": 4}, "AllWorkers", [("fail", "*worker-2"), ("succeed", "*worker-0"), ("run", "*")],
                     [CREATED, FAILED], id="all are wanted and one failed"),
        pytest.param({"Chief": 1, "PS": 2}, "", [("run", "*chief*"), ("fail", "*-ps-0")], [CREATED, FAILED],
                     id="the chief runs, a server failed"),
        pytest.param({"Chief": 1, "Worker": 4}, "", [("fail", "*chief*"), ("succeed", "*worker*")], [CREATED, FAILED],
                     id="the chief failed, the workers are done"),
        pytest.param({"Chief": 1, "Worker": 4}, "", [("run", "*chief*"), ("fail", "*worker*")], [CREATED, FAILED],
                     id="the chief runs, the workers failed"),
        pytest.param({"Chief": 1, "Worker": 4}, "", [("succeed", "*chief*"), ("fail", "*worker*")],
                     [CREATED, SUCCEEDED], id="the chief is done, the workers failed: only done (B-12)"),
        pytest.param({"Chief": 1, "Worker": 4}, "ExitCode", [("fail 130", "*chief*"), ("run", "*worker*")],
                     [CREATED, RESTARTING], id="the chief failed and another try may help"),
    ],
)
def test_the_whole_list_of_conditions(
    roles: dict[str, int], policy: str, deeds: list[tuple[str, str]], expected: list[tuple[str, str]]
) -> None:
    """The 19 rows of "Test Status": everything happens between two looks, so a job that ended was never told to run."""
    restart = "ExitCode" if policy == "ExitCode" else "Never"
    success = {"successPolicy": policy} if policy == "AllWorkers" else {}
    world = World(job_of("TFJob", roles={role: (count, restart) for role, count in roles.items()}, **success))
    world.settle()
    for verb, pattern in deeds:
        word, _, code = verb.partition(" ")
        getattr(world, word)(pattern, **({"code": int(code)} if code else {}))
    world.settle()

    assert expected == world.conditions()
