"""Our scheduler beside kube-scheduler: the same kube-apiserver, the same nodes that are only objects, the same pods.

    python benchmarks/scheduler/compare.py [--pods N] [--nodes N] [--repeats N]

The pods are there before the scheduler starts; what counts is the time from its start to the last binding, and its CPU.
kube-scheduler is measured as it is shipped (50 requests a second) and without limits of its own. Both bind pod by pod;
gangs, which it does not know, stand in a row of their own. Writes results.md.
"""

import argparse
import asyncio
import contextlib
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainmaster.api.groups import definitions

ROOT = Path(__file__).parents[2]
HARNESS = Path(os.environ.get("BENCH_HARNESS") or ROOT.parent / "shared" / "bench")
TOOL = ROOT / "tools" / "kubernetes_binaries.py"
AT_ONCE = 32
GANG = 10               # members of a gang in the row of gangs
LONGEST = 600.0         # seconds for one run
PODS = "/api/v1/namespaces/bench/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/bench/podgroups"


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    command: tuple[str, ...]
    gangs: bool = False


def sides(programs: Path) -> list[Side]:
    access = ("--kubeconfig={kubeconfig}", "--authentication-kubeconfig={kubeconfig}",
              "--authorization-kubeconfig={kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1",
              "--secure-port={port}")
    theirs, ours = str(programs / "kube-scheduler"), (sys.executable, str(Path(__file__)), "--as", "{kubeconfig}")
    return [
        Side("ours", ours),
        Side("kube-scheduler, unthrottled", (theirs, *access, "--kube-api-qps=2000", "--kube-api-burst=4000")),
        Side("kube-scheduler, as shipped", (theirs, *access)),
        Side(f"ours, in gangs of {GANG}", ours, gangs=True),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results.md")
    parser.add_argument("--as", dest="kubeconfig", type=Path, help="be our scheduler with this access (used by itself)")
    asked = parser.parse_args()
    if asked.kubeconfig:
        asyncio.run(be_ours(asked.kubeconfig))
        return 0
    if not (HARNESS / "control_plane.py").exists():
        print(f"No load generator in {HARNESS}. Set BENCH_HARNESS to its folder.", file=sys.stderr)
        return 2
    sys.path.insert(0, str(HARNESS))    # its modules import each other
    built = subprocess.run([sys.executable, TOOL, "etcd", "kube-apiserver", "kube-scheduler"], text=True, check=True,
                           stdout=subprocess.PIPE)
    found: dict[str, list[tuple[float, float]]] = {}
    programs = Path(built.stdout.strip())
    for _ in range(asked.repeats):
        for side in sides(programs):
            with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder:
                took = asyncio.run(measured(side, programs, Path(folder), asked.pods, asked.nodes))
            found.setdefault(side.name, []).append(took)
            print(f"{side.name}: {took[0]:.1f} s, {took[1]:.1f} s of CPU", flush=True)
    asked.output.write_text(report(found, asked.pods, asked.nodes))
    print(asked.output.read_text())
    return 0


async def be_ours(kubeconfig: Path) -> None:
    """Default pods too, which `trainmaster scheduler` leaves to the default scheduler of a cluster."""
    from trainmaster.cluster.scheduler import loop
    from trainmaster.kube import kubeconfig as files
    from trainmaster.kube.client import Client
    from trainmaster.runtime.clock import RealClock

    client = Client(files.transport(files.load(kubeconfig)), user_agent="trainmaster-scheduler")
    await loop.run(client, RealClock())


async def measured(side: Side, programs: Path, folder: Path, pods: int, nodes: int) -> tuple[float, float]:
    """Seconds from the scheduler's start to the last binding, and seconds of its CPU."""
    control_plane, processes = harness("control_plane"), harness("processes")
    with control_plane.ControlPlane(programs, folder / "plane", audit=False) as plane:
        async with plane.client("load", AT_ONCE) as api:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
            await control_plane.apply(api, [*definitions(), namespace])
            await fill(api, side, pods, nodes)
            began = time.perf_counter()
            with running(side, plane, control_plane.free_port(), folder) as pid:
                bound = await last_binding(api, pods)
                return bound - began, processes.usage(pid).cpu


def harness(module: str) -> Any:
    return importlib.import_module(module)


async def fill(api: Any, side: Side, pods: int, nodes: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def make(path: str, thing: dict[str, Any]) -> None:
        async with gate:
            await api.create(path, thing)

    await asyncio.gather(*(make_node(api, gate, f"n{number:04}") for number in range(nodes)))
    if side.gangs:
        await asyncio.gather(*(make(GROUPS, {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": f"g{number}"},
            "spec": {"minMember": GANG}}) for number in range(pods // GANG)))
    await asyncio.gather(*(make(PODS, pod(number, gang=side.gangs)) for number in range(pods)))


async def make_node(api: Any, gate: asyncio.Semaphore, name: str) -> None:
    room = {"cpu": "256", "memory": "1Ti", "pods": "250"}
    async with gate:
        await api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        await api.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        await api.merge(f"/api/v1/nodes/{name}/status", {"status": {
            "capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}})


def pod(number: int, *, gang: bool) -> dict[str, Any]:
    asks = {"cpu": f"{1 + number % 3}", "memory": "2Gi"}
    container = {"name": "main", "image": "bench.invalid/train:1", "resources": {"requests": asks}}
    spec: dict[str, Any] = {"containers": [container], "restartPolicy": "Never"}
    annotations = {"scheduling.k8s.io/group-name": f"g{number // GANG}"} if gang else {}
    return {"metadata": {"name": f"p{number}", "annotations": annotations},
            "spec": {**spec, "schedulerName": "volcano"} if gang else spec}


async def last_binding(api: Any, pods: int) -> float:
    """The moment at which every pod has a node."""
    waiting: set[str] = set()
    seen = await api.get(PODS)
    waiting = {each["metadata"]["name"] for each in seen["items"] if not each["spec"].get("nodeName")}
    async with asyncio.timeout(LONGEST):
        async for event in api.watch(PODS, seen["metadata"]["resourceVersion"]):
            if event["object"]["spec"].get("nodeName"):
                waiting.discard(event["object"]["metadata"]["name"])
            if not waiting:
                return time.perf_counter()
    raise AssertionError(f"of {pods} pods {len(waiting)} still wait")


@contextlib.contextmanager
def running(side: Side, plane: Any, port: int, folder: Path) -> Iterator[int]:
    command = [part.format(kubeconfig=plane.kubeconfig("operator"), port=port) for part in side.command]
    with (folder / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def report(found: dict[str, list[tuple[float, float]]], pods: int, nodes: int) -> str:
    medians = {name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in found.items()}
    peer = next(figures for name, figures in medians.items() if name.endswith("unthrottled"))
    lines = [
        "# The scheduler beside kube-scheduler", "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores: {pods} pods on {nodes} nodes that are only",
        "objects, one real kube-apiserver and etcd for each run. Times are from the scheduler's start to the last",
        "binding.",
        "", "| | seconds | pods/s | seconds of CPU | time, part of the unthrottled peer's |", "|---|---|---|---|---|",
    ]
    lines += [row(name, figures, pods, peer[0]) for name, figures in medians.items()]
    return "\n".join(lines) + "\n"


def row(name: str, figures: Sequence[float], pods: int, peer: float) -> str:
    return f"| {name} | {figures[0]:.1f} | {pods / figures[0]:,.0f} | {figures[1]:.1f} | {figures[0] / peer:.2f} |"


if __name__ == "__main__":
    sys.exit(main())
