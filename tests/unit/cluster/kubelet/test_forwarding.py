"""Ports of pods through the node's socket: from inside the pod's network, many connections at once."""

import asyncio
import struct
from collections import defaultdict

import pytest
from tests.unit.cluster.kubelet.clients import SpdyClient, heard, spdy_client, websocket
from tests.unit.cluster.kubelet.node import Node

from trainmaster.cluster.kubelet import spdy
from trainmaster.cluster.kubelet.finding import Refused
from trainmaster.cluster.kubelet.forwarding import ports
from trainmaster.kube.http import HttpTransport
from trainmaster.kube.transport import Request

# Listens on the pod's own loopback alone; answers a line with what it got, then ends.
ECHO = """
import asyncio
async def serve(reader, writer):
    data = await reader.readline()
    writer.write(b"got " + (str(len(data)).encode() if len(data) > 100 else data))
    await writer.drain()
    writer.close()
async def main():
    await asyncio.start_server(serve, "127.0.0.1", 7001)
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
async def pod(node: Node) -> Node:
    await node.pod("a", f"exec python3 -c '{ECHO}'")
    await node.phase("a", "Running")
    await node.heard("a", "ready")
    return node


async def until_over(client: SpdyClient, streams: set[int]) -> dict[int, bytes]:
    """What came on these streams until all of them were over."""
    found: dict[int, bytes] = defaultdict(bytes)
    async for frame in client.frames():
        if isinstance(frame, spdy.Data):
            found[frame.stream] += frame.data
            if frame.fin:
                streams.discard(frame.stream)
        if not streams:
            break
    return found


async def test_many_connections_in_one_session(pod: Node) -> None:
    async with spdy_client(pod.settings.socket, "/portForward/default/a", "portforward.k8s.io") as client:
        pairs = []
        for number in range(20):
            about = {"port": "7001", "requestID": str(number)}
            pairs.append((client.open(streamType="error", **about), client.open(streamType="data", **about)))
        for number, (error, data) in enumerate(pairs):
            client.send(error, b"", fin=True)
            client.send(data, b"%d\n" % number)
        found = await until_over(client, {stream for pair in pairs for stream in pair})

    assert [b"got %d\n" % number for number in range(20)] == [found[data] for _, data in pairs]
    assert [b""] * 20 == [found[error] for error, _ in pairs]


async def test_a_port_where_nobody_listens(pod: Node) -> None:
    """Is said on the stream for that; the session goes on."""
    async with spdy_client(pod.settings.socket, "/portForward/default/a", "portforward.k8s.io") as client:
        about = {"port": "9", "requestID": "1"}
        error, data = client.open(streamType="error", **about), client.open(streamType="data", **about)
        found = await until_over(client, {error, data})
        again = {"port": "7001", "requestID": "2"}
        _, more = client.open(streamType="error", **again), client.open(streamType="data", **again)
        client.send(more, b"still\n")
        later = await until_over(client, {more})

    assert b"connection refused" in found[error]
    assert (b"", b"got still\n") == (found[data], later[more])


async def test_channels_of_a_websocket(pod: Node) -> None:
    async with websocket(pod.settings.socket, "/portForward/default/a?port=7001&port=9", "v4.channel.k8s.io") as socket:
        await socket.send_bytes(b"\x00" + b"hello\n")
        found = await heard(socket)

    assert struct.pack("<H", 7001) + b"got hello\n" == found[0]
    assert struct.pack("<H", 7001) == found[1]
    assert struct.pack("<H", 9) == found[2]
    assert b"connection refused" in found[3]


async def test_spdy_inside_a_websocket(pod: Node) -> None:
    out, into = spdy.Writer(), spdy.Reader()
    target = "/portForward/default/a"
    async with websocket(pod.settings.socket, target, "SPDY/3.1+portforward.k8s.io") as socket:
        about = {"port": "7001", "requestid": "0"}
        await socket.send_bytes(out.open(1, {"streamtype": "error", **about}))
        whole = out.open(3, {"streamtype": "data", **about}) + out.data(3, b"x" * 200 + b"\n")
        await socket.send_bytes(whole[:50])       # messages are no frames
        await socket.send_bytes(whole[50:])
        said = b""
        async with asyncio.timeout(60):
            while b"got 201" not in said:
                for frame in into.feed((await socket.receive()).data):
                    said += frame.data if isinstance(frame, spdy.Data) else b""

    assert b"got 201" == said


@pytest.mark.parametrize("given", [["0"], ["65536"], ["http"], ["-1"], ["1"] * 65])
def test_ports_that_are_none_are_refused(given: list[str]) -> None:
    with pytest.raises(Refused):
        ports(given)


@pytest.mark.parametrize(("address", "code"), [
    pytest.param("127.0.0.1", 403, id="the machine itself"),
    pytest.param("169.254.169.254", 403, id="the cloud's credentials"),
    pytest.param("10.0.0.1", 403, id="another network"),
    pytest.param("localhost", 403, id="a name"),
    pytest.param("10.88.0.1", 503, id="an address of the pods' network where nobody listens"),
])
async def test_only_addresses_of_pods_are_dialled(address: str, code: int, node: Node) -> None:
    transport = HttpTransport("http://kubelet", unix_socket=node.settings.socket)
    try:
        assert code == (await transport.send(Request("GET", f"/dial/{address}/9"))).status
    finally:
        await transport.close()
