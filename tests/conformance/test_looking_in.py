"""Looking into pods with other people's programs: kubectl of three ages and the Python client, on real pods."""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
import yaml
from tests.conformance import environments
from tests.conformance.conftest import Cluster, Kubectl
from tests.unit.cluster.kubelet.node import Node

from trainmaster.cluster.kubelet import cgroups, holder
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube import kubeconfig

PATIENCE = 60.0
SERVES = ("mkdir -p /tmp/web; cd /tmp/web; echo a page > page; "
          "exec python3 -u -m http.server 8000 --bind 127.0.0.1")


@pytest.fixture
def base() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="tm-look-"))
    (made / "base").mkdir(mode=0o700)
    yield made / "base"
    remove(made)


@pytest.fixture
def kubelet_socket(base: Path) -> Path:
    return base / "run" / "kubelet.sock"


@pytest.fixture
async def node(cluster: Cluster, base: Path) -> AsyncIterator[Node]:
    """A node of the cluster, with a pod on it that serves a page and one that reads what is typed."""
    made = Node(cluster.client, base)
    try:
        await made.start()
        await made.pod("web", SERVES)
        await made.phase("web", "Running")
        await made.heard("web", "Serving")
        yield made
    finally:
        await made.stop()
        await asyncio.to_thread(holder.end, made.settings.run)
        cgroups.end(made.settings.run)


@asynccontextmanager
async def forwarded(kubectl: Kubectl, *arguments: str) -> AsyncIterator[int]:
    """`kubectl port-forward` and the local port it chose."""
    process = await asyncio.create_subprocess_exec(
        *kubectl.command("port-forward", *arguments), env=kubectl.environment, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            found = None
            while found is None:
                found = re.match(r"Forwarding from 127.0.0.1:(\d+)", (await process.stdout.readline()).decode())
        yield int(found.group(1))
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


class Terminal:
    """A program on a terminal, and somebody who types."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        self._said = b""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def type(self, line: str) -> None:
        os.write(self._fd, line.encode() + b"\n")

    async def said(self, pattern: bytes) -> bytes:
        """What it said until then."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            while not re.search(pattern, self._said):
                ready: asyncio.Future[None] = loop.create_future()
                loop.add_reader(self._fd, ready.set_result, None)
                try:
                    await ready
                finally:
                    loop.remove_reader(self._fd)
                try:
                    self._said += os.read(self._fd, 4096)
                except OSError:
                    raise AssertionError(f"it ended after {self._said!r}") from None
        found, self._said = self._said, b""
        return found

    async def ended(self) -> int:
        code = os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, self.pid, 0))[1])
        os.close(self._fd)
        return code


@pytest.mark.usefixtures("node")
async def test_exec_and_cp(kubectl: Kubectl, tmp_path: Path) -> None:
    done = await kubectl("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (7, "out\n") == (done.code, done.out)
    assert re.match(r"err\n.*exit code 7\n", done.err)

    assert "typed" == await kubectl.output("exec", "-i", "web", "--", "cat", given="typed")
    assert "executable file not found in $PATH" in (await kubectl("exec", "web", "--", "no-such-program")).err

    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(3_000_000))
    await kubectl.output("cp", str(sent), "web:/tmp/there")
    await kubectl.output("cp", "web:/tmp/there", str(tmp_path / "back"))
    assert sent.read_bytes() == (tmp_path / "back").read_bytes()


@pytest.mark.usefixtures("node")
async def test_a_shell_on_a_terminal(kubectl: Kubectl) -> None:
    terminal = Terminal(kubectl.command("exec", "-it", "web", "--", "sh"), kubectl.environment)
    terminal.resize(111, 33)
    await terminal.said(rb"[#$] ")
    terminal.resize(122, 44)
    for _ in range(50):                      # the size travels beside what is typed
        terminal.type("stty size; echo a''b")
        if b"44 122" in await terminal.said(rb"ab\r\n"):
            break
    else:
        raise AssertionError("the size of the window never came")
    terminal.type("exit 3")

    await terminal.said(rb"exit code 3")
    assert 3 == await terminal.ended()


async def test_attach(kubectl: Kubectl, node: Node) -> None:
    script = "echo ready; cat; echo over"
    await node.pod("reads", "", restartPolicy="Never", containers=[
        {"name": "main", "image": "x", "command": ["sh", "-c", script], "stdin": True, "stdinOnce": True}])
    await node.phase("reads", "Running")
    await node.heard("reads", "ready")

    assert "typed\nover\n" == await kubectl.output("attach", "-i", "reads", given="typed\n")
    await node.phase("reads", "Succeeded")


