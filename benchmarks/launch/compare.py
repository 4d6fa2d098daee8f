"""How long from asking to the first line, beside a bare process and other launchers; and what short commands take.

    python benchmarks/launch/compare.py [--repeats 5] [--no-peers]

Runs on the embedded cluster of TRAINMASTER_HOME, which should be idle. The peers (torchrun, torchx, Kubeflow's SDK)
are installed once into the cache of the tests, beside the environments of the frameworks. Wall clock: on a busy machine
compare the rows of one run with each other, not with another day's. The table goes to results.md beside this file.

Kubeflow's local back end makes a virtual environment for each run; that is measured as it is, with plain Python in it
(`kubeflow_local.py`), and only for one process, since it has no more.
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from trainmaster.cli import scripts
from trainmaster.cli.scripts import Options
from trainmaster.cluster.kubelet import catalog
from trainmaster.cluster.kubelet.pythons import Packages, Pythons, own_interpreter
from trainmaster.sdk.client import Client

HERE = Path(__file__).parent
HELLO = HERE / "hello.py"
OURS = str(Path(sys.executable).with_name("trainmaster"))
MANY = 16
FLOOD = 300_000          # lines
PATIENCE = 300.0
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmaster-tests" / "envs"
PYTHON = str(own_interpreter(CACHE).program)      # that of pods of the image `python`: the same on both sides
PEERS = Packages(("torchx==0.7.0", "kubeflow==0.5.0"))


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    figure: float
    unit: str = "ms"
    goal: float | None = None
    more: bool = False           # more is better

    def told(self) -> str:
        if self.goal is None:
            return f"| {self.what} | {self.figure:,.0f} {self.unit} | | |"
        met = self.figure >= self.goal if self.more else self.figure <= self.goal
        goal = f"{'≥' if self.more else '≤'} {self.goal:,.0f} {self.unit}"
        return f"| {self.what} | {self.figure:,.0f} {self.unit} | {goal} | {'met' if met else 'missed'} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="without torchrun, torchx and Kubeflow's SDK")
    asked = parser.parse_args()
    peers = None if asked.no_peers else asyncio.run(Peers.installed())
    subprocess.run([OURS, "up"], check=True, capture_output=True)
    first(ours(1), 1)                                    # the catalog's Python is found once
    few = max(3, asked.repeats // 2)
    rows = [*launches(1, asked.repeats, peers, 250.0), *launches(MANY, few, peers, 1000.0),
            *short(asked.repeats * 4), flood()]
    lines = ["| what | figure | goal | |", "|---|---:|---|---|", *(row.told() for row in rows)]
    cores = len(os.sched_getaffinity(0))
    told = (f"# Launching\n\nMiddle of {asked.repeats} runs on {cores} cores, {datetime.now(UTC):%Y-%m-%d}, load "
            f"{os.getloadavg()[0]:.1f} when it ended. `bare` is the same script as plain processes of the "
            "same Python. Kubeflow's SDK makes a virtual environment for each run.\n\n")
    (HERE / "results.md").write_text(told + "\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


@dataclass(frozen=True, slots=True)
class Peers:
    """Other launchers, each installed once."""

    torch: Path          # bin/
    others: Path

    @classmethod
    async def installed(cls) -> "Peers":
        pythons = Pythons(Path(os.environ.get("TRAINMASTER_ENVS") or CACHE))
        known = catalog.known([catalog.shipped()])
        entry = known.entry("pytorch/pytorch")
        assert entry is not None
        torch = await pythons.having(known.packages(entry), print)
        return cls(torch.program.parent, (await pythons.having(PEERS, print)).program.parent)

    @property
    def search(self) -> str:
        return f"{self.torch}:{self.others}:{os.environ['PATH']}"

    def commands(self, count: int) -> list[tuple[str, list[str]]]:
        found = [
            ("torchrun", [str(self.torch / "torchrun"), "--standalone", f"--nproc-per-node={count}", str(HELLO)]),
            ("torchx local_cwd", [str(self.others / "torchx"), "run", "-s", "local_cwd", "dist.ddp", "-j", f"1x{count}",
                                  "--script", str(HELLO)]),
        ]
        return found if count > 1 else [
            *found, ("Kubeflow SDK, local process", [str(self.others / "python"), str(HERE / "kubeflow_local.py")])]


def launches(count: int, repeats: int, peers: Peers | None, allowed: float) -> list[Row]:
    """Asking to the first line of the last of `count` replicas."""
    bare = middle(repeats, lambda: first_of_many([[PYTHON, "-u", str(HELLO)]] * count))
    submitted = [submit(count) for _ in range(repeats)]
    replicas = f"{count} replica{'s' if count > 1 else ''}"
    rows = [
        Row(f"{replicas}: bare", bare),
        Row(f"{replicas}: submit (SDK) to first line", statistics.median(each for each, _ in submitted),
            goal=bare + allowed),
        Row(f"{replicas}: `trainmaster run`, typed to first line on the screen",
            middle(repeats, lambda: first(ours(count), count))),
        Row(f"{replicas}: last exit to finish seen", statistics.median(each for _, each in submitted), goal=50.0),
    ]
    if peers is not None:
        rows += [Row(f"{replicas}: {name}", middle(min(3, repeats), partial(first, command, count, peers.search)))
                 for name, command in peers.commands(count)]
    return rows


def ours(count: int) -> list[str]:
    return [OURS, "run", str(HELLO), "--workers", str(count), "--framework", "python"]


def first(command: Sequence[str], count: int, search: str = os.environ["PATH"]) -> float:
    """Milliseconds until every replica has said its first line, wherever a launcher shows it."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=HERE,
                               stdin=subprocess.DEVNULL, env={**os.environ, "PATH": search})
    assert process.stdout is not None
    seen, spent = 0, -1.0
    for line in process.stdout:
        seen += line.count("first line")          # two processes may share a line of one pipe
        if seen >= count and spent < 0:
            spent = time.perf_counter() - began
    process.wait(PATIENCE)
    if spent < 0:
        raise SystemExit(f"{' '.join(command)} showed {seen} of {count} lines")
    return spent * 1000


