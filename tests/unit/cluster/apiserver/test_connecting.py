"""Requests that become connections: who may, where they lead, and that bytes go both ways unharmed."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.apiserver.api import PODS, SERVICES, WHO, Api, pod, service, serving

from trainmaster.cluster.apiserver.auth import Authenticator, Identity
from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.http import serve
from trainmaster.cluster.apiserver.proxying import Wanted, wanted
from trainmaster.local import keys

UPGRADE = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"


@dataclass
class Node:
    """A node that upgrades whatever it is asked for and then shouts back; or says no."""

    heads: list[str] = field(default_factory=list)
    refuses: bytes = b""
    page: bytes = b""       # what a pod behind it answers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self.refuses:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(self.refuses) + self.refuses)
        else:
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
            if self.page and self.heads[-1].startswith("GET /dial/"):
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(self.page)
            else:
                while data := await reader.read(1 << 16):
                    writer.write(data.upper())
                    await writer.drain()
        writer.close()


@dataclass(frozen=True)
class Site:
    api: Api
    node: Node
    port: int
    context: ssl.SSLContext

    async def ask(self, head: str, token: str = "all") -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request; the head of the answer and the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
        first, _, rest = head.partition("\r\n")
        lines = f"{first} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{rest}\r\n"
        writer.write(lines.encode())
        async with asyncio.timeout(30):
            return (await reader.readuntil(b"\r\n\r\n")).decode(), reader, writer

    async def message(self, head: str, token: str = "all") -> tuple[int, str]:
        """The code and the message of a refusal."""
        said, reader, writer = await self.ask(head, token)
        size = int(said.lower().partition("content-length:")[2].split()[0])
        body = orjson.loads(await reader.readexactly(size))
        writer.close()
        return int(said.split()[1]), str(body["message"])


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> keys.Keys:
    return keys.ensure(tmp_path_factory.mktemp("keys"), datetime.now(UTC))


@pytest.fixture
async def site(made: keys.Keys) -> AsyncIterator[Site]:
    node = Node()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def reach(_name: str) -> Any:
        return await asyncio.open_connection("127.0.0.1", port)

    tokens = Authenticator({"all": WHO, "none": Identity("somebody", ("system:authenticated",))})
    async with serving(reach=reach) as api:
        listening = await serve(api.server, tokens, made.server_context())
        await api.post(PODS, pod(nodeName="n"))
        await api.post(PODS, pod("unbound"))
        yield Site(api, node, listening.port, ssl.create_default_context(cadata=made.authority.decode()))
        await api.server.close()
        await listening.stop()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(("asked", "told"), [
    pytest.param("p/exec?command=echo&command=a%20b%26c&stdout=true&stdin=1",
                 "/exec/default/p/c?input=1&output=1&command=echo&command=a%20b%26c", id="exec"),
    pytest.param("p/attach?container=c&stdout=true&tty=true", "/attach/default/p/c?output=1&tty=1", id="attach"),
    pytest.param("p/portforward?ports=80,81", "/portForward/default/p?port=80&port=81", id="port-forward"),
])
async def test_bytes_go_both_ways(site: Site, asked: str, told: str) -> None:
    said, reader, writer = await site.ask(
        f"POST {PODS}/{asked}\r\n{UPGRADE}X-Stream-Protocol-Version: v4\r\nX-Stream-Protocol-Version: v3\r\n")
    assert said.startswith("HTTP/1.1 101 ")

    sent = bytes(range(97, 123)) * 40_000
    writer.write(sent)
    async with asyncio.timeout(30):
        assert sent.upper() == await reader.readexactly(len(sent))
    writer.close()

    head = site.node.heads[0]
    assert f"POST {told} HTTP/1.1" == head.splitlines()[0]
    assert 2 == head.count("X-Stream-Protocol-Version")
    assert "Bearer" not in head


@pytest.mark.parametrize(("head", "token", "code", "why"), [
    pytest.param(f"POST {PODS}/p/exec?command=x&stdout=1\r\n", "all", 400, "Upgrade request required", id="no upgrade"),
    pytest.param(f"POST {PODS}/none/exec?command=x\r\n{UPGRADE}", "all", 404, 'pods "none" not found', id="no pod"),
    pytest.param(f"POST {PODS}/unbound/exec?command=x\r\n{UPGRADE}", "all", 400,
                 "pod unbound does not have a host assigned", id="no node"),
    pytest.param(f"POST {PODS}/p/exec?container=z\r\n{UPGRADE}", "all", 400, "container z is not valid for pod p",
                 id="no such container"),
    pytest.param(f"POST {PODS}/p/exec?command=x\r\n{UPGRADE}", "none", 403,
                 'cannot create resource "pods/exec" in API group ""', id="may not create, as SPDY does"),
    pytest.param(f"GET {PODS}/p/exec?command=x\r\n{UPGRADE}", "none", 403,
                 'cannot get resource "pods/exec" in API group ""', id="may not get, as WebSockets do"),
    pytest.param(f"POST {PODS}/p/portforward\r\n{UPGRADE}", "none", 403, 'resource "pods/portforward"', id="ports"),
    pytest.param(f"GET {PODS}/p:80/proxy/\r\n", "none", 403, 'resource "pods/proxy"', id="proxy"),
    pytest.param("GET /api/v1/nodes/n/proxy/healthz\r\n", "none", 403, 'resource "nodes/proxy"', id="a node"),
    pytest.param(f"OPTIONS {PODS}/p:80/proxy/\r\n", "none", 403, 'resource "pods/proxy"',
                 id="a method that is none of the API's"),
])
async def test_who_may_not_is_told_so(site: Site, head: str, token: str, code: int, why: str) -> None:
    found, message = await site.message(head, token)

    assert code == found
    assert why in message
    assert [] == site.node.heads


async def test_what_the_node_refuses_is_refused(site: Site) -> None:
    site.node.refuses = b'container not found ("c")'

    assert (404, 'container not found ("c")') == await site.message(f"POST {PODS}/p/exec?command=x\r\n{UPGRADE}")


async def backed(site: Site) -> None:
    await site.api.post(SERVICES, service("s", ports=[{"name": "web", "port": 80}]))
    subset = {"addresses": [{"ip": "10.88.0.7", "nodeName": "n"}], "ports": [{"name": "web", "port": 8000}]}
    await site.api.post(ENDPOINTS, {"metadata": {"name": "s"}, "subsets": [subset]})


async def test_a_page_of_a_service(site: Site) -> None:
    """The answer comes as it was given, but for where it leads and that the connection ends."""
    await backed(site)
    site.node.page = b"HTTP/1.1 302 Found\r\nLocation: /there\r\nConnection: keep-alive\r\nX-A: b\r\n\r\nbody"

    said, reader, writer = await site.ask(f"GET {SERVICES}/s:web/proxy/a%20b?c=d&watch=no\r\nX-Mine: yes\r\n")

    assert (b"body", b"") == (await reader.read(100), await reader.read(100))
    writer.close()
    assert ["HTTP/1.1 302 Found", f"Location: {SERVICES}/s:web/proxy/there", "X-A: b", "Connection: close"] == \
        said.split("\r\n")[:4]
    dial, head = site.node.heads
    assert dial.startswith("GET /dial/10.88.0.7/8000 ")
    assert head.startswith("GET /a%20b?c=d&watch=no HTTP/1.1\r\nHost: 10.88.0.7:8000\r\nConnection: close\r\n")
    assert "X-Mine: yes" in head
    assert "Bearer" not in head


async def test_links_of_a_page_lead_through_the_server(site: Site) -> None:
    await backed(site)
    site.node.page = (b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"e\r\n<a href='/b'>\xe4\r\n0\r\n\r\n")

    said, reader, writer = await site.ask(f"GET {SERVICES}/s:web/proxy/\r\n")

    assert f"<a href='{SERVICES}/s:web/proxy/b'>".encode() + b"\xe4" == await reader.read()
    writer.close()
    assert "chunked" not in said


async def test_an_upgrade_behind_a_service(site: Site) -> None:
    await backed(site)
    site.node.page = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nhello"

    said, reader, writer = await site.ask(f"GET {SERVICES}/s/proxy/\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")

    assert said.startswith("HTTP/1.1 101 ")
    assert b"hello" == await reader.readexactly(5)
    writer.close()


@pytest.mark.parametrize(("head", "code", "why"), [
    pytest.param(f"GET {SERVICES}/s:81/proxy/\r\n", 503, "no port '81' of service 's'", id="no such port"),
    pytest.param(f"GET {SERVICES}/none/proxy/\r\n", 404, 'services "none" not found', id="no such service"),
    pytest.param(f"GET {SERVICES}/lonely/proxy/\r\n", 503, "no endpoints available for service 'lonely'",
                 id="nobody is behind it"),
    pytest.param(f"GET {PODS}/p:80/proxy/\r\n", 503, "pod p has no address yet", id="a pod without an address"),
    pytest.param(f"GET {PODS}/ftp:p:80/proxy/\r\n", 400, "invalid name for a proxy", id="another scheme"),
])
async def test_what_cannot_be_reached(site: Site, head: str, code: int, why: str) -> None:
    await backed(site)
    await site.api.post(SERVICES, service("lonely"))

    found, message = await site.message(head)

    assert code == found
    assert why in message


async def test_the_root_of_a_page_has_a_slash(site: Site) -> None:
    said, _, writer = await site.ask(f"GET {PODS}/p/proxy?a=b\r\n")
    writer.close()

    assert said.startswith("HTTP/1.1 301 ")
    assert f"Location: {PODS}/p/proxy/?a=b\r\n" in said


@pytest.mark.parametrize("head", [
    pytest.param("POST /api/v1/nodes/n/proxy/drain\r\n", id="a change"),
    pytest.param("GET /api/v1/nodes/n/proxy/drain\r\n", id="something else"),
    pytest.param(f"GET /api/v1/nodes/n/proxy/containerLogs/\r\n{UPGRADE}", id="an upgrade"),
])
async def test_of_a_node_only_what_shows_something_is_passed_on(site: Site, head: str) -> None:
    await site.api.post("/api/v1/nodes", {"metadata": {"name": "n"}})

    assert 403 == (await site.message(head))[0]


@pytest.mark.parametrize(("given", "expected"), [
    ("web", Wanted("web")), ("web:80", Wanted("web", "80")), ("https:web:443", Wanted("web", "443", "https")),
    (":web:80", Wanted("web", "80")), ("https:web:", Wanted("web", "", "https")),
])
def test_names_with_ports(given: str, expected: Wanted) -> None:
    assert expected == wanted(given)


@given(st.text("ab:h", max_size=8).filter(lambda text: text.count(":") > 2))
def test_names_with_too_many_colons_are_refused(given: str) -> None:
    with pytest.raises(Failure):
        wanted(given)
