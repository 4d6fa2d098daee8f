"""The server on a real socket: TLS, tokens, limits, streams. What it answers is tested elsewhere."""

import asyncio
import gzip
import io
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from aiohttp import ClientError, ClientSession, TCPConnector, WSMsgType, WSServerHandshakeError
from tests.unit.cluster.apiserver.api import MAPS, WHO, Api, config_map, serving

from trainmaster.cluster.apiserver.auth import Authenticator
from trainmaster.cluster.apiserver.http import serve
from trainmaster.local import keys

TOKEN = "secret"
HEAD = b"Host: x\r\nAuthorization: Bearer secret\r\n\r\n"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True, slots=True)
class Site:
    api: Api
    session: ClientSession
    port: int
    context: ssl.SSLContext


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> keys.Keys:
    return keys.ensure(tmp_path_factory.mktemp("keys"), datetime.now(UTC))


@pytest.fixture
async def site(made: keys.Keys) -> AsyncIterator[Site]:
    context = ssl.create_default_context(cadata=made.authority.decode())
    async with serving() as api:
        listening = await serve(api.server, Authenticator({TOKEN: WHO}), made.server_context())
        connector = TCPConnector(ssl=context)
        async with ClientSession(f"https://127.0.0.1:{listening.port}", connector=connector) as session:
            yield Site(api, session, listening.port, context)
        await api.server.close()
        await listening.stop()


@pytest.mark.parametrize(("path", "headers", "code"), [
    pytest.param(MAPS, AUTHORIZED, 200, id="with the token"),
    pytest.param(MAPS, {}, 401, id="without"),
    pytest.param(MAPS, {"Authorization": "Bearer wrong"}, 401, id="with another"),
    pytest.param("/version", {}, 401, id="the version is not for everybody"),
    pytest.param("/healthz", {}, 200, id="health is"),
    pytest.param("/livez", {"Authorization": "Bearer wrong"}, 200, id="even with another token"),
])
async def test_tokens(site: Site, path: str, headers: dict[str, str], code: int) -> None:
    async with site.session.get(path, headers=headers) as answer:
        assert code == answer.status
        if code == 401:
            assert {"reason": "Unauthorized", "code": 401}.items() <= orjson.loads(await answer.read()).items()


async def test_objects_go_in_and_come_out(site: Site) -> None:
    async with site.session.post(MAPS, json=config_map(a="ü"), headers=AUTHORIZED) as answer:
        assert (201, "application/json") == (answer.status, answer.content_type)
    async with site.session.get(f"{MAPS}/m", headers=AUTHORIZED) as answer:
        assert {"a": "ü"} == (await answer.json())["data"]
    async with site.session.get(f"{MAPS}?labelSelector=a+in+%28x%2Cy%29", headers=AUTHORIZED) as answer:
        assert [] == (await answer.json())["items"]


async def test_each_warning_is_a_header_of_its_own(site: Site) -> None:
    async with site.session.post(MAPS, json={**config_map(), "x": 1, "y": 2}, headers=AUTHORIZED) as answer:
        assert ['299 - "unknown field \\"x\\""', '299 - "unknown field \\"y\\""'] == answer.headers.getall("Warning")


async def test_a_watch_on_a_websocket_comes_event_by_event(site: Site) -> None:
    await site.api.made(MAPS, config_map("a"))
    await site.api.made(MAPS, config_map("b"))
    async with site.session.ws_connect(f"{MAPS}?watch=true", headers=AUTHORIZED) as socket:
        assert ("ADDED", "a") == _told(await socket.receive_str(timeout=60))
        assert ("ADDED", "b") == _told(await socket.receive_str(timeout=60))
        await site.api.made(MAPS, config_map("c"))
        assert ("ADDED", "c") == _told(await socket.receive_str(timeout=60))
        assert 1 == len(site.api.server._watches)
    async with asyncio.timeout(60):
        while len(site.api.server._watches):  # noqa: ASYNC110  the socket ends in another task; nothing signals
            await asyncio.sleep(0)


async def test_a_watch_on_a_websocket_ends_when_its_time_is_up(site: Site) -> None:
    async with site.session.ws_connect(f"{MAPS}?watch=true&timeoutSeconds=9", headers=AUTHORIZED) as socket:
        await site.api.clock.advance(10)
        assert WSMsgType.CLOSE == (await socket.receive(timeout=60)).type


