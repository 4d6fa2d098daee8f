"""The decision function alone: pods per second on many nodes, the cost of one change, and how well gangs are packed.

    python benchmarks/scheduler/decide.py [--quick]

Nothing here talks to an API server, so time is CPU time, and a busy machine hardly matters. The goals stand beside the
figures; the exit code says whether all were met. A run that is not quick writes decide.md and train-load.svg.
"""

import argparse
import gc
import heapq
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.decide import decide, slices
from trainmaster.cluster.scheduler.dialects import VOLCANO
from trainmaster.cluster.scheduler.settings import Settings
from trainmaster.cluster.scheduler.snapshot import Snapshot, read_pod
from trainmaster.testing import plots
from trainmaster.testing.scheduling import gang, line, machine, member, members, single, snapshot

HERE = Path(__file__).parent
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    figure: str
    goal: str
    met: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the pods")
    quick = parser.parse_args().quick
    part = 10 if quick else 1
    load = train_load(200 // part)
    rows = [
        rate(100, 5000 // part, 1000), rate(1000, 5000 // part, 200), one_change(1000, 10_000 // part),
        one_change(1000, 10_000 // part, 8),
        longest_slice(1000, 2000 // part), longest_slice(1000, 2000 // part, 1000 // part), *load.rows,
    ]
    for row in rows:
        print(f"{row.what:<58}{row.figure:>16}   goal {row.goal:<14}{'met' if row.met else 'MISSED'}")
    if not quick:
        (HERE / "train-load.svg").write_text(load.picture)
        (HERE / "decide.md").write_text(report(rows))
    return 0 if all(row.met for row in rows) else 1


def report(rows: list[Row]) -> str:
    return "\n".join([
        "# The decision function alone", "", f"{datetime.now(UTC):%Y-%m-%d}, CPU time, one core.", "",
        "| | | goal | |", "|---|---|---|---|",
        *(f"| {row.what.strip()} | {row.figure} | {row.goal} | {'met' if row.met else 'MISSED'} |" for row in rows),
        "", "The last run: nothing is wasted as long as enough gangs wait to fill every gap; then the last ones end.",
        "", "![devices in use over time](train-load.svg)", ""])


@dataclass(frozen=True, slots=True)
class Load:
    rows: tuple[Row, ...]
    picture: str


def cluster(nodes: int) -> list[Object]:
    return [machine(f"n{number:04}", cpu=64, memory="512Gi", gpu=8) for number in range(nodes)]


def timed(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def rate(nodes: int, pods: int, goal: int) -> Row:
    there = snapshot(cluster(nodes), [
        single(f"p{number}", asks={"cpu": 1 + number % 3, "memory": "2Gi"}, restartPolicy="Never")
        for number in range(pods)])
    began = time.thread_time()
    made = decide(there, BEGIN)
    found = len(made.bindings) / (time.thread_time() - began)
    return Row(f"{pods} pods on {nodes} nodes", f"{found:,.0f} pods/s", f">= {goal:,}", found >= goal)


def one_change(nodes: int, pods: int, size: int = 0) -> Row:
    """With a `size` the pods are in gangs."""
    where: list[dict[str, Any]] = [{"asks": {"cpu": 1, "memory": "2Gi"}, "on": f"n{number % nodes:04}",
                                    "phase": "Running"} for number in range(pods)]
    if size:
        there = snapshot(cluster(nodes), [member(f"j{number // size}", "w", number % size, **more)
                                          for number, more in enumerate(where)],
                         [gang(f"j{job}", size, phase="Running") for job in range(pods // size)])
    else:
        there = snapshot(cluster(nodes), [single(f"p{number}", **more) for number, more in enumerate(where)])
    decide(there, BEGIN)
    took = []
    for number in range(20):
        pod = single(f"new{number}", asks={"cpu": 1}, restartPolicy="Never")

        def change(pod: Object = pod) -> None:
            there.put_pod(read_pod(pod, dialects.group_of(pod)))
            for binding in decide(there, BEGIN).bindings:
                there.put_pod(read_pod(pod, None, binding.node))

        took.append(timed(change))
    worst = 1000 * sorted(took)[-2]
    of_gangs = f", in gangs of {size}" if size else ""
    return Row(f"one change on {nodes} nodes with {pods} pods{of_gangs}", f"{worst:.1f} ms", "<= 20 ms", worst <= 20)


def longest_slice(nodes: int, pods: int, size: int = 8) -> Row:
    there = snapshot(cluster(nodes), [pod for job in range(pods // size)
                                      for pod in members(f"j{job}", "w", size, asks={"cpu": 1})],
                     [gang(f"j{job}", size) for job in range(pods // size)])
    deciding, longest = slices(there, BEGIN), 0.0
    gc.collect()      # what earlier measurements left
    while True:
        began = time.thread_time()
        try:
            next(deciding)
        except StopIteration:
            break
        longest = max(longest, time.thread_time() - began)
    return Row(f"longest piece of a decision, gangs of {size} on {nodes} nodes", f"{1000 * longest:.1f} ms", "<= 10 ms",
               longest <= 0.01)


def train_load(jobs: int) -> Load:
    """Gangs of 2 to 16 with room for 30 % of them, all there at the beginning; time is made up."""
    chance = Random(7)      # noqa: S311  a load, not a secret
    sizes = {f"j{number:03}": chance.randint(2, 16) for number in range(jobs)}
    takes = {name: chance.uniform(10, 120) for name in sizes}
    room = max(int(sum(sizes.values()) * 0.3), 16)
    there = snapshot([machine("n", cpu=1, gpu=room, pods=10_000)], [
        pod for name, size in sizes.items() for pod in members(name, "w", size, asks={"gpu": 1})],
        [gang(name, size, created="2026-01-01T00:00:00Z") for name, size in sizes.items()], [line()])
    ends: list[tuple[float, str]] = []
    now, partial, curve = 0.0, 0, list[tuple[float, int]]()
    raw = {pod.key.name: pod.raw for pod in there.pods.values()}
    while there.groups:
        made = decide(there, BEGIN + timedelta(seconds=now), Settings(patience=300))
        started: dict[str, int] = {}
        for binding in made.bindings:
            started[binding.pod.name.rpartition("-w-")[0]] = started.get(binding.pod.name.rpartition("-w-")[0], 0) + 1
            pod = raw[binding.pod.name]
            pod["status"]["phase"], pod["spec"]["nodeName"] = "Running", binding.node
            there.put_pod(read_pod(pod, dialects.group_of(pod)))
        for name, count in started.items():
            partial += count != sizes[name]
            heapq.heappush(ends, (now + takes[name], name))
        curve.append((now, sum(sizes[name] for _, name in ends)))
        if not ends:
            break
        now, name = heapq.heappop(ends)
        _end(there, name, sizes[name])
    bound = max(sum(sizes[name] * takes[name] for name in sizes) / room, *takes.values())
    ratio = now / bound
    rows = (Row(f"{jobs} gangs of 2 to 16 on room for 30 %: partial gangs", str(partial), "0", partial == 0),
            Row("  makespan against the lower bound", f"{ratio:.2f}", "(reported)", not there.groups))
    title = f"{jobs} gangs of 2 to 16 on {room} devices"
    return Load(rows, plots.used(title, [*curve, (now, 0)], most=room, unit="devices", bound=bound))


def _end(there: Snapshot, name: str, size: int) -> None:
    for index in range(size):
        there.drop_pod(f"uid-{name}-w-{index}")
    key = next(key for key in there.groups if key.key.name == name and key.dialect == VOLCANO.name)
    del there.groups[key]


if __name__ == "__main__":
    sys.exit(main())
