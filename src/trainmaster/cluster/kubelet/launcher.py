"""The agent's side of the helper that forks: asks for sandboxes, containers and sockets, and hears of processes' ends.

Every request carries its own answer socket, so requests need no numbers and a child that dies answers by closing it.
Ends are heard through pidfds: the kernel makes one readable when its process has ended, for children of others too, so
the agent neither polls nor has to be anybody's parent.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.sandbox import SandboxPlan
from trainmaster.cluster.kubelet.shim import ContainerPlan
from trainmaster.runtime.log import logger

log = logger("launcher")

# -I -S: neither the user's environment nor installed packages reach the helper. It needs our source and nothing else.
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[3])
from trainmaster.cluster.kubelet.spawner import main
main(int(sys.argv[1]), sys.argv[2], host_network=sys.argv[4] == "host")
"""
_SOURCE = Path(__file__).resolve().parents[3]
# A sandbox takes 10 ms; a hostPath on a network file system that hangs is the only reason to come near this.
_PATIENCE = 60.0


class Process:
    """A process that somebody else started, by its pidfd."""

    def __init__(self, pidfd: int, on_end: Callable[[], None]) -> None:
        self._pidfd = pidfd
        self._on_end = on_end
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(pidfd, self._has_ended)

    @property
    def pidfd(self) -> int:
        return self._pidfd

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    async def end(self) -> None:
        """Return when it has ended."""
        await self._ended.wait()

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if not self.ended:
                signal.pidfd_send_signal(self._pidfd, number)

    def forget(self) -> None:
        """Stop watching; the process itself goes on."""
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _has_ended(self) -> None:
        self.forget()
        self._ended.set()
        self._on_end()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to: facts, and the pidfd of what was started, if anything was."""

    message: dict[str, Any]
    fds: Sequence[int]


class Launcher:
    """One helper process, started when it is first needed and again if it was lost."""

    def __init__(self, run: Path, *, host_network: bool = False) -> None:
        self._run = run
        self._host_network = host_network
        self._beside: Launcher | None = None       # a second helper, for pods in the host's network
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Have a helper inside the cluster's namespaces, which are made if there are none. Raises Failed."""
        async with self._starting:
            if self._control is not None:
                return
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-I", "-S", "-c", _PROGRAM, str(theirs.fileno()), str(self._run), str(_SOURCE),
                    "host" if self._host_network else "own",
                    pass_fds=(theirs.fileno(),), stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
                    env=_environment(os.environ),
                )
            try:
                answer = await received(ours, 0, "start the helper")
            except BaseException:
                ours.close()
                await self._process.wait()
                raise
            if answer.message:
                ours.close()
                await self._process.wait()
                raise Failed.from_message(answer.message)
            self._control = ours

    async def sandbox(self, plan: SandboxPlan) -> Answer:
        return await self._where(plan["host_network"])._ask({"do": "sandbox"}, plan, ())

    async def container(self, plan: ContainerPlan, pause: int, target: int | None = None) -> Answer:
        """`target`: the shim of the container whose processes this one is to see."""
        fds = (pause,) if target is None else (pause, target)
        return await self._where(plan["root"]["host_network"])._ask({"do": "container"}, plan, fds)

    async def open_socket(
        self, family: int, kind: int, protocol: int = 0, bind: tuple[str, int] | None = None
    ) -> socket.socket:
        """A socket in the cluster's network; bound, and listening if it is a stream's, if so asked. Raises OSError."""
        head = {"do": "socket", "family": family, "kind": kind, "protocol": protocol, "bind": bind}
        try:
            answer = await self._ask(head, None, ())
        except Failed as failed:
            raise OSError(failed.number, failed.text) from failed
        return socket.socket(fileno=answer.fds[0])

    async def pod_sockets(self, pause: int, *, host_network: bool = False) -> tuple[socket.socket, socket.socket]:
        """TCP sockets of both families in the network of the pod with this pause process. Raises Failed."""
        if host_network:                   # which is the one we are in ourselves
            return socket.socket(socket.AF_INET), socket.socket(socket.AF_INET6)
        answer = await self._ask({"do": "pod sockets"}, None, (pause,))
        fourth, sixth = (socket.socket(fileno=fd) for fd in answer.fds)
        return fourth, sixth

    async def conversation(
        self, head: dict[str, Any], plan: object, fds: Sequence[int], *, host_network: bool = False
    ) -> tuple[socket.socket, Answer]:
        """Ask for something that has more to say after its first answer: the socket on which it does."""
        what = f"ask the helper for a {head['do']}"
        ours = await self._where(host_network)._asked(head, plan, fds)
        try:
            answer = await received(ours, 1, what)
            if "step" in answer.message:
                raise Failed.from_message(answer.message)
        except BaseException:
            ours.close()
            raise
        return ours, answer

    async def stream(self) -> socket.socket:
        """A TCP socket in the cluster's network, to be connected from here."""
        made = await self.open_socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        return made

    async def close(self) -> None:
        """End the helper; what it started goes on."""
        if self._beside is not None:
            await self._beside.close()
            self._beside = None
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            await self._process.wait()

    def _where(self, host_network: bool) -> "Launcher":
        """The helper for a pod. An ordinary user who has left the host's network can never come back, so who starts
        pods there must never have left: another helper, started when the first such pod is."""
        if not host_network:
            return self
        if self._beside is None:
            self._beside = Launcher(self._run, host_network=True)
        return self._beside

    async def _ask(self, head: dict[str, Any], plan: object, fds: Sequence[int]) -> Answer:
        with await self._asked(head, plan, fds) as ours:
            answer = await received(ours, 4, f"ask the helper for a {head['do']}")
        if "step" in answer.message:
            raise Failed.from_message(answer.message)
        return answer

    async def _asked(self, head: dict[str, Any], plan: object, fds: Sequence[int]) -> socket.socket:
        """The socket on which the answer will come."""
        await self.start()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                await self._send(json.dumps(head).encode(), plan, theirs.fileno(), fds)
        except BaseException:
            ours.close()
            raise
        return ours

    async def _send(self, head: bytes, plan: object, answer_to: int, fds: Sequence[int]) -> None:
        memory = _memory_file(json.dumps(plan).encode()) if plan is not None else -1
        try:
            attached = [answer_to, *([memory] if memory >= 0 else []), *fds]
            assert self._control is not None
            try:
                socket.send_fds(self._control, [head], attached)
            except (BrokenPipeError, ConnectionResetError) as error:
                log.warning("the helper was lost, starting another")
                self._control.close()
                self._control = None
                raise Failed("ask the helper", 0, "it was lost; it is being started again") from error
        finally:
            if memory >= 0:
                os.close(memory)


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Only what may be needed to run Python at all: every shim inherits it, and our own may hold secrets."""
    return {name: ours[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in ours}


def _memory_file(content: bytes) -> int:
    memory = os.memfd_create("plan", os.MFD_CLOEXEC)
    with open(memory, "wb", closefd=False) as file:
        file.write(content)
    return memory


async def received(
    channel: socket.socket, fds: int, what: str, *, patience: float | None = _PATIENCE
) -> Answer:
    """The next message; an answer that never comes, or comes empty, is a failure of `what`."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel.fileno(), lambda: None if readable.done() else readable.set_result(None))
    try:
        async with asyncio.timeout(patience):
            await readable
        data, got, _, _ = socket.recv_fds(channel, 1 << 16, fds, socket.MSG_CMSG_CLOEXEC)
    except TimeoutError as error:
        raise Failed(what, 0, f"no answer within {patience:.0f} seconds") from error
    except ConnectionResetError as error:
        raise Failed(what, 0, "it ended without a word; the node's log may say why") from error
    finally:
        loop.remove_reader(channel.fileno())
    if not data:
        raise Failed(what, 0, "it ended without a word; the node's log may say why")
    return Answer(json.loads(data), got)


def adopt(record: dict[str, Any], on_end: Callable[[], None]) -> Process | None:
    """The process that a record on disk names, if it still lives."""
    pidfd = records.open_process(record)
    return Process(pidfd, on_end) if pidfd is not None else None
