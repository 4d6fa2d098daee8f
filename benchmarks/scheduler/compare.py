"""Our scheduler beside kube-scheduler: the same kube-apiserver, the same nodes that are only objects, the same pods.

    python benchmarks/scheduler/compare.py [--pods N] [--nodes N] [--repeats N] [--only WORD]

The pods are there before the scheduler starts; what counts is the time from its start to the last binding, and its CPU.
kube-scheduler is measured as it is shipped (50 requests a second) and without limits of its own. Both bind pod by pod;
gangs, which it does not know, stand in a row of their own. Writes results.md and bound-pods.svg.
"""

import argparse
import asyncio
import contextlib
import importlib
import os
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
from trainmaster.testing import plots

ROOT = Path(__file__).parents[2]
HARNESS = Path(os.environ.get("BENCH_HARNESS") or ROOT.parent / "shared" / "bench")
TOOL = ROOT / "tools" / "kubernetes_binaries.py"
AT_ONCE = 32
GANG = 10               # members of a gang in the row of gangs
LONGEST = 600.0         # seconds for one run
GLANCE = 0.2            # seconds between two looks at the number of events
PODS = "/api/v1/namespaces/bench/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/bench/podgroups"


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    command: tuple[str, ...]
    gangs: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What one scheduler did."""

    bound: list[float]      # seconds from its start to each binding
    told: float             # the same to the last event
    cpu: float              # seconds of its own until then
    servers: float          # those of kube-apiserver and etcd

    @property
    def seconds(self) -> float:
        return self.bound[-1]


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
    parser.add_argument("--only", default="", help="the sides whose name ends so; nothing is written")
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
    found: dict[str, list[Run]] = {}
    programs = Path(built.stdout.strip())
    for _ in range(asked.repeats):
        for side in sides(programs):
            if not side.name.endswith(asked.only):
                continue
            with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder:
                run = asyncio.run(measured(side, programs, Path(folder), asked.pods, asked.nodes))
            found.setdefault(side.name, []).append(run)
            print(f"{side.name}: {run.seconds:.1f} s, told {run.told:.1f} s, {run.cpu:.1f} s of CPU, "
                  f"servers {run.servers:.1f} s", flush=True)
    if not asked.only:
        asked.output.write_text(report(found, asked.pods, asked.nodes))
        asked.output.with_name("bound-pods.svg").write_text(picture(found, asked.pods))
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


async def measured(side: Side, programs: Path, folder: Path, pods: int, nodes: int) -> Run:
    control_plane, processes = harness("control_plane"), harness("processes")
    with control_plane.ControlPlane(programs, folder / "plane", audit=False) as plane:
        async with plane.client("load", AT_ONCE) as api:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
            await control_plane.apply(api, [*definitions(), namespace])
            await fill(api, side, pods, nodes)

            def serving() -> float:
                return sum(float(processes.usage(plane.pid(name)).cpu) for name in ("kube-apiserver", "etcd"))

            before, began = serving(), time.perf_counter()
            with running(side, plane, control_plane.free_port(), folder) as pid:
                moments = await bindings(api, pods)
                told = await last_event(api, pods)
                cpu, servers = processes.usage(pid).cpu, serving() - before
            return Run([moment - began for moment in moments], told - began, cpu, servers)


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


async def bindings(api: Any, pods: int) -> list[float]:
    """The moments at which the pods were seen to have a node, until all have one."""
    seen = await api.get(PODS)
    waiting = {each["metadata"]["name"] for each in seen["items"] if not each["spec"].get("nodeName")}
    moments = [time.perf_counter()] * (pods - len(waiting))
    async with asyncio.timeout(LONGEST):
        async for event in api.watch(PODS, seen["metadata"]["resourceVersion"]):
            name = event["object"]["metadata"]["name"]
            if event["object"]["spec"].get("nodeName") and name in waiting:
                waiting.discard(name)
                moments.append(time.perf_counter())
            if not waiting:
                return moments
    raise AssertionError(f"of {pods} pods {len(waiting)} still wait")


async def last_event(api: Any, pods: int) -> float:
    """The moment at which there are as many events as pods."""
    async with asyncio.timeout(LONGEST):
        while True:
            seen = await api.get("/api/v1/namespaces/bench/events?limit=1")
            if len(seen["items"]) + seen["metadata"].get("remainingItemCount", 0) >= pods:
                return time.perf_counter()
            await asyncio.sleep(GLANCE)


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


def middle(runs: Sequence[Run]) -> Run:
    """The run whose time is the median."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


def peer_of(found: dict[str, list[Run]]) -> Run:
    return middle(next(runs for name, runs in found.items() if name.endswith("unthrottled")))


def report(found: dict[str, list[Run]], pods: int, nodes: int) -> str:
    peer, times = peer_of(found), max(map(len, found.values()))
    lines = [
        "# The scheduler beside kube-scheduler", "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores: {pods} pods on {nodes} nodes that are only",
        "objects, one real kube-apiserver and etcd for each run, which share the cores with the scheduler. Times are",
        f"from the scheduler's start to the last binding and to the last event, CPU is that of all. Medians of {times}",
        "runs in turns. Ours binds first and tells afterwards; the peer does both at once.",
        f"Load average at the end: {os.getloadavg()[0]:.0f}.",
        "", "| | seconds | pods/s | part of the unthrottled peer's | all told | part | CPU | the servers' |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [row(name, middle(runs), pods, peer) for name, runs in found.items()]
    return "\n".join([*lines, "", "![pods bound over time](bound-pods.svg)", ""])


def row(name: str, run: Run, pods: int, peer: Run) -> str:
    return (f"| {name} | {run.seconds:.1f} | {pods / run.seconds:,.0f} | {run.seconds / peer.seconds:.2f} | "
            f"{run.told:.1f} | {run.told / peer.told:.2f} | {run.cpu:.1f} | {run.servers:.1f} |")


def picture(found: dict[str, list[Run]], pods: int) -> str:
    """The bound pods of the median runs, up to a bit after the unthrottled peer is done."""
    curves = {name: [(moment, float(number)) for number, moment in enumerate(middle(runs).bound, 1)
                     if number % max(pods // 200, 1) == 0 or number == pods] for name, runs in found.items()}
    return plots.beside(f"{pods} pods bound over time", curves, most=pods, below="pods that have a node",
                        end=1.5 * peer_of(found).seconds)


if __name__ == "__main__":
    sys.exit(main())
