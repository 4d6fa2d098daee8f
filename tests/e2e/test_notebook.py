"""The notebook of the SDK, as somebody runs it: every cell, in order, on a real cluster."""

import json
from pathlib import Path

from tests.e2e.person import Person

NOTEBOOK = Path(__file__).parents[2] / "examples" / "sdk" / "jobs.ipynb"
# As Jupyter does: one namespace for all cells, the source of each where `inspect` looks for it, and a loop that runs.
RUNS = """
import asyncio, json, linecache, sys
async def run():
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
        if cell["cell_type"] == "code":
            text, place = "".join(cell["source"]), f"<cell {number}>"
            linecache.cache[place] = (len(text), None, text.splitlines(True), place)
            exec(compile(text, place, "exec"), names)
asyncio.run(run())
"""


def test_every_cell_of_the_notebook_runs(person: Person) -> None:
    copy = person.folder("notebook", {"jobs.ipynb": NOTEBOOK.read_text(), "cells.py": RUNS})
    assert 0 == person.trainmaster("up").returncode
    shown = person.run(person.command.with_name("python"), copy / "cells.py", copy / "jobs.ipynb", timeout=240)

    assert 0 == shown.returncode, shown.stdout + shown.stderr
    lines = shown.stdout.splitlines()
    for worker in (0, 1):
        assert [f"worker-{worker} step {step}: worker {worker} of 2" for step in range(3)] == [
            line for line in lines if line.startswith(f"worker-{worker} step")]
    assert any("First to fail: worker-0" in line for line in lines), shown.stdout
    assert any("ValueError: there is no data" in line for line in lines), shown.stdout
    assert "PyTorchJob from-python Succeeded" in [line.strip() for line in lines]


def test_the_notebook_is_kept_without_its_output() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]

    assert [] == [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