@pytest.mark.usefixtures("node")
async def test_port_forward(kubectl: Kubectl) -> None:
    async with forwarded(kubectl, "pod/web", ":8000") as port, aiohttp.ClientSession() as session:
        async def page() -> str:
            async with session.get(f"http://127.0.0.1:{port}/page") as answer:
                return await answer.text()

        assert ["a page\n"] * 8 == await asyncio.gather(*(page() for _ in range(8)))


async def test_logs(kubectl: Kubectl, node: Node) -> None:
    """While they come, and parts of them."""
    script = "seq 1 400000; echo over; sleep 2"
    await node.pod("talks", script, restartPolicy="Never")
    await node.phase("talks", "Running", "Succeeded")

    followed = (await kubectl.output("logs", "-f", "talks")).splitlines()
    assert [*map(str, range(1, 400001)), "over"] == followed
    assert "400000\nover\n" == await kubectl.output("logs", "--tail=2", "talks")
    assert "1\n2" == await kubectl.output("logs", "--limit-bytes=3", "talks")
    assert "" == await kubectl.output("logs", "--since=1s", "--tail=0", "talks")
    stamped = await kubectl.output("logs", "--timestamps", "--tail=1", "talks")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z over\n", stamped)
    assert "previous terminated container" in (await kubectl("logs", "-p", "talks")).err


@pytest.mark.usefixtures("node")
async def test_top(kubectl: Kubectl) -> None:
    line = (await kubectl.output("top", "pod", "--no-headers")).split()
    assert "web" == line[0]
    assert re.fullmatch(r"\d+m", line[1])
    assert re.fullmatch(r"\d+Mi", line[2])
    assert "main" in await kubectl.output("top", "pod", "web", "--containers", "--no-headers")
    assert "here" == (await kubectl.output("top", "node", "--no-headers")).split()[0]


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("packages", ["kubernetes-25", "kubernetes-31", ""])
async def test_the_python_client(packages: str, cluster: Cluster, tmp_path: Path) -> None:
    document = kubeconfig.document(cluster.url, cluster.authority, cluster.token)
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    environment, command = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, [sys.executable, "-W", "ignore"]
    if packages:
        environment["PYTHONPATH"] = str(await asyncio.to_thread(environments.packages, packages))
        command.append("-S")
    program = Path(__file__).parent / "clients" / "look_kubernetes.py"
    process = await asyncio.create_subprocess_exec(
        *command, str(program), str(tmp_path / "kubeconfig"), "default", env=environment,
        stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(PATIENCE):
        out, _ = await process.communicate()

    assert ["exec ['err', 'out']", "typed got typed 5", "port a page None"] == out.decode().splitlines()


@pytest.mark.usefixtures("node")
async def test_a_log_on_a_websocket(cluster: Cluster) -> None:
    """As the conformance tests of Kubernetes ask for it."""
    url = f"{cluster.url}/api/v1/namespaces/default/pods/web/log?container=main&tailLines=1"
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, protocols=("binary.k8s.io",), headers=headers, ssl=False) as socket,
    ):
        assert b"Serving HTTP on 127.0.0.1" in (await socket.receive(timeout=PATIENCE)).data


# Takes one WebSocket, says hello on it, and gives back the first message; ours is too short to be cut.
SOCKETS = r"""
import base64, hashlib, socket
server = socket.create_server(("0.0.0.0", 8001))
print("Serving", flush=True)
while True:
    peer, _ = server.accept()
    head = b""
    while b"\r\n\r\n" not in head:
        head += peer.recv(4096)
    key = head.lower().split(b"sec-websocket-key:")[1].split(b"\r\n")[0]
    at = head.lower().index(b"sec-websocket-key:") + len(b"sec-websocket-key:")
    key = head[at:at + len(key)].strip() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key).digest())
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + b"\x81\x05hello")
    frame = peer.recv(4096)
    mask, masked = frame[2:6], frame[6:]
    said = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
    peer.sendall(b"\x81" + bytes([len(said)]) + said)
    peer.close()
"""


async def test_pages_and_websockets_of_pods(cluster: Cluster, node: Node) -> None:
    await node.pod("sockets", f"exec python3 -c '{SOCKETS}'")
    await node.phase("sockets", "Running")
    await node.heard("sockets", "Serving")
    url = f"{cluster.url}/api/v1/namespaces/default/pods/sockets:8001/proxy/chat"
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, headers=headers, ssl=False, autoclose=False) as peer,
    ):
        assert "hello" == (await peer.receive(timeout=PATIENCE)).data
        await peer.send_str("to and fro")
        assert "to and fro" == (await peer.receive(timeout=PATIENCE)).data
