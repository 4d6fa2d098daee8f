"""Node agents to be killed, forked from one process that has imported everything. For test_node_kills.

Orders are lines of JSON on the input: {"base", "server", "token", "ca", "die_at"} starts an agent, {"kill": pid} kills
one. Answers are lines on the output: "started PID", and when an agent has ended "ended PID STATUS STEPS".

A step is anything by which the agent changes the world: a file made, moved or deleted, a request to the helper, a
request to the API before it is sent and after its answer. At step `die_at` the agent kills itself with SIGKILL, so a
clean run tells how many places there are to die at, and nothing in the product knows of it.
"""

import asyncio
import json
import os
import selectors
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainmaster.cluster.kubelet.images import Image
from trainmaster.cluster.kubelet.main import NodeSettings, run
from trainmaster.kube.client import Client
from trainmaster.kube.http import HttpTransport
from trainmaster.kube.transport import Request, Response, Stream
from trainmaster.runtime.clock import RealClock

CHANGES = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.symlink", "os.chmod", "socket.sendmsg"}


class Steps:
    """Counts, and ends the process at the given one. The count is on disk, where it survives."""

    def __init__(self, die_at: int | None, count: Path) -> None:
        self._left = die_at or -1
        self._count = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def watch(self) -> None:
        sys.addaudithook(self._heard)

    def step(self) -> None:
        os.write(self._count, b".")
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGES or writes:
            self.step()


class Counted:
    """A transport whose requests are steps."""

    def __init__(self, inner: HttpTransport, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    async def send(self, request: Request) -> Response:
        self._steps.step()
        answer = await self._inner.send(request)
        self._steps.step()
        return answer

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def close(self) -> None:
        await self._inner.close()


class Programs:
    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        say("here")
        return Image(name, environment={"PATH": "/usr/bin:/bin"})


async def agent(order: dict[str, Any]) -> None:
    base = Path(order["base"])
    steps = Steps(order["die_at"], base / "steps")
    transport = HttpTransport(order["server"], token=order["token"], ca=order["ca"].encode())
    client = Client(Counted(transport, steps))
    settings = NodeSettings("here", base / "run", base / "logs", base / "volumes", "8", "16Gi", {}, (base,))
    await run([(settings, client)], images=Programs(), clock=RealClock(), ready=steps.watch)


def main() -> None:
    """Serve orders, and tell of ends, until the input is closed."""
    wake, written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    bases: dict[int, Path] = {}
    rest = b""
    while True:
        for key, _ in selector.select():
            if key.fd == wake:
                os.read(wake, 4096)
                collect(bases)
                continue
            orders = os.read(key.fd, 1 << 16)      # several may have come at once; none may stay in a buffer
            if not orders:
                for pid in bases:
                    os.kill(pid, signal.SIGKILL)
                return
            *whole, rest = (rest + orders).split(b"\n")
            for order in map(json.loads, whole):
                if order.get("kill") in bases:      # else it has ended meanwhile, which was told
                    os.kill(order["kill"], signal.SIGKILL)
                elif "kill" not in order:
                    start(order, bases)


def start(order: dict[str, Any], bases: dict[int, Path]) -> None:
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(2, 1)                   # nobody shall wait for our end on account of the pipe
        try:
            asyncio.run(agent(order))
        finally:
            os._exit(1)
    bases[pid] = Path(order["base"])
    print(f"started {pid}", flush=True)


def collect(bases: dict[int, Path]) -> None:
    for pid in list(bases):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            count = (bases.pop(pid) / "steps").stat().st_size
            print(f"ended {pid} {os.waitstatus_to_exitcode(status)} {count}", flush=True)


if __name__ == "__main__":
    main()
