"""A webhook for tests: a real HTTPS server on loopback whose paths answer well, badly, late or never.

The same server is asked by the embedded API server in unit tests and by a real one beside it (tests/kubernetes).
"""

import asyncio
import base64
import datetime
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.unit.cluster.apiserver.api import Api

from trainmaster.api.meta import Json, Object

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
Say = Callable[[Object], Json]       # the request of a review -> the response, or anything else as the whole answer


@dataclass(slots=True)
class HookServer:
    """What it was asked, and under which path it says what."""

    port: int = 0
    certificate: bytes = b""
    asked: list[tuple[str, Object]] = field(default_factory=list)      # path, review
    says: dict[str, Say | web.Response] = field(default_factory=dict)
    hold: asyncio.Event = field(default_factory=asyncio.Event)         # what /slow waits for
    connections: set[Any] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}{path}"

    def client(self, path: str) -> Object:
        return {"url": self.url(path), "caBundle": base64.b64encode(self.certificate).decode()}

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    async def until(self, count: int) -> None:
        """Wait until so many calls have come in."""
        while len(self.asked) < count:
            self.news.clear()
            await self.news.wait()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.connections.add(request.transport)
        review = json.loads(await request.read())
        self.asked.append((request.path, review))
        self.news.set()
        if request.path == "/slow":
            await self.hold.wait()
        said = self.says.get(request.path, _allow)
        if isinstance(said, web.Response):
            return web.Response(status=said.status, body=said.body, headers=dict(said.headers))
        found = said(review["request"])
        if isinstance(found, dict) and "whole" not in found:
            found = {"whole": {"apiVersion": review["apiVersion"], "kind": "AdmissionReview",
                               "response": {"uid": review["request"]["uid"], **found}}}
        return web.json_response(found["whole"])


def _allow(_request: Object) -> Json:
    return {"allowed": True}


def patch(*operations: Object) -> Say:
    """Allow, and change the object."""
    packed = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _request: {"allowed": True, "patchType": "JSONPatch", "patch": packed}


def add_label(key: str, value: str) -> Say:
    """Allow, and label the object if it has no such label."""
    def say(request: Object) -> Json:
        labels = request["object"]["metadata"].get("labels")
        if labels and key in labels:
            return {"allowed": True}
        path = f"/metadata/labels/{key}" if labels else "/metadata/labels"
        return patch({"op": "add", "path": path, "value": value if labels else {key: value}})(request)

    return say


def deny(message: str = "", **status: Json) -> Say:
    return lambda _request: {"allowed": False, "status": {**({"message": message} if message else {}), **status}}


def hook(client: Object | str, name: str = "a.example.com", *, resources: tuple[str, ...] = ("configmaps",),
         operations: tuple[str, ...] = ("CREATE",), groups: tuple[str, ...] = ("",),
         versions: tuple[str, ...] = ("v1",), **more: Json) -> Object:
    return {"name": name, "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": list(operations), "apiGroups": list(groups), "apiVersions": list(versions),
                       "resources": list(resources)}], **more}


def configuration(kind: str, *hooks: Object, name: str = "hooks") -> Object:
    """`kind` is Mutating or Validating."""
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name}, "webhooks": list(hooks)}


def place(kind: str, name: str = "") -> str:
    return f"{REGISTRATION}/{kind.lower()}webhookconfigurations{f'/{name}' if name else ''}"


async def register(api: Api, kind: str, *hooks: Object, name: str = "hooks") -> None:
    await api.made(place(kind), configuration(kind, *hooks, name=name))


@asynccontextmanager
async def hook_server() -> AsyncIterator[HookServer]:
    certificate, key = _keys()
    served = HookServer(certificate=certificate)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "both.pem"
        path.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
    runner = web.ServerRunner(web.Server(served.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        served.hold.set()
        assert runner.server is not None
        left = {*served.connections, *(each.transport for each in runner.server.connections)}
        await runner.cleanup()
        for transport in left - {None}:      # a client that keeps its connection would leave it half closed
            transport.abort()
        for _ in range(3):                   # TLS and socket end one turn of the loop after the other
            await asyncio.sleep(0)


@cache
def _keys() -> tuple[bytes, bytes]:
    """A certificate for loopback and a Service, which is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    now, name = datetime.datetime.now(datetime.UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks")])
    names = x509.SubjectAlternativeName([
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("hooks.default.svc")])
    built = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2)).add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256()))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
    return built.public_bytes(serialization.Encoding.PEM), private
