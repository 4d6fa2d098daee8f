"""Our operator beside kubeflow's Go operator: the same kube-apiserver, etcd, simulated node and load, in one run.

    python benchmarks/operator/compare.py [--list] [--peer PROGRAM] [--repeats N] [--calm SHARE] [--only NAME]...

Writes results.md with the goals beside the figures, anew after every load, so that nothing is lost when a later one
fails; what is not measured this time stays as it was. Ends with 1 if a load could not be measured or a goal is not met.
About five minutes for each repeat on a quiet machine. Without --peer the Go operator is built from its module (needs
Go, takes minutes). Everything runs in a network namespace of its own, because the peer listens on all addresses.
"""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HARNESS = Path(os.environ.get("BENCH_HARNESS") or ROOT.parent / "shared" / "bench")
TRAINMASTER = Path(sys.executable).parent / "trainmaster"
TOOL = ROOT / "tools" / "kubernetes_binaries.py"
PEER = "training-operator-1.9.4"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  the peer's own choice
TIMEOUT = 600                                           # seconds for one repeat, many times what any takes
UNTHROTTLED = ("--kube-api-qps=1000", "--kube-api-burst=2000", "--controller-threads=10")
NOT_MET = "**not met**"
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """One load, and whether the operators run as they are shipped or without limits of their own."""

    name: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure of ours, alone or as a part of the peer's, and what it may be at most."""

    load: str
    what: str
    figure: Callable[[Figures, Figures], float]
    most: float


def part(name: str) -> Callable[[Figures, Figures], float]:
    return lambda ours, peer: ours[name] / peer[name]


def last_object(ours: Figures, peer: Figures) -> float:
    """Services are made before pods here and after them there: what counts is when everything is there."""
    return float(max(ours["t_pods"], ours["t_services"]) / max(peer["t_pods"], peer["t_services"]))


def no_events(figures: Figures) -> float:
    """Requests per job that are not events."""
    counted = {name: n for name, n in figures["by_verb"].items() if not name[0].isdigit()}
    plain = sum(n for name, n in counted.items() if " events" not in name and "watch" not in name
                and "election" not in name)
    return float(plain / (figures["pods"] / figures["replicas"]))


def events(figures: Figures) -> float:
    return float(figures["by_verb"].get("create events", 0) / (figures["pods"] / figures["replicas"]))


PYTORCH = ("--kind=pytorchjob", "--replicas=4")
LOADS = (
    Load("100 PyTorchJobs x 4, as shipped", (*PYTORCH, "--jobs=100")),
    Load("300 PyTorchJobs x 4, unthrottled", (*PYTORCH, "--jobs=300"), UNTHROTTLED),
    Load("1 TFJob x 500, as shipped", ("--kind=tfjob", "--replicas=500", "--jobs=1", "--run=never", "--until=running")),
    Load("1 TFJob x 500, unthrottled",
         ("--kind=tfjob", "--replicas=500", "--jobs=1", "--run=never", "--until=running"), UNTHROTTLED),
)
GOALS = (
    Goal(LOADS[0].name, "time to all Succeeded, part of the peer's", part("t_ended"), 0.15),
    Goal(LOADS[1].name, "time to all Succeeded, part of the peer's", part("t_ended"), 1.2),
    Goal(LOADS[1].name, "requests that are not events, part of the peer's",
         lambda ours, peer: no_events(ours) / no_events(peer), 1.0),
    Goal(LOADS[1].name, "events that were not delivered, of 12 a job at least",
         lambda ours, _: max(0.0, 12 - events(ours)), 0.0),
    Goal(LOADS[1].name, "resident memory, MB", lambda ours, _: float(ours["rss_peak_operator"]), 150),
    Goal(LOADS[2].name, "time to the last pod and service, part of the peer's", last_object, 0.12),
    Goal(LOADS[3].name, "time to the last pod and service, part of the peer's", last_object, 0.9),
)
SHOWN = ("t_pods", "t_services", "t_running", "t_ended", "requests_per_job", "cpu_ms_per_job", "rss_peak_operator",
         "others_share")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only the names of the loads")
    parser.add_argument("--peer", type=Path, help="the Go operator; built if absent")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--calm", type=float, default=1.0, help="start when others use less than this share")
    parser.add_argument("--only", action="append", default=[], help="loads whose name has this in it")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results.md")
    asked = parser.parse_args()
    wanted = [load for load in LOADS if not asked.only or any(word in load.name for word in asked.only)]
    if asked.list or not wanted:
        print("\n".join(load.name for load in LOADS), file=sys.stdout if asked.list else sys.stderr)
        return 0 if asked.list else 2
    if not (HARNESS / "load.py").exists():
        print(f"No load generator in {HARNESS}. Set BENCH_HARNESS to its folder.", file=sys.stderr)
        return 2
    return compared(wanted, asked.peer or built(), asked)


