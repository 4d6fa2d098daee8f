"""What a pod costs on this machine, beside the same command as a plain process: time, memory and CPU.

    python benchmarks/node/compare.py [--pods 100] [--repeats 20] [--idle 40] [--output FILE]

Starts a cluster of its own in a temporary home and takes it down again. Times are wall clock, told by the clock that
the command in the pod prints: they need a quiet machine. CPU time and memory suffer less from others. The table goes to
results.md beside this file.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainmaster.api.core import CONFIG_MAPS, PODS
from trainmaster.kube import kubeconfig
from trainmaster.kube.client import Client

HERE = Path(__file__).parent
OURS = str(Path(sys.executable).with_name("trainmaster"))
SAYS_WHEN = "date +%s.%N"
PATIENCE = 300.0
AT_ONCE = 8
GONE = "Gone"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    figure: float
    unit: str
    goal: float | None = None
    digits: int = 0

    def told(self) -> str:
        figure = f"{self.figure:,.{self.digits}f} {self.unit}"
        if self.goal is None:
            return f"| {self.what} | {figure} | | |"
        met = "met" if self.figure <= self.goal else "missed"
        return f"| {self.what} | {figure} | ≤ {self.goal:g} {self.unit} | {met} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=100, help="that are started at once, and then idle")
    parser.add_argument("--repeats", type=int, default=20, help="of a single pod")
    parser.add_argument("--idle", type=float, default=40.0, help="seconds for which an idle cluster is watched")
    parser.add_argument("--output", type=Path, default=HERE / "results.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder, cluster(Path(folder)):
        rows = asyncio.run(measured(Path(folder), asked.pods, asked.repeats, asked.idle))
    lines = ["| what | figure | goal | |", "|---|---:|---|---|", *(row.told() for row in rows)]
    cores = len(os.sched_getaffinity(0))
    told = (f"# Pods on one machine\n\n{cores} cores, {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f} when "
            f"it ended. Middle of {asked.repeats} single pods; `bare` is the same command as a plain process. *Our own "
            "processes* are the control plane, the agent, its helper, the holder, and a pause and a shim per pod.\n\n")
    asked.output.write_text(told + "\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


@contextlib.contextmanager
def cluster(home: Path) -> Iterator[None]:
    environment = {**os.environ, "TRAINMASTER_HOME": str(home)}
    subprocess.run([OURS, "up"], check=True, capture_output=True, env=environment, timeout=PATIENCE)
    try:
        yield
    finally:
        subprocess.run([OURS, "down"], check=True, capture_output=True, env=environment, timeout=PATIENCE)


async def measured(home: Path, count: int, repeats: int, idle: float) -> list[Row]:
    client = Client(kubeconfig.transport(kubeconfig.load(home / "kubeconfig")))
    try:
        for number in range(3):                     # what is found out once is found out
            await one(client, f"first-{number}")
        bare = statistics.median(plain() for _ in range(repeats))
        single = [await one(client, f"single-{number}") for number in range(repeats)]
        fresh = [await refreshed(client, f"fresh-{number}") for number in range(repeats)]
        resting = await asyncio.to_thread(used_while_idle, home, idle)
        before, cpu = memory(home), cpu_seconds(home)
        took = await many(client, count)
        await asyncio.sleep(2.0)                    # until the last event is written
        spent = cpu_seconds(home) - cpu
        after, parts = memory(home), memory_by_part(home)
        standing = await asyncio.to_thread(used_while_idle, home, idle)
        gone = await deleted(client)
    finally:
        await client.close()
    each = [parts.get(name, 0) / count / MEGABYTE for name in ("tm-pause", "tm-shim")]
    return [
        Row("bare: start to first line", bare, "ms", digits=1),
        Row("`create pod` to first line, more than bare", statistics.median(begun for begun, _ in single) - bare,
            "ms", 150),
        Row("last line to terminal phase seen in a watch", statistics.median(ended for _, ended in single), "ms", 50),
        Row("a ConfigMap is changed until a pod reads it in its volume", statistics.median(fresh), "ms", 1000),
        Row(f"{count} pods: first `create` to the last one's first line", took, "s", 8, 2),
        Row("CPU time of our own processes per pod, from `create` to its last event", spent * 1000 / count, "ms"),
        Row(f"memory (PSS) that {count} idle pods add to our own processes, per pod",
            (after - before) / count / MEGABYTE, "MB", 12, 2),
        Row("of that in its pause and its shim", sum(each), "MB", digits=2),
        Row("memory (PSS) of our own processes without pods", before / MEGABYTE, "MB"),
        Row(f"idle cluster, CPU over {idle:.0f} s", resting, "% of a core", 0.5, 2),
        Row(f"the same with {count} idle pods", standing, "% of a core", digits=2),
        Row(f"{count} pods: deleted with a grace of 0 until none is there", gone, "s", digits=2),
    ]


def plain() -> float:
    began = time.time()
    done = subprocess.run(["sh", "-c", SAYS_WHEN], check=True, capture_output=True, text=True)
    return (float(done.stdout) - began) * 1000


def pod(name: str, script: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [
            {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}]}}


async def one(client: Client, name: str) -> tuple[float, float]:
    """Milliseconds from asking to the first line, and from the last line to the watch that tells of the end."""
    async with contextlib.aclosing(changes(client)) as seen:
        await anext(seen)
        began = time.time()
        await client.create(PODS, pod(name, SAYS_WHEN))
        async for phase, known in seen:
            if known == name and phase in ("Succeeded", "Failed"):
                break
        known_at = time.time()
    said = await first_line(client, name)
    await client.delete(PODS, name, "default", grace=0)
    return (said - began) * 1000, (known_at - said) * 1000


async def refreshed(client: Client, name: str) -> float:
    """Milliseconds from a change of a ConfigMap until a pod that looks all the time sees it in a file."""
    about = {"name": name, "namespace": "default"}
    asked = pod(name, f"until grep -q new /v/word; do sleep 0.005; done; {SAYS_WHEN}")
    asked["spec"]["volumes"] = [{"name": "v", "configMap": {"name": name}}]
    asked["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    await client.create(CONFIG_MAPS, {"metadata": about, "data": {"word": "old"}})
    async with asyncio.timeout(PATIENCE), contextlib.aclosing(changes(client)) as seen:
        await anext(seen)
        await client.create(PODS, asked)
        began = 0.0
        async for phase, known in seen:
            if known == name and phase == "Running" and not began:
                began = time.time()
                await client.patch(CONFIG_MAPS, name, "default", {"data": {"word": "new"}})
            elif known == name and phase in ("Succeeded", "Failed"):
                break
    said = await first_line(client, name)
    await client.delete(PODS, name, "default", grace=0)
    return (said - began) * 1000


async def changes(client: Client) -> AsyncGenerator[tuple[str, str], None]:
    """The phase and name of pods as they change; one empty pair when it is about to begin."""
    page = await client.list(PODS, "default")
    async with contextlib.aclosing(client.watch(PODS, "default", revision=page.revision)) as events:
        yield "", ""
        async for event in events:
            if event.type != "BOOKMARK":
                phase = GONE if event.type == "DELETED" else str(event.object["status"].get("phase"))
                yield phase, str(event.object["metadata"]["name"])


async def first_line(client: Client, name: str) -> float:
    stream = await client.stream(f"/api/v1/namespaces/default/pods/{name}/log")
    try:
        return float(b"".join([piece async for piece in stream.chunks()]).splitlines()[0])
    finally:
        await stream.close()


async def many(client: Client, count: int) -> float:
    """Seconds until the last of many has said its first line."""
    names = [f"many-{number}" for number in range(count)]
    gate, running = asyncio.Semaphore(AT_ONCE), set[str]()

    async def create(name: str) -> None:
        async with gate:
            await client.create(PODS, pod(name, f"{SAYS_WHEN}; exec sleep 100000"))

    async with asyncio.timeout(PATIENCE), contextlib.aclosing(changes(client)) as seen:
        await anext(seen)
        began = time.time()
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(create(name))
        async for phase, name in seen:
            running |= {name} if phase == "Running" else set()
            if running >= set(names):
                break
    return max([await first_line(client, name) for name in names]) - began


async def deleted(client: Client) -> float:
    began = time.monotonic()
    names = [str(known["metadata"]["name"]) for known in (await client.list(PODS, "default")).items]
    gate = asyncio.Semaphore(AT_ONCE)

    async def delete(name: str) -> None:
        async with gate:
            await client.delete(PODS, name, "default", grace=0)

    async with asyncio.timeout(PATIENCE), contextlib.aclosing(changes(client)) as seen:
        await anext(seen)
        await asyncio.gather(*map(delete, names))
        left = set(names)
        async for phase, name in seen:
            left -= {name} if phase == GONE else set()
            if not left:
                break
    return time.monotonic() - began


def own_processes(home: Path) -> Iterator[Path]:
    """The processes of a home. The pods' own programs are not among them, but their pause and shim are: forked from
    the helper, they keep its command line."""
    named = f"TRAINMASTER_HOME={home}\0".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().split(b"\0")
                part = b"trainmaster.local.control_plane" in command or b"trainmaster.local.node" in command
                if str(home / "run").encode() in command or (part and named in (entry / "environ").read_bytes()):
                    yield entry


def memory_by_part(home: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for process in own_processes(home):
        with contextlib.suppress(OSError):
            name = (process / "comm").read_text().strip()
            lines = (process / "smaps_rollup").read_text().splitlines()
            found[name] = found.get(name, 0) + sum(int(line.split()[1]) for line in lines
                                                   if line.startswith("Pss:")) * 1024
    return found


def memory(home: Path) -> int:
    return sum(memory_by_part(home).values())


def cpu_seconds(home: Path) -> float:
    spent = 0.0
    for process in own_processes(home):
        with contextlib.suppress(OSError):
            spent += sum(int((task / "schedstat").read_text().split()[0]) for task in (process / "task").iterdir())
    return spent / 1e9


def used_while_idle(home: Path, seconds: float) -> float:
    time.sleep(5.0)                                 # what was begun before is done
    before = cpu_seconds(home)
    time.sleep(seconds)
    return (cpu_seconds(home) - before) / seconds * 100


if __name__ == "__main__":
    sys.exit(main())
