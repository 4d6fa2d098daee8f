"""Exec through the node's socket, in every dialect that clients speak."""

import json
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from tests.unit.cluster.kubelet.clients import address, code_of, heard, spdy_client, websocket
from tests.unit.cluster.kubelet.node import Node, soon

from trainmaster.cluster.kubelet.spdy import Ping

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
