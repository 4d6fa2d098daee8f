"""From the control plane to the nodes, by name."""

import asyncio
from pathlib import Path

import pytest

from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request
from trainmaster.local.nodes import named
from trainmaster.local.ways import Ways


async def test_each_name_leads_to_its_own_node(tmp_path: Path) -> None:
    async def serving(socket: str) -> asyncio.Server:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(socket)}\r\n\r\n{socket}".encode())
            await writer.drain()
            writer.close()

        return await asyncio.start_unix_server(answer, tmp_path / socket)

    nodes, ways = named(["box", "box-2"]), Ways(tmp_path, named(["box", "box-2"]))
    servers = [await serving(node.socket_name) for node in nodes]
    try:
        said = [(await ways.to(node.name).send(Request("GET", "/"))).body.decode() for node in nodes]
        reader, writer = await ways.connected("box-2")
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert [node.socket_name for node in nodes] == said
        assert b"kubelet-2.sock" in await reader.read()
        writer.close()
    finally:
        await ways.close()
        for server in servers:
            server.close()


async def test_nothing_leads_to_a_node_that_is_not_here(tmp_path: Path) -> None:
    ways = Ways(tmp_path, named(["box"]))

    with pytest.raises(Unreachable, match="no node box-2 on this machine"):
        await ways.to("box-2").send(Request("GET", "/"))
    with pytest.raises(Unreachable, match="no node box-2 on this machine"):
        await ways.to("box-2").open(Request("GET", "/"))
    with pytest.raises(OSError, match="no node box-2 on this machine"):
        await ways.connected("box-2")
