"""Programs that give credentials: how they are started, what they may print, and when they are asked again.

The program is a real one, a few lines of Python, so that the way it is started and ended is the one that ships.
"""

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import orjson
import pytest
import yaml
from aiohttp import web

from trainmaster.kube.client import Client
from trainmaster.kube.credentials import (
    VERSIONS,
    Credential,
    Credentials,
    NoCredentials,
    Plugin,
    PluginTransport,
    asked,
    understood,
)
from trainmaster.kube.errors import Forbidden
from trainmaster.kube.http import HttpTransport
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.tls import ClientCertificate
from trainmaster.kube.transport import Request
from trainmaster.testing.clock import NOON, VirtualClock

SECRET = "sesame-0123456789"
PROGRAM = '''
import json, os, sys, time
folder, mode = sys.argv[1], sys.argv[2]
with open(os.path.join(folder, "asked"), "a") as file:
    file.write(json.dumps({"info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]), "args": sys.argv[3:],
                           "ours": os.environ.get("OURS"), "theirs": os.environ.get("THEIRS"), "pid": os.getpid(),
                           "stdin": sys.stdin.read()}) + "\\n")
number = sum(1 for _ in open(os.path.join(folder, "asked")))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
if mode == "hangs":
    time.sleep(600)
if mode == "fails":
    print("no network today", file=sys.stderr)
    sys.exit(3)
status = json.load(open(os.path.join(folder, "status")))
status = {key: value.replace("NUMBER", str(number)) for key, value in status.items()}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
'''


class Authority(Protocol):
    """What `conftest.Authority` offers."""

    pem: bytes

    def issue(self, name: str, *, address: str = ...) -> tuple[bytes, bytes]: ...


