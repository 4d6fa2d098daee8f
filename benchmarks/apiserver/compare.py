"""The embedded API server beside kube-apiserver and etcd: the same load on both, durable and with TLS, ratios out.

    python benchmarks/apiserver/compare.py [--repeats N] [--calm SHARE]

The two stand side by side and take turns, one load after the other, so that a slow moment of the machine meets both;
who begins changes from repeat to repeat. Of several repeats the middle ratio counts.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goals import Line, tell
from ours import RESULTS, ROOT, running

import control_plane  # type: ignore[import-not-found]  # isort: skip  of the load generator
import processes  # type: ignore[import-not-found]  # isort: skip  as above
import server as load  # type: ignore[import-not-found]  # isort: skip  as above

# Operations per second and CPU per operation of ours, compared to the peer's.
RATES = {"create": 1.7, "get": 2.0, "patch": 2.0, "update-status": 2.0, "list-500": 4.0, "delete": 2.0}
CPU = 0.4
FAN_OUT = 0.6
READY = 1.5            # seconds
LOADS = ((1, 300, 20), (8, 1000, 40), (32, 1500, 64))  # connections, operations, lists
WATCHERS, EVENTS, SECONDS = 50, 500, 15
IDLE = 10.0            # seconds before the memory of idle servers is looked at
PAUSE = 1.0            # seconds after each load: what a server has put off must not meet the other
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two, and what was measured of it."""

    target: tuple[str, str, str | None]
    pids: dict[str, int]
    figures: Figures

    def cpu(self) -> float:
        return float(load.cpu_of(self.pids))

    def memory(self) -> dict[str, float]:
        return {name: round(processes.usage(pid).rss, 1) for name, pid in self.pids.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--calm", type=float, default=1.0, help="start when others use less than this share")
    asked = parser.parse_args()
    pairs = []
    for number in range(asked.repeats):
        with ours() as mine, peer() as theirs:
            asyncio.run(measure((theirs, mine) if number % 2 else (mine, theirs), asked.calm))
        pairs.append((mine.figures, theirs.figures))
        print(json.dumps({"ours": mine.figures, "peer": theirs.figures}), flush=True)
    others = max(figures["others_share_ops"] for pair in pairs for figures in pair)
    remark = (f"At 8 connections; the middle of {asked.repeats}, side by side and in turns. Others used up to "
              f"{100 * max(others, 0):.0f} % of the machine meanwhile.")
    return 0 if tell("Beside kube-apiserver and etcd", lines(pairs), RESULTS, remark) else 1


@contextmanager
def ours() -> Iterator[Side]:
    with running() as server:
        yield Side(server.target, {"trainmaster": server.pid}, {"ready_s": round(server.ready, 2)})


@contextmanager
def peer() -> Iterator[Side]:
    tool = ROOT / "tools" / "kubernetes_binaries.py"
    programs = subprocess.run([sys.executable, tool, "etcd", "kube-apiserver"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()
    with (tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder,
          control_plane.ControlPlane(Path(programs), Path(folder), audit=False) as plane):
        yield Side((plane.url, plane.tokens["load"], str(Path(folder, "tls.crt"))),
                   {name: plane.pid(name) for name in plane.processes}, {"ready_s": round(plane.ready_after, 2)})


async def measure(sides: Sequence[Side], calm: float) -> None:
    """All loads on both, in turns."""
    await asyncio.sleep(IDLE)
    for side in sides:
        side.figures["rss_idle"] = side.memory()
        await load.fill(side.target)
    await processes.calm(calm, 300)
    busy, began = processes.machine() - known(sides), time.perf_counter()
    for connections, count, lists in LOADS:
        for side in sides:
            side.figures[f"c{connections}"] = await load.operations(side.target, side.pids, connections, count, lists)
            await asyncio.sleep(PAUSE)
    others = (processes.machine() - known(sides) - busy) / (time.perf_counter() - began) / (os.cpu_count() or 1)
    for side in sides:
        side.figures["others_share_ops"] = round(others, 3)
        side.figures["rss_after_ops"] = side.memory()
        side.figures["fanout"] = await load.fan_out(side.target, WATCHERS, EVENTS, SECONDS)
        side.figures["rss_after_fanout"] = side.memory()
        await asyncio.sleep(PAUSE)


def known(sides: Sequence[Side]) -> float:
    """Seconds of CPU that the two and we have used."""
    return time.process_time() + sum(side.cpu() for side in sides)


def lines(pairs: list[tuple[Figures, Figures]]) -> Iterator[Line]:
    for name, goal in RATES.items():
        yield Line(f"{name}, rate", ratio(pairs, "c8", name, "ops_s"), "×", goal, at_least=True,
                   note=f"{both(pairs, 'c8', name, 'ops_s', '/s')}; the generator {busy(pairs, name)} of its core")
    for name in RATES:
        yield Line(f"{name}, CPU", ratio(pairs, "c8", name, "server_cpu"), "×", CPU,
                   note=both(pairs, "c8", name, "server_cpu", "ms"))
    for name in RATES:
        yield Line(f"{name}, p99", ratio(pairs, "c8", name, "p99"), "×", note=both(pairs, "c8", name, "p99", "ms"))
    yield Line("fan-out, p99", ratio(pairs, "fanout", "delivery", "p99"), "×", FAN_OUT,
               note=both(pairs, "fanout", "delivery", "p99", "ms"))
    yield Line("fan-out, events lost", sum(ours["fanout"]["lost"] for ours, _ in pairs), "", 0)
    yield Line("fan-out, watchers dropped", sum(ours["fanout"]["closed_by_server"] for ours, _ in pairs), "", 0)
    yield Line("fan-out, create p50", ratio(pairs, "fanout", "create", "p50"), "×",
               note=both(pairs, "fanout", "create", "p50", "ms"))
    yield Line("ready", middle(ours["ready_s"] for ours, _ in pairs), "s", READY,
               note=f"{middle(peer['ready_s'] for _, peer in pairs):g} s")
    for figure in ("rss_idle", "rss_after_ops", "rss_after_fanout"):
        mine, theirs = (middle(sum(pair[side][figure].values()) for pair in pairs) for side in (0, 1))
        yield Line(figure.replace("_", " "), mine, "MB", note=f"{theirs:.0f} MB")


def middle(values: Iterator[float] | list[float]) -> float:
    return statistics.median(values)


def ratio(pairs: list[tuple[Figures, Figures]], *path: str) -> float:
    return round(middle([at(ours, path) / at(peer, path) for ours, peer in pairs]), 2)


def both(pairs: list[tuple[Figures, Figures]], *path_and_unit: str) -> str:
    *path, unit = path_and_unit
    mine, theirs = (middle([at(pair[side], tuple(path)) for pair in pairs]) for side in (0, 1))
    return f"{mine:g} to {theirs:g} {unit}"


def busy(pairs: list[tuple[Figures, Figures]], name: str) -> str:
    """How much of a core the load generator, which has one, needed: near all of it, it is what was measured."""
    mine, theirs = (middle([at(pair[side], ("c8", name, "client_cpu")) * at(pair[side], ("c8", name, "ops_s")) / 10
                            for pair in pairs]) for side in (0, 1))
    return f"{mine:.0f} to {theirs:.0f} %"


def at(figures: Figures, path: tuple[str, ...]) -> float:
    found: Any = figures
    for part in path:
        found = found[part]
    return float(found)


if __name__ == "__main__":
    sys.exit(main())