def first_of_many(commands: Sequence[Sequence[str]]) -> float:
    began = time.perf_counter()
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    spent = time.perf_counter() - began
    for process in processes:
        process.communicate(timeout=PATIENCE)
    return spent * 1000


def submit(count: int) -> tuple[float, float]:
    """Milliseconds from submit to the last first line, by the script's clock, and from the last exit to knowing."""
    launch = scripts.read(HELLO, Options(framework="python", workers=count, name=f"launch-{time.time_ns() % 10**9}"))
    with Client() as client:
        client.list()                                   # the connection is there, as for anybody who works
        began = time.time()
        job = client.submit(launch.manifests())
        client.wait(job, timeout=PATIENCE)
        seen = time.time()
        said = [line.text for line in client.logs(job)]
        client.delete(job)
    begun = [float(text.split()[-1]) for text in said if text.startswith("first")]
    ended = [float(text.split()[-1]) for text in said if text.startswith("last")]
    assert len(begun) == len(ended) == count, said
    return (max(begun) - began) * 1000, (seen - max(ended)) * 1000


def short(repeats: int) -> list[Row]:
    def spent(*arguments: str) -> Callable[[], float]:
        def once() -> float:
            began = time.perf_counter()
            subprocess.run([OURS, *arguments], check=True, capture_output=True)
            return (time.perf_counter() - began) * 1000
        return once

    bare = middle(repeats, lambda: first_of_many([[sys.executable, "-c", "print()"]]))
    return [Row("python itself, of our environment: start to first line", bare),
            Row("`trainmaster get jobs`, p50", middle(repeats, spent("get", "jobs")), goal=200.0),
            Row("`trainmaster --help`, p50", middle(repeats, spent("--help")), goal=100.0)]


def flood() -> Row:
    """Lines a second through `logs -f`, of a job that prints as fast as it can."""
    program = HERE / "flood.py"
    program.write_text(f"for number in range({FLOOD}): print('line', number, 'of a log that is long enough')\n")
    try:
        subprocess.run([OURS, "run", str(program), "--name", "flood"], check=True, capture_output=True, cwd=HERE)
    finally:
        program.unlink()
    began = time.perf_counter()
    done = subprocess.run([OURS, "logs", "-f", "flood"], check=True, capture_output=True, text=True)
    spent = time.perf_counter() - began
    lines = len(re.findall(r"line \d+ of", done.stdout))
    assert lines == FLOOD, f"{lines} of {FLOOD} lines"
    return Row("`trainmaster logs -f`", lines / spent, "lines/s", goal=50_000.0, more=True)


def middle(repeats: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(repeats))


if __name__ == "__main__":
    sys.exit(main())
