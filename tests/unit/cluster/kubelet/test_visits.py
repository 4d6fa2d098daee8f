"""Exec and attach through the node's socket, in every dialect that clients speak."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from tests.unit.cluster.kubelet.clients import WebSocket, address, code_of, heard, spdy_client, websocket
from tests.unit.cluster.kubelet.node import Node, soon

from trainmaster.cluster.kubelet.spdy import Data, Ping

WAITS = "echo ready; while :; do sleep 1; done"
ALL = "input=1&output=1&error=1"


def exec_in(pod: str, script: str, streams: str = "output=1&error=1") -> str:
    return f"/exec/default/{pod}/main?command=sh&command=-c&command={quote(script)}&{streams}"


async def refusal(node: Node, method: str, target: str) -> tuple[int, str]:
    async with (
        address(node.settings.socket) as where,
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(where)) as session,
        session.request(method, f"http://kubelet{target}") as answer,
    ):
        return answer.status, await answer.text()


def processes(word: str) -> int:
    """How many processes of this machine have a word in their command."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += word.encode() in path.read_bytes()
        except OSError:
            continue
    return found


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_exec_on_a_websocket(protocol: str, node: Node) -> None:
    await node.pod("a", WAITS)
    await node.phase("a", "Running")

    async with websocket(node.settings.socket, exec_in("a", "echo out; echo err >&2; exit 7"), protocol) as socket:
        assert protocol == socket.protocol
        found = await heard(socket)
    assert (b"out\n", b"err\n", 7) == (found[1], found[2], code_of(found[3]))

    async with websocket(node.settings.socket, exec_in("a", "head -c 5; echo; stty size", f"{ALL}&tty=1"),
                         protocol) as socket:
        await socket.send_bytes(b"\x04" + json.dumps({"Width": 123, "Height": 45}).encode())
        await socket.send_bytes(b"\x00" + b"type\n")
        found = await heard(socket)
    assert b"45 123" in found[1]

    async with websocket(node.settings.socket, exec_in("a", "no-such", "output=1").replace("command=sh&", ""),
                         protocol) as socket:
        found = await heard(socket)
    assert "executable file not found in $PATH" in json.loads(found[3])["message"]

    if protocol.startswith("v5"):
        async with websocket(node.settings.socket, exec_in("a", "wc -c", ALL), protocol) as socket:
            for _ in range(64):
                await socket.send_bytes(b"\x00" + b"x" * 30_000)
            await socket.send_bytes(b"\xff\x00")      # this stream is over
            found = await heard(socket)
        assert b"1920000" == found[1].strip()


async def test_exec_on_spdy(node: Node) -> None:
    await node.pod("a", WAITS)
    await node.phase("a", "Running")
    script = "wc -c; echo err >&2; exit 3"

    async with spdy_client(node.settings.socket, exec_in("a", script, ALL), "v9.channel.k8s.io",
                           "v4.channel.k8s.io") as client:
        streams = {name: client.open(streamtype=name) for name in ("error", "stdin", "stdout", "stderr")}
        client.ping(5)
        for _ in range(64):
            client.send(streams["stdin"], b"x" * 30_000)
        client.send(streams["stdin"], b"", fin=True)
        said, others = await client.heard()

    assert "v4.channel.k8s.io" == client.protocol
    assert (b"1920000", b"err\n") == (said[streams["stdout"]].strip(), said[streams["stderr"]])
    assert 3 == code_of(said[streams["error"]])
    assert Ping(5) in others

    async with spdy_client(node.settings.socket, exec_in("a", "read x; stty size", f"{ALL}&tty=1"),
                           "v4.channel.k8s.io") as client:
        streams = {name: client.open(streamtype=name) for name in ("error", "stdin", "stdout", "resize")}
        client.send(streams["resize"], b'{"Width":99,')
        client.send(streams["resize"], b'"Height":33}\n')
        client.send(streams["stdin"], b"go\n")
        said, _ = await client.heard()
    assert b"33 99" in said[streams["stdout"]]


async def test_what_a_client_leaves_ends(node: Node) -> None:
    """A client that goes away takes its command along; the agent's end does, too."""
    await node.pod("a", WAITS)
    await node.phase("a", "Running")
    script = "trap '' TERM; echo begun; sleep 98765"

    async with websocket(node.settings.socket, exec_in("a", script), "v5.channel.k8s.io") as socket:
        assert b"\x01begun\n" == (await socket.receive(timeout=60)).data
        assert 1 <= processes("98765")
    await soon(lambda: processes("98765") == 0)

    async with websocket(node.settings.socket, exec_in("a", script), "v5.channel.k8s.io") as socket:
        assert b"\x01begun\n" == (await socket.receive(timeout=60)).data
        await node.stop()
    await soon(lambda: processes("98765") == 0)
    await node.start()
    await node.phase("a", "Running")
    async with websocket(node.settings.socket, exec_in("a", "echo still here"), "v5.channel.k8s.io") as socket:
        assert b"still here\n" == (await heard(socket))[1]


