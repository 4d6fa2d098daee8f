"""The embedded API server beside kube-apiserver and etcd: the same load on both, durable and with TLS, ratios out.

    python benchmarks/apiserver/compare.py [--repeats N] [--calm SHARE]

The two take turns; of several repeats the middle ratio counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goals import Line, tell
from ours import HARNESS, RESULTS, ROOT, running

# Operations per second and CPU per operation of ours, compared to the peer's.
RATES = {"create": 1.7, "get": 2.0, "patch": 2.0, "update-status": 2.0, "list-500": 4.0, "delete": 2.0}
CPU = 0.4
FAN_OUT = 0.6
READY = 1.5            # seconds
Figures = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--calm", type=float, default=1.0, help="start when others use less than this share")
    asked = parser.parse_args()
    arguments = ["--repeats", "1", "--calm", str(asked.calm)]
    pairs = []
    for _ in range(asked.repeats):
        pairs.append((measure_ours(arguments), measure_peer(arguments)))
        print(json.dumps({"ours": pairs[-1][0], "peer": pairs[-1][1]}), flush=True)
    others = max(side["others_share_ops"] for pair in pairs for side in pair)
    remark = f"At 8 connections. Others used up to {100 * max(others, 0):.0f} % of the machine meanwhile."
    return 0 if tell("Beside kube-apiserver and etcd", lines(pairs), RESULTS, remark) else 1


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


def measure_peer(arguments: list[str]) -> Figures:
    tool = ROOT / "tools" / "kubernetes_binaries.py"
    return harness("--bin", printed([sys.executable, tool, "etcd", "kube-apiserver"]).strip(), *arguments)


def measure_ours(arguments: list[str]) -> Figures:
    with running() as server, tempfile.NamedTemporaryFile("w") as token:
        token.write(server.token)
        token.flush()
        found = harness("--server", server.url, "--token-file", token.name, "--ca", server.authority,
                        "--pids", str(server.pid), *arguments)
    return {**found, "ready_s": round(server.ready, 2)}


def harness(*arguments: str) -> Figures:
    found: Figures = json.loads(printed([sys.executable, HARNESS / "server.py", *arguments]).splitlines()[-1])
    return found


def printed(command: list[str | Path]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
