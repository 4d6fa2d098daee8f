"""What our operator costs a cluster that is not empty: a restart among running jobs, and work beside strangers.

    python benchmarks/operator/standing.py [--jobs N] [--strangers N]

Two goals: started again among running jobs, the operator writes nothing for any of them; and a job costs it the same
whether or not the cluster is full of objects that are not its own. Both are counts of one real kube-apiserver (its
audit log) and CPU time of one process, so a busy machine changes little. Writes standing.md.
"""

import argparse
import asyncio
import importlib
import json
import os
import shlex
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

compare: Any = importlib.import_module("compare")    # beside this file; its name is not unique in the repository
HARNESS, TOOL, TRAINMASTER = compare.HARNESS, compare.TOOL, compare.TRAINMASTER
sys.path.insert(0, str(HARNESS))    # its modules import each other

READS = ("watch", "list", "get")
MEASURED = 100          # jobs per measurement
AT_ONCE = 32
OF_A_NEW_JOB = {"create pods": 2, "create services": 2, "create events": 8}   # of two replicas, events at most
STRANGER = {"spec": {"containers": [{"name": "other", "image": "bench.invalid/other:1"}]}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500, help="running while the operator is started again")
    parser.add_argument("--strangers", type=int, default=10_000, help="objects that are not the operator's")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "standing.md")
    asked = parser.parse_args()
    if not (HARNESS / "load.py").exists():
        print(f"No load generator in {HARNESS}. Set BENCH_HARNESS to its folder.", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder:
        found = asyncio.run(measured(asked.jobs, asked.strangers, Path(folder)))
    asked.output.write_text(report(found))
    print(asked.output.read_text())
    return 0


def harness(module: str) -> Any:
    return importlib.import_module(module)


async def measured(jobs: int, strangers: int, folder: Path) -> dict[str, Any]:
    control_plane, load = harness("control_plane"), harness("load")

    definitions = folder / "definitions.yaml"
    definitions.write_text(compare.printed([TRAINMASTER, "crds"]))
    programs = Path(compare.printed([sys.executable, TOOL, "etcd", "kube-apiserver"]).strip())
    command = [str(TRAINMASTER), "operator", "--kubeconfig={kubeconfig}", "--metrics-bind-address=0",
               "--health-probe-bind-address=127.0.0.1:{port}"]
    args = argparse.Namespace(kind="pytorchjob", jobs=MEASURED, replicas=4, run="1", until="ended", timeout=900,
                              operator=shlex.join(command), kubelet_args="")
    found: dict[str, Any] = {"jobs": jobs, "strangers": strangers}
    with control_plane.ControlPlane(programs, folder / "plane") as plane:
        async with plane.client("load", AT_ONCE) as api:
            await control_plane.apply(api, [*control_plane.documents([definitions]), load.namespace("bench"),
                                            load.namespace("strangers")])
            with load.kubelet(plane, args) as kubelet:
                with load.operator(plane, args, folder) as operator:
                    await load.submit_and_wait(api, args, 1, 2, "0", "warm", "ended")
                    found["alone"] = await costs(api, plane, args, {"kubelet": kubelet, "operator": operator.pid}, "a")
                    print(f"{jobs} jobs begin to run", flush=True)
                    await load.submit_and_wait(api, args, jobs, 2, "never", "standing", "running")
                    await load.quiet(plane.audit_log)
                before = plane.audit_log.stat().st_size
                with load.operator(plane, args, folder) as operator:
                    await ready(api, load, args)
                    found["requests"] = requests(plane.audit_log, before)
                    print("strangers come", flush=True)
                    await fill(api, strangers)
                    found["among"] = await costs(api, plane, args, {"kubelet": kubelet, "operator": operator.pid}, "b")
    return found


async def ready(api: Any, load: Any, args: argparse.Namespace) -> None:
    """The operator is at work again when it has ended a new job, and done when it has asked for nothing for a while."""
    await load.submit_and_wait(api, args, 1, 2, "0", "after", "ended")
    await asyncio.sleep(5)


def requests(log: Path, skip: int) -> dict[str, int]:
    """Writes for jobs that were running before; the one made afterwards is not counted."""
    counts: dict[str, int] = {}
    with log.open("rb") as lines:
        lines.seek(skip)
        for line in lines:
            entry = json.loads(line)
            about = entry.get("objectRef") or {}
            if entry["verb"] in READS or about.get("resource") == "leases" or "after-0" in entry["requestURI"]:
                continue
            name = f"{entry['verb']} {about.get('resource')}"
            counts[name] = counts.get(name, 0) + 1
    # A creation names nothing in its address: those of the new job are known by their number.
    return {name: left for name, count in counts.items() if (left := count - OF_A_NEW_JOB.get(name, 0)) > 0}


async def costs(api: Any, plane: Any, args: argparse.Namespace, pids: dict[str, int], mark: str) -> float:
    """CPU milliseconds of the operator per job, from creation to success. The mark keeps the names apart."""
    jobs, load = harness("jobs"), harness("load")

    original = jobs.KINDS[args.kind]
    jobs.KINDS[args.kind] = lambda name, replicas, run: original(f"{name}-{mark}", replicas, run)
    pids = pids | {"load": os.getpid()} | {name: plane.pid(name) for name in plane.processes}
    try:
        return float((await load.measured(api, plane, args, pids))["cpu_ms_per_job"])
    finally:
        jobs.KINDS[args.kind] = original


async def fill(api: Any, strangers: int) -> None:
    """A third each of pods, services and config maps, none with a label of ours."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        name = {"metadata": {"name": f"stranger-{number}", "namespace": "strangers",
                             "annotations": {"bench/run": "never"}}}
        kind, body = (("pods", STRANGER), ("services", {"spec": {"ports": [{"port": 80}]}}),
                      ("configmaps", {"data": {"a": "b"}}))[number % 3]
        async with gate:
            await api.create(f"/api/v1/namespaces/strangers/{kind}", {**name, **body})

    await asyncio.gather(*(one(number) for number in range(strangers)))


def report(found: dict[str, Any]) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    writes = sum(found["requests"].values())
    part = found["among"] / found["alone"]
    verdict = ["**not met**", "met"]
    return "\n".join([
        "# The operator in a cluster that is not empty", "",
        f"{now} UTC, {os.cpu_count()} cores. A real kube-apiserver; {found['jobs']} running PyTorchJobs of two",
        f"replicas; {found['strangers']} pods, services and config maps of others; {MEASURED} jobs of four are",
        "measured.", "",
        "| goal | at most | is | |", "|---|---|---|---|",
        f"| writes for running jobs after a restart | 0 | {writes} | {verdict[not writes]} |",
        f"| CPU per job among all of them, part of alone | 1.2 | {part:.2f} | {verdict[part <= 1.2]} |",
        "", f"CPU per job: {found['alone']:.1f} ms alone, {found['among']:.1f} ms among the others.", "",
    ])


if __name__ == "__main__":
    sys.exit(main())