class Helper:
    """A program in a folder, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "helper.py"
        self.file.write_text(PROGRAM)
        self.gives(token=f"{SECRET}-NUMBER")

    def gives(self, **status: str) -> None:
        (self.folder / "status").write_text(json.dumps(status))

    def plugin(self, mode: str = "gives", *args: str, **fields: Any) -> Plugin:
        return Plugin(sys.executable, (str(self.file), str(self.folder), mode, *args), **fields)

    @property
    def asked(self) -> list[dict[str, Any]]:
        log = self.folder / "asked"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    return Helper(tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_program_is_told_what_is_wanted_and_has_nothing_to_read(version: str, helper: Helper) -> None:
    cluster = {"server": "https://h:1", "config": {"audience": "a"}}
    plugin = helper.plugin(
        "gives", "a; rm -rf /", "$HOME", environment=(("THEIRS", "x"),), api_version=version, cluster=cluster
    )
    credential = await asked(plugin, {**os.environ, "OURS": "y"})

    [call] = helper.asked
    assert Credential(f"{SECRET}-1") == credential
    assert ["a; rm -rf /", "$HOME"] == call["args"], "no shell in between"
    assert ("y", "x", "") == (call["ours"], call["theirs"], call["stdin"])
    assert {
        "apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": cluster},
    } == call["info"]


async def test_a_program_that_does_not_want_to_know_is_not_told_of_the_cluster(helper: Helper) -> None:
    await asked(helper.plugin(), os.environ)

    assert {"interactive": False} == helper.asked[0]["info"]["spec"]


def answer(status: Any, kind: str = "ExecCredential", version: str = VERSIONS[0]) -> bytes:
    return orjson.dumps({"kind": kind, "apiVersion": version, "status": status})


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(answer({"token": "t"}), Credential("t"), id="a token"),
        pytest.param(answer({"clientCertificateData": "c", "clientKeyData": "k"}),
                     Credential(certificate=ClientCertificate(b"c", b"k")), id="a certificate"),
        pytest.param(answer({"token": "t", "clientCertificateData": "c", "clientKeyData": "k"}),
                     Credential("t", ClientCertificate(b"c", b"k")), id="both"),
        pytest.param(answer({"token": "t", "expirationTimestamp": "2030-01-01T12:00:00Z"}), Credential("t", None, NOON),
                     id="with an end"),
        pytest.param(answer({"token": "t", "expirationTimestamp": "2030-01-01T13:00:00+01:00"}),
                     Credential("t", None, NOON), id="with an end in another zone"),
    ],
)
def test_what_a_program_may_print(output: bytes, expected: Credential) -> None:
    assert expected == understood(output, Plugin("p"))


@pytest.mark.parametrize(
    ("output", "words"),
    [
        pytest.param(SECRET.encode(), "something else", id="no JSON"),
        pytest.param(b"[]", "something else", id="no object"),
        pytest.param(b"{}", "something else", id="nothing"),
        pytest.param(answer(None), "something else", id="no status"),
        pytest.param(answer({"token": 1}), "something else", id="a token that is none"),
        pytest.param(answer({"token": SECRET, "expirationTimestamp": "soon"}), "something else", id="a wrong end"),
        pytest.param(answer({}), "neither a token nor a certificate", id="an empty status"),
        pytest.param(answer({"clientKeyData": SECRET}), "a key alone", id="a key without a certificate"),
        pytest.param(answer({"clientCertificateData": SECRET}), "without its key", id="a certificate without a key"),
        pytest.param(answer({"token": SECRET}, version=VERSIONS[1]), "another form", id="another version than asked"),
        pytest.param(answer({"token": SECRET}, kind="Secret"), "another form", id="another kind"),
    ],
)
def test_what_cannot_be_used_is_told_without_quoting_it(output: bytes, words: str) -> None:
    with pytest.raises(NoCredentials, match=words) as caught:
        understood(output, Plugin("p"))

    assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"


async def test_a_program_that_fails_says_why(helper: Helper) -> None:
    with pytest.raises(NoCredentials, match="failed with code 3: no network today"):
        await asked(helper.plugin("fails"), os.environ)


async def test_a_program_that_is_not_there_is_told_with_the_hint() -> None:
    with pytest.raises(NoCredentials, match=r"cannot be started: No such file or directory\. Install it"):
        await asked(Plugin("no-such-program-anywhere", hint="Install it from here"), os.environ)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_program_that_hangs_is_ended(helper: Helper) -> None:
    with pytest.raises(NoCredentials, match="did not answer"):
        await asked(helper.plugin("hangs"), os.environ, patience=0.3)

    assert not [call["pid"] for call in helper.asked if alive(call["pid"])]


async def test_who_stops_waiting_leaves_no_program_behind(helper: Helper) -> None:
    task = asyncio.create_task(asked(helper.plugin("hangs"), os.environ))
    while not helper.asked:  # noqa: ASYNC110  another process has to start, which sets no event here
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert not alive(helper.asked[0]["pid"])


class Server:
    """Takes only some tokens; keeps those that came."""

    def __init__(self, takes: Callable[[str], bool]) -> None:
        self.takes = takes
        self.came: list[str] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peercert") if request.transport else None
        who = dict(part[0] for part in peer["subject"])["commonName"] if peer else ""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.came.append(who or token)
        if not self.takes(who or token):
            return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
        return web.json_response({"kind": "Answer", "items": []})


async def started(server: Server, tls: ssl.SSLContext | None = None) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", server.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    return runner, f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"


class Way:
    """A client whose credentials come from a program, and the server at the other end."""

    def __init__(self, helper: Helper, clock: VirtualClock, takes: Callable[[str], bool]) -> None:
        self.helper, self.clock, self.server = helper, clock, Server(takes)

    async def __aenter__(self) -> Client:
        self.runner, address = await started(self.server)
        credentials = Credentials(self.helper.plugin(), os.environ, self.clock.now)
        self.client = Client(PluginTransport(credentials, lambda _certificate: HttpTransport(address)))
        return self.client

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.runner.cleanup()


async def test_the_program_is_asked_once_for_many_requests(helper: Helper) -> None:
    way = Way(helper, VirtualClock(), lambda _: True)
    async with way as client:
        await asyncio.gather(*(client.request("GET", "/api") for _ in range(10)))

    assert (1, {f"{SECRET}-1"}) == (len(helper.asked), set(way.server.came))


async def test_what_has_expired_is_renewed_before_it_is_used(helper: Helper) -> None:
    clock = VirtualClock()
    helper.gives(token=f"{SECRET}-NUMBER", expirationTimestamp=(NOON + timedelta(minutes=5)).isoformat())
    way = Way(helper, clock, lambda _: True)
    async with way as client:
        for minutes in (0, 4):
            await clock.advance(minutes=minutes)
            await client.request("GET", "/api")
        helper.gives(token=f"{SECRET}-NUMBER", expirationTimestamp=(NOON + timedelta(minutes=10)).isoformat())
        for minutes in (1, 4):
            await clock.advance(minutes=minutes)
            await client.request("GET", "/api")

    assert [f"{SECRET}-{number}" for number in (1, 1, 2, 2)] == way.server.came


@pytest.mark.parametrize("verb", ["request", "stream"])
async def test_what_the_server_refuses_is_renewed_and_sent_again(verb: str, helper: Helper) -> None:
    clock = VirtualClock()
    way = Way(helper, clock, lambda _: True)
    async with way as client:
        await client.request("GET", "/api")
        way.server.takes = lambda token: token.endswith("-2")
        await clock.advance(minutes=1)
        if verb == "request":
            await asyncio.gather(*(client.request("POST", "/api", body={}) for _ in range(5)))
        else:
            await (await client.stream("/api")).close()

    assert 2 == len(helper.asked), "once, however many were refused"
    assert {f"{SECRET}-1", f"{SECRET}-2"} == set(way.server.came)


async def test_a_program_whose_answer_nobody_takes_is_not_started_for_every_request(helper: Helper) -> None:
    clock = VirtualClock()
    way = Way(helper, clock, lambda _: False)
    async with way as client:
        for _ in range(10):
            with pytest.raises(Forbidden):
                await client.request("GET", "/api")
        assert 1 == len(helper.asked)

        await clock.advance(seconds=11)
        with pytest.raises(Forbidden):
            await client.request("GET", "/api")
        assert 2 == len(helper.asked)


async def test_a_new_certificate_is_shown_on_new_connections(
    helper: Helper, authority: Authority, server_files: Path
) -> None:
    clock = VirtualClock()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.load_cert_chain(server_files)
    context.verify_mode = ssl.CERT_REQUIRED
    server = Server(lambda _: True)
    runner, address = await started(server, context)
    credentials = Credentials(helper.plugin(), os.environ, clock.now)
    way = PluginTransport(
        credentials, lambda certificate: HttpTransport(address, ca=authority.pem, client_cert=certificate)
    )
    streams = []
    for number, name in enumerate(("alice", "bob")):
        certificate, key = authority.issue(name)
        ends = (NOON + timedelta(minutes=5 * (number + 1))).isoformat()
        helper.gives(clientCertificateData=certificate.decode(), clientKeyData=key.decode(), expirationTimestamp=ends)
        await way.send(Request("GET", "/api"))
        streams.append(await way.open(Request("GET", "/watch")))
        await clock.advance(minutes=5)
    bodies = [b"".join([chunk async for chunk in stream.chunks()]) for stream in streams]
    for stream in streams:
        await stream.close()
    await way.close()
    await runner.cleanup()

    assert ["alice", "alice", "bob", "bob"] == server.came
    assert 2 == len([body for body in bodies if b"Answer" in body]), "what was open stays readable"


async def test_a_certificate_that_is_none_is_told(helper: Helper) -> None:
    helper.gives(clientCertificateData="nonsense", clientKeyData=SECRET)
    way = PluginTransport(
        Credentials(helper.plugin(), os.environ),
        lambda certificate: HttpTransport("https://127.0.0.1:1", client_cert=certificate),
    )
    with pytest.raises(NoCredentials, match="cannot be used") as caught:
        await way.send(Request("GET", "/"))

    assert SECRET not in str(caught.value)


async def test_a_kubeconfig_that_names_a_program_works(helper: Helper) -> None:
    server = Server(lambda token: token == f"{SECRET}-1")
    runner, address = await started(server)
    arguments = [str(helper.file), str(helper.folder), "gives"]
    program = {"apiVersion": VERSIONS[0], "command": sys.executable, "args": arguments, "interactiveMode": "Never"}
    path = helper.folder / "config"
    path.write_text(yaml.safe_dump({
        "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"exec": program}}],
    }))
    client = Client(transport(load(path)))
    assert "Answer" == (await client.request("GET", "/api"))["kind"]
    await client.close()
    await runner.cleanup()


def test_nothing_of_it_shows_in_a_repr() -> None:
    shown = repr([
        Credential(SECRET, ClientCertificate(SECRET.encode(), SECRET.encode())),
        Plugin("p", environment=(("PASSWORD", SECRET),), cluster={"config": SECRET}),
    ])

    assert SECRET not in shown
