"""Runs containers in real sandboxes, as whoever it is started by, and tells how each ended. For test_sandbox.

A program of its own, because the tests want it once as root and once as an ordinary user with the system's Python.
Reads a script as JSON: steps of {"pod", "argv"} with optional "wait", "signal", "root" and other changes to the plan;
"execs" are commands to be run in the container once it has said "ready", each {"argv"} with optional "stdin", "tty";
writes a JSON list with the exit record and log of each step, and facts about the processes meanwhile.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from trainmaster.cluster.kubelet import descriptors, holder, linux, records
from trainmaster.cluster.kubelet.exec import run_in, start_in
from trainmaster.cluster.kubelet.launcher import Launcher, Process
from trainmaster.cluster.kubelet.logs import chunks
from trainmaster.cluster.kubelet.output import STDERR, STDOUT
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.shim import KILL_ALL

SIGNALS = {"TERM": signal.SIGTERM, "KILL_ALL": KILL_ALL, "KILL": signal.SIGKILL}


class Machine:
    def __init__(self, run: Path) -> None:
        self.run = run
        self.launcher = Launcher(run)
        self.pauses: dict[str, Process] = {}
        self.count = 0

    async def pause(self, name: str) -> Process:
        if name not in self.pauses:
            directory = self.run / "pods" / name
            (directory / ".shm").mkdir(parents=True)
            answer = await self.launcher.sandbox({
                "directory": str(directory), "hostname": name, "address": f"10.88.0.{len(self.pauses) + 2}",
                "prefix": 16, "gateway": holder.GATEWAY, "bridge": holder.BRIDGE, "port": f"v{name}",
                "host_network": False,
                "sysctls": {}, "memory": [{"path": str(directory / ".shm"), "size": 0}],
            })
            self.pauses[name] = Process(answer.fds[0], lambda: None)
        return self.pauses[name]

    async def step(self, wanted: dict[str, Any], rootless: bool) -> dict[str, Any]:
        pause = await self.pause(wanted["pod"])
        pod = self.run / "pods" / wanted["pod"]
        attempt = pod / "main" / str(self.count)
        self.count += 1
        attempt.mkdir(parents=True)
        hosts = "127.0.0.1 localhost\n" + "".join(f"10.88.0.{at + 2} {name}\n" for at, name in enumerate(self.pauses))
        plan: Any = {
            "attempt_directory": str(attempt), "log": str(attempt / "log"), "log_bytes": 10_000_000,
            "log_files": 5, "stdin": False, "stdin_once": False, "tty": False,
            "root": {
                "rootless": rootless, "host_network": False, "scratch": str(attempt / "root"),
                "image": "", "homes": ["/root", "/home"],
                "etc": {"hosts": hosts, "resolv.conf": "", "nsswitch.conf": "hosts: files\n"},
                "hidden": [str(self.run)], "private": [], "devices": [],
                "shm": str(pod / ".shm"), "binds": [], "privileged": False,
                "readonly": False, **wanted.get("root", {}),
            },
            "argv": wanted["argv"], "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
            "directory": "/", "user": 0, "group": 0, "groups": [], "new_privileges": False, "share_processes": False,
            "facts": {"level": 0},
            "capabilities": sorted(linux.DEFAULT_CAPABILITIES),
            "limits": {"groups": [], "watch": 0, "score": 0, "processes": 0}, **wanted.get("plan", {}),
        }
        began = time.monotonic()
        execs: list[Any] = []
        answer = await self.launcher.container(plan, pause.pidfd)
        if answer.fds:
            process = Process(answer.fds[0], lambda: None)
            if "execs" in wanted:
                await self.spoken(attempt / "log", "ready")
                execs = [await self.command(attempt, process, one) for one in wanted["execs"]]
            if "signal" in wanted:
                await self.spoken(attempt / "log", wanted.get("after", "ready"))
                process.send(SIGNALS[wanted["signal"]])
            if wanted.get("wait", True):
                await asyncio.wait_for(process.end(), 60)
        said = {stream: b"".join(chunk.data for chunk in chunks(attempt / "log") if chunk.stream == stream)
                for stream in (STDOUT, STDERR)}
        return {
            "exit": records.read(str(attempt), records.EXIT), "ms": (time.monotonic() - began) * 1000,
            "execs": execs,
            "out": said[STDOUT].decode(errors="replace").splitlines(),
            "err": said[STDERR].decode(errors="replace").splitlines(),
        }

    async def command(self, attempt: Path, shim: Process, wanted: dict[str, Any]) -> dict[str, Any]:
        """A command in the running container: how it ended and what it said."""
        try:
            if "timeout" in wanted:
                done = await run_in(self.launcher, attempt, shim.pidfd, wanted["argv"], timeout=wanted["timeout"])
                return {"code": done.code, "out": done.output.decode(errors="replace")}
            running = await start_in(self.launcher, attempt, shim.pidfd, wanted["argv"], stdin="stdin" in wanted,
                                     tty=wanted.get("tty", False))
        except Failed as failed:
            return {"failed": str(failed)}
        except TimeoutError:
            return {"failed": "timeout"}
        running.resize(*wanted.get("size", (80, 24)))
        if "stdin" in wanted:
            await descriptors.write(running.stdin, wanted["stdin"].encode())
            running.close_stdin()
        code = running.end()
        out = await whole(running.stdout)
        err = await whole(running.stderr) if running.stderr >= 0 else ""
        found = {"code": await code, "out": out, "err": err}
        running.close()
        return found

    async def spoken(self, log: Path, word: str) -> None:
        while word.encode() not in b"".join(chunk.data for chunk in chunks(log)):  # noqa: ASYNC110  the log belongs to another process
            await asyncio.sleep(0.005)


async def whole(fd: int) -> str:
    said = b""
    while piece := await descriptors.read(fd):
        said += piece
    return said.decode(errors="replace")


def inside(pid: int) -> list[int]:
    """The processes of the cluster: all that descend from the holder, and all that joined a namespace of these.

    Asked while they run: the kernel gives the names of namespaces out again.
    """
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), fields[0])
    found = {pid}
    while True:
        more = {one for one, (parent, state) in parents.items() if parent in found and state != "Z"} | found
        if more == found:
            break
        found = more
    spaces = {space for one in found for space in spaces_of(one)} - spaces_of(os.getpid())
    return sorted(found | {one for one in parents if spaces & spaces_of(one)})


def spaces_of(pid: int) -> set[str]:
    found = set()
    for kind in ("net", "pid", "mnt", "uts", "ipc"):
        try:
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
        except OSError:
            continue
    return found


async def main() -> None:
    script = json.loads(sys.stdin.read())
    machine = Machine(Path(sys.argv[1]))
    try:
        await machine.launcher.start()
    except Failed as failed:
        print(json.dumps({"impossible": str(failed)}))
        return
    found = holder.find(str(machine.run))
    assert found is not None
    os.close(found[0])
    record: Any = found[1]
    steps = [await machine.step(wanted, bool(record["rootless"])) for wanted in script]
    processes = inside(int(record["pid"]))
    for pause in machine.pauses.values():
        pause.forget()
    await machine.launcher.close()
    ended = await asyncio.to_thread(holder.end, machine.run)
    print(json.dumps({
        "steps": steps, "processes": processes, "ended": ended, "rootless": record["rootless"],
    }))


asyncio.run(main())
