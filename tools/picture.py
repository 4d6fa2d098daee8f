"""The terminal picture of the README, from a real run: `python tools/picture.py`.

Runs the first example on the embedded cluster and keeps what its live view shows: a frame from the middle of the
training, and the end. Nothing in the picture is written by hand but the prompt. Once before with `trainmaster run`, so
that what it needs is installed; on a machine that is busy with other things it refuses to show a run that took minutes.
"""

import argparse
import asyncio
import io
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from trainmaster.cli import run
from trainmaster.cli.view import LiveView
from trainmaster.progress.curves import Curves
from trainmaster.sdk.client import Client
from trainmaster.sdk.errors import NoJob
from trainmaster.sdk.manifests import read
from trainmaster.sdk.reach import reach

ROOT = Path(__file__).parent.parent
EXAMPLE = "examples/tfjob/dist-mnist.yaml"
WIDTH, LINES, LAST = 96, 8, 6
MIDDLE = 50.0            # per cent
LONGEST = 60.0           # seconds


class Still(LiveView):
    """The live view, standing still: keeps what it would print, and one look at its foot."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.printed: list[Text] = []
        self.frame: list[RenderableType] = []

    def progress(self, job: str, found: Curves) -> None:
        super().progress(job, found)
        if not self.frame and (found.percent or 0) >= MIDDLE:
            self.frame = [*self.printed[:1], *self.printed[-LINES:], Text(""), self.shown()]

    def lines(self, replica: str, texts: Sequence[str]) -> None:
        for text in texts:
            super().lines(replica, [text])

    def _print(self, text: Text) -> None:
        self.printed.append(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "run.svg")
    output = parser.parse_args().output
    view = Still(Console(file=io.StringIO(), width=WIDTH, height=40))
    run.bring_up()
    with Client() as client, suppress(NoJob):      # one of an earlier time, so that it is created as for anybody
        client.delete("dist-mnist")
    began = time.monotonic()
    code = asyncio.run(run.follow(reach(None, None, os.environ), "", view,
                                  read([str(ROOT / EXAMPLE)], io.StringIO())))
    assert code == 0, "the example failed; there is nothing to show"
    assert view.frame, "the job was too fast to be seen in the middle"
    spent = time.monotonic() - began
    if spent > LONGEST:
        raise SystemExit(f"the run took {spent:.0f} s: the machine is busy, or it installed something; try again")
    picture = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    picture.print(Text("$ ", style="bold green") + Text(f"trainmaster run {EXAMPLE}", style="bold"))
    for each in view.frame:
        picture.print(each, no_wrap=isinstance(each, Text), overflow="ellipsis", crop=True)
    picture.print(Text("…", style="dim"))
    for text in view.printed[-LAST:]:
        picture.print(text, no_wrap=True, overflow="ellipsis")
    picture.save_svg(str(output), title="trainmaster run")


if __name__ == "__main__":
    main()