async def test_what_cannot_be_watched_is_refused_before_the_websocket(site: Site) -> None:
    with pytest.raises(WSServerHandshakeError) as caught:
        await site.session.ws_connect(f"{MAPS}?watch=true&resourceVersion=x", headers=AUTHORIZED)

    assert 500 == caught.value.status


def _told(event: str) -> tuple[str, str]:
    found = orjson.loads(event)
    return found["type"], found["object"]["metadata"]["name"]


async def test_a_watch_comes_line_by_line(site: Site) -> None:
    async with site.session.get(f"{MAPS}?watch=true", headers=AUTHORIZED) as answer:
        await site.api.made(MAPS, config_map("a"))
        first = orjson.loads(await answer.content.readline())
        await site.api.made(MAPS, config_map("b"))
        second = orjson.loads(await answer.content.readline())

    assert [("ADDED", "a"), ("ADDED", "b")] == [(each["type"], each["object"]["metadata"]["name"])
                                                for each in (first, second)]


async def test_a_client_that_goes_away_leaves_nothing_behind(site: Site) -> None:
    answer = await site.session.get(f"{MAPS}?watch=true", headers=AUTHORIZED)
    assert 1 == len(site.api.server._watches)
    answer.close()

    async with asyncio.timeout(60):
        while len(site.api.server._watches):  # noqa: ASYNC110  the socket tells the server, nothing tells us
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("sent", "code"), [
    pytest.param(b'{"a":"' + b"x" * (3 << 20) + b'"}', 413, id="a body above the limit"),
    pytest.param(b"not json", 400, id="a body that is none"),
])
async def test_bodies(site: Site, sent: bytes, code: int) -> None:
    headers = {**AUTHORIZED, "Content-Type": "application/json"}
    async with site.session.post(MAPS, data=io.BytesIO(sent), headers=headers) as answer:
        assert code == answer.status
        assert "Status" == orjson.loads(await answer.read())["kind"]


async def test_a_body_without_a_length_is_limited_too(site: Site) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    try:
        async with site.session.post(MAPS, data=endless(), headers=AUTHORIZED) as answer:
            assert 413 == answer.status
    except OSError:
        pass          # it hung up on us while we were still sending: as good