def compared(wanted: Sequence[Load], peer: Path, asked: argparse.Namespace) -> int:
    """Measure one load after the other, and write down each as soon as it is there."""
    sections = sections_of(asked.output.read_text() if asked.output.exists() else "")
    good = True
    with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder:
        definitions = Path(folder) / "definitions.yaml"
        definitions.write_text(printed([TRAINMASTER, "crds"]))
        for load in wanted:
            rest = ["--repeats", str(asked.repeats), "--calm", str(asked.calm), f"--timeout={TIMEOUT}", *load.arguments]
            try:
                ours = measured(load, ours_command(load), [definitions], rest)
                theirs = measured(load, peer_command(peer, load), [definitions, SETUP], [*rest, *SECRET])
            except NoFigures as problem:
                sections[load.name] = f"**Could not be measured** at {now()}: {problem}"
                good = False
            else:
                print(json.dumps({load.name: (ours, theirs)}), flush=True)
                sections[load.name] = section(load, ours, theirs)
                good = good and NOT_MET not in sections[load.name]
            asked.output.write_text(report(sections))
    print(asked.output.read_text())
    return 0 if good else 1


class NoFigures(Exception):
    """A run ended and said nothing."""


SETUP = HARNESS / "setup" / "training-operator.yaml"
SECRET = ("--sync-secret", f"kubeflow/training-operator-webhook-cert={CERTIFICATES}")


def ours_command(load: Load) -> list[str]:
    return [str(TRAINMASTER), "operator", "--kubeconfig={kubeconfig}", "--metrics-bind-address=0",
            "--health-probe-bind-address=127.0.0.1:{port}", *load.flags]


def peer_command(peer: Path, load: Load) -> list[str]:
    return [str(peer), "--kubeconfig={kubeconfig}", "--metrics-bind-address=0",
            "--health-probe-bind-address=127.0.0.1:{port}", *load.flags]


def measured(load: Load, operator: list[str], manifests: Sequence[Path], rest: Sequence[str]) -> Figures:
    """The median of the repeats, and the counts of the last one."""
    programs = printed([sys.executable, TOOL, "etcd", "kube-apiserver"]).strip()
    command = [sys.executable, HARNESS / "load.py", "--bin", programs, "--manifests", *manifests,
               "--operator", shlex.join(operator), *rest]
    alone = ["unshare", "-n", "sh", "-c", f"ip link set lo up; exec {shlex.join(map(str, command))}"]
    try:
        lines = printed(alone).splitlines()
    except subprocess.CalledProcessError as problem:
        raise NoFigures(f"the run with {Path(operator[0]).name} ended with {problem.returncode}") from problem
    runs = [json.loads(line) for line in lines]
    runs = [run for run in runs if "by_verb" in run]
    if not runs:
        raise NoFigures(f"{Path(operator[0]).name} ended without a figure")
    # A figure that a run does not have is not one of 0: with some operators no job is ever seen to run.
    medians = {name: statistics.median(column) for name, value in runs[-1].items() if isinstance(value, int | float)
               if (column := [run[name] for run in runs if name in run])}
    replicas = next(int(word.partition("=")[2]) for word in load.arguments if word.startswith("--replicas="))
    return {**medians, "by_verb": runs[-1]["by_verb"], "replicas": replicas}


def built() -> Path:
    """The Go operator, from its module, in the cache of the tests."""
    return Path(printed([sys.executable, TOOL, PEER]).strip()) / PEER


def printed(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=cwd).stdout


def section(load: Load, ours: Figures, peer: Figures) -> str:
    """The goals of one load, and its figures."""
    lines = [f"{now()}, {os.cpu_count()} cores, Python {platform.python_version()}.", "",
             "| goal | at most | is | |", "|---|---|---|---|"]
    for goal in GOALS:
        if goal.load == load.name:
            value = goal.figure(ours, peer)
            lines.append(f"| {goal.what} | {goal.most:g} | {value:.3g} | {'met' if value <= goal.most else NOT_MET} |")
    lines += ["", "| | ours | peer | part |", "|---|---|---|---|"]
    rows = [(figure, ours[figure], peer[figure]) for figure in SHOWN if figure in ours and figure in peer]
    rows += [("requests per job, not events", no_events(ours), no_events(peer)),
             ("events per job", events(ours), events(peer))]
    for figure, mine, theirs in rows:
        lines.append(f"| {figure} | {mine:.4g} | {theirs:.4g} | {f'{mine / theirs:.2f}' if theirs else ''} |")
    return "\n".join(lines)


def sections_of(page: str) -> dict[str, str]:
    """What a page that we wrote says, by load."""
    parts = [part.partition("\n") for part in page.split("\n## ")[1:]]
    return {name.strip(): text.strip() for name, _, text in parts}


def report(sections: dict[str, str]) -> str:
    known = [load.name for load in LOADS if load.name in sections]
    head = ["# The operator beside kubeflow's", "", f"Peer: {PEER}. Medians of the repeats. `others_share` is how busy",
            "everybody else kept the machine: where it is not near 0, believe counts and CPU, not times."]
    return "\n".join([*head, *(f"\n## {name}\n\n{sections[name]}" for name in known)]) + "\n"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


if __name__ == "__main__":
    sys.exit(main())