async def test_what_cannot_be_visited_is_refused(node: Node) -> None:
    await node.pod("a", "exit 0", restartPolicy="Never")
    await node.phase("a", "Succeeded")
    await node.pod("b", WAITS)
    await node.phase("b", "Running")

    assert (404, 'pod "none" not found') == await refusal(node, "POST", exec_in("none", "true"))
    assert (404, 'container not found ("main")') == await refusal(node, "POST", exec_in("a", "true"))
    assert (400, "Upgrade request required") == await refusal(node, "POST", exec_in("b", "true"))
    assert (400, "you must specify at least 1 of stdin, stdout, stderr") == await refusal(
        node, "POST", exec_in("b", "true", ""))
    assert (400, "you must specify the command to run") == await refusal(node, "POST", "/exec/default/b/main?output=1")


def attach_to(pod: str, streams: str = ALL) -> str:
    return f"/attach/default/{pod}/main?{streams}"


def with_input(**more: bool) -> list[dict[str, object]]:
    script = "echo ready; while read line; do echo got $line; echo bad $line >&2; done; echo over"
    return [{"name": "main", "image": "x", "command": ["sh", "-c", script], "stdin": True, **more}]


async def said(socket: WebSocket, word: bytes) -> bytes:
    """What is heard until a word is among it."""
    found = b""
    while word not in found:
        message = await socket.receive(timeout=60)
        assert isinstance(message.data, bytes), (found, message)
        found += message.data[1:]
    return found


async def looks_on(other: WebSocket, typist: WebSocket) -> None:
    """Until somebody who was let in sees something: an upgrade is answered before the container was asked."""
    async with asyncio.timeout(60):
        while True:
            await typist.send_bytes(b"\x00there?\n")
            with suppress(TimeoutError):
                await other.receive(timeout=0.5)
                return


async def test_attach_shows_what_is_printed_and_passes_on_what_is_typed(node: Node) -> None:
    """Several may look on; input stays open when one leaves, also across a restart of the agent."""
    await node.pod("a", "", containers=with_input())
    await node.phase("a", "Running")
    await node.heard("a", "ready")

    async with websocket(node.settings.socket, attach_to("a"), "v5.channel.k8s.io") as socket:
        async with websocket(node.settings.socket, attach_to("a", "output=1"), "v4.channel.k8s.io") as other:
            await looks_on(other, socket)
            await socket.send_bytes(b"\x00one\n")
            assert (await said(other, b"got one\n")).endswith(b"got one\n")
        assert b"bad one" in await said(socket, b"bad one\n")
    await node.stop()
    await node.start()
    await node.phase("a", "Running")
    async with spdy_client(node.settings.socket, attach_to("a"), "v4.channel.k8s.io") as client:
        streams = {name: client.open(streamtype=name) for name in ("error", "stdin", "stdout", "stderr")}
        client.send(streams["stdin"], b"two\n", fin=True)
        async for frame in client.frames():
            if isinstance(frame, Data) and frame.stream == streams["stdout"]:
                assert b"got two\n" == frame.data
                break
    await node.heard("a", "bad two")
    status, log = await node.log("a")
    assert (200, ["bad one", "bad two", "got one", "got two", "ready"]) == (
        status, sorted(line for line in log.splitlines() if "there?" not in line))


async def test_the_first_visitors_end_is_the_end_of_an_input_that_is_open_once(node: Node) -> None:
    await node.pod("a", "", containers=with_input(stdinOnce=True), restartPolicy="Never")
    await node.phase("a", "Running")

    async with websocket(node.settings.socket, attach_to("a"), "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\x00" + b"x" * 30_000 + b"\n")
        await socket.send_bytes(b"\x00one\n")
        await socket.send_bytes(b"\xff\x00")
        found = await heard(socket)

    assert b"got " + b"x" * 30_000 + b"\ngot one\nover\n" == found[1].removeprefix(b"ready\n")
    assert 0 == code_of(found[3])
    await node.phase("a", "Succeeded")


async def test_a_container_with_a_terminal(node: Node) -> None:
    script = "read x; stty size; tty; exit 4"
    await node.pod("a", "", restartPolicy="Never", containers=[
        {"name": "main", "image": "x", "command": ["sh", "-c", script], "stdin": True, "tty": True}])
    await node.phase("a", "Running")

    async with websocket(node.settings.socket, attach_to("a", f"{ALL}&tty=1"), "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\x04" + json.dumps({"Width": 77, "Height": 22}).encode())
        await socket.send_bytes(b"\x00go\n")
        found = await heard(socket)

    assert [b"go", b"22 77", b"/dev/pts/0"] == found[1].splitlines()
    pod = await node.phase("a", "Failed")
    assert 4 == pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]


async def test_who_does_not_look_holds_nobody_up(node: Node) -> None:
    """A visitor that does not read: the container prints on and ends, and nothing is missing in its log."""
    await node.pod("a", "", restartPolicy="Never", volumes=[{"name": "m", "emptyDir": {}}], containers=[{
        "name": "main", "image": "x", "volumeMounts": [{"name": "m", "mountPath": "/marks"}], "command": [
            "sh", "-c",
            "until [ -e /marks/go ]; do sleep 0.05; done; head -c 8000000 /dev/zero | tr '\\0' 'y'; echo over",
        ]}])
    await node.phase("a", "Running")

    async with spdy_client(node.settings.socket, attach_to("a", "output=1"), "v4.channel.k8s.io") as client:
        client.open(streamtype="error")
        client.open(streamtype="stdout")
        (next((node.settings.volumes / "pods").iterdir()) / "m" / "go").touch()
        await node.phase("a", "Succeeded")

    status, log = await node.log("a")
    assert (200, 8_000_005) == (status, len(log))