@pytest.mark.parametrize("line", [
    pytest.param(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", id="an endless line"),
    pytest.param(b"GET / HTTP/1.1\r\nA: " + b"x" * 100_000 + b"\r\n\r\n", id="an endless header"),
    pytest.param(b"\x00\x01\x02\r\n\r\n", id="not HTTP"),
    pytest.param(b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", id="HTTP of another time"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", id="a negative length"),
    pytest.param(b"GET /api/v1/\xff\xfe HTTP/1.1\r\n" + HEAD, id="bytes in a path"),
    pytest.param(b"GET /api/v1/%ff%00%zz HTTP/1.1\r\n" + HEAD, id="bad escapes"),
    pytest.param(b"GET /api/v1/pods?%ff=%zz&&=&limit HTTP/1.1\r\n" + HEAD, id="a bad query"),
])
async def test_what_is_hardly_http_gets_an_answer_or_the_door(site: Site, line: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=site.context)
    try:
        writer.write(line)
        async with asyncio.timeout(60):
            head = await reader.readline()
    except OSError:
        head = b""
    finally:
        writer.close()

    assert head == b"" or 200 <= int(head.split()[1]) < 500, head
    async with site.session.get("/healthz") as answer:
        assert 200 == answer.status


async def test_plain_http_is_not_spoken(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    try:
        async with asyncio.timeout(60):
            said = await reader.read()
    except OSError:
        said = b""
    finally:
        writer.close()

    assert b"200" not in said


async def test_stopping_ends_open_watches(made: keys.Keys) -> None:
    context = ssl.create_default_context(cadata=made.authority.decode())
    async with serving() as api:
        listening = await serve(api.server, Authenticator({TOKEN: WHO}), made.server_context())
        async with ClientSession(connector=TCPConnector(ssl=context)) as session:
            url = f"https://127.0.0.1:{listening.port}{MAPS}?watch=true"
            answer = await session.get(url, headers=AUTHORIZED)
            await api.server.close()
            async with asyncio.timeout(60):
                assert b"" == await answer.content.read()
            await listening.stop()


WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def test_a_certificate_of_the_cluster_says_who_one_is(site: Site, made: keys.Keys, tmp_path: Path) -> None:
    files = dict(zip(("client.crt", "client.key"), made.client_certificate("ann", ["a", "b"], datetime.now(UTC)),
                     strict=True))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(cadata=made.authority.decode())
    context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    async with ClientSession(f"https://127.0.0.1:{site.port}", connector=TCPConnector(ssl=context)) as session, \
            session.post(WHOAMI, json={}) as answer:
        found = await answer.json()

    assert found["status"]["userInfo"] == {"username": "ann", "groups": ["a", "b", "system:authenticated"]}


async def test_a_certificate_of_another_cluster_does_not_get_in(site: Site, tmp_path: Path) -> None:
    other = keys.ensure(tmp_path, datetime.now(UTC))
    for name, content in zip(("client.crt", "client.key"),
                             other.client_certificate("root", ["system:masters"], datetime.now(UTC)), strict=True):
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    async with ClientSession(f"https://127.0.0.1:{site.port}", connector=TCPConnector(ssl=context)) as session:
        with pytest.raises(ClientError):
            await session.get(MAPS)


async def test_the_token_of_an_account_says_who_one_is_until_the_account_is_gone(site: Site) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await site.api.made(accounts, {"metadata": {"name": "robot"}})
    token = (await site.api.made(f"{accounts}/robot/token", {}))["status"]["token"]
    headers = {"Authorization": f"Bearer {token}"}

    async with site.session.post(WHOAMI, json={}, headers=headers) as answer:
        assert "system:serviceaccount:default:robot" == (await answer.json())["status"]["userInfo"]["username"]
    async with site.session.get(MAPS, headers=headers) as answer:
        assert 403 == answer.status
    await site.api.delete(f"{accounts}/robot")
    async with site.session.get(MAPS, headers=headers) as answer:
        assert 401 == answer.status


async def test_groups_of_an_impersonation_come_in_several_headers(site: Site) -> None:
    headers = [*AUTHORIZED.items(), ("Impersonate-User", "ann"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
    async with site.session.post(WHOAMI, json={}, headers=headers) as answer:
        found = await answer.json()

    assert ["a", "b", "system:authenticated"] == found["status"]["userInfo"]["groups"]


LONG = {str(at): "some words " * 100 for at in range(200)}      # 220 kB


@pytest.mark.parametrize(("path", "accepted", "comes_from", "packed"), [
    pytest.param(MAPS, "gzip", "127.0.0.2", True, id="a long list"),
    pytest.param(f"{MAPS}/long", "deflate, gzip, br", "127.0.0.2", True, id="a long object"),
    pytest.param("/openapi/v2", "gzip", "127.0.0.2", True, id="a long document"),
    pytest.param(f"{MAPS}/short", "gzip", "127.0.0.2", False, id="not what is short"),
    pytest.param(MAPS, "gzip;q=0", "127.0.0.2", False, id="not for one who takes no such thing"),
    pytest.param(MAPS, "identity", "127.0.0.2", False, id="not for one who does not ask"),
    pytest.param(MAPS, "gzip", "127.0.0.1", False, id="not on one machine"),
    pytest.param("/openapi/v3/api/v1", "gzip", "127.0.0.2", False, id="not documents that are kept"),
    pytest.param(f"{MAPS}?watch=1&timeoutSeconds=0", "gzip", "127.0.0.2", False, id="not a watch"),
])
async def test_long_answers_are_packed(site: Site, path: str, accepted: str, comes_from: str, packed: bool) -> None:
    await site.api.made(MAPS, {**config_map("long"), "data": LONG})
    await site.api.made(MAPS, config_map("short"))
    headers = {**AUTHORIZED, "Accept-Encoding": accepted}
    connector = TCPConnector(ssl=site.context, local_addr=(comes_from, 0))
    async with ClientSession(f"https://127.0.0.1:{site.port}", connector=connector, auto_decompress=False) as session, \
            session.get(path, headers=headers) as answer:
        found = await (answer.content.readany() if "watch" in path else answer.read())
        said = answer.headers.get("Content-Encoding")
    assert ("gzip" if packed else None) == said
    if packed:
        assert len(found) * 3 < len(found := gzip.decompress(found))
    async with site.session.get(path.partition("?")[0], headers=AUTHORIZED) as plain:
        assert "watch" in path or await plain.read() == found


async def test_a_long_list_says_how_long_it_is(site: Site) -> None:
    await site.api.made(MAPS, {**config_map("long"), "data": LONG})
    async with site.session.get(MAPS, headers=AUTHORIZED) as answer:
        found = await answer.read()

    assert str(len(found)) == answer.headers.get("Content-Length")
    assert ["long"] == [item["metadata"]["name"] for item in (await answer.json())["items"]]
