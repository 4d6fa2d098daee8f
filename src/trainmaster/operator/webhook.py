"""The validating webhook of a real cluster: an HTTPS server that answers what `door` says, and its certificate.

Nobody has to bring a certificate: the operator makes an authority of its own, keeps it in a Secret, so that all
replicas and the next start have the same, and writes it into the webhook configuration, whenever that has another. The
layout of the Secret is that of kubeflow's operator. None of this needs the lease: every replica answers.
"""

import asyncio
import base64
import binascii
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from aiohttp import web

from trainmaster.api.core import SECRETS, VALIDATING_WEBHOOKS
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Object, metadata
from trainmaster.kube import certificates
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from trainmaster.kube.tls import ClientCertificate, present, server_context
from trainmaster.operator import door, flags
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.probes import SHUTDOWN, Address, Health, Taken, address
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

VALID: Final = timedelta(days=3650)
RENEWED: Final = timedelta(days=90)           # before it ends
LOOKS: Final = timedelta(hours=12)            # at the certificate, when nothing else happens
PAUSE = 5.0                                   # after something went wrong
ATTEMPTS = 5
MOST_BYTES = 8 * 1024 * 1024                  # a review has an object twice

log = logger("webhook")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the webhook is: what it listens on, and the Service and Secret that go with it."""

    address: Address
    namespace: str
    service: str = "training-operator"
    secret: str = "training-operator-webhook-cert"  # noqa: S105  a name
    folder: Path | None = None      # with ca.crt, tls.crt and tls.key, instead of the Secret

    @property
    def names(self) -> tuple[str, ...]:
        return f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local"


def place_of(given: flags.Given, namespace: str, *, in_pod: bool) -> Place | None:
    """Where the flags want it: nowhere with port 0, and outside of a pod only if somebody asked for it.

    There, it is for this machine alone: whoever names a port has not asked for doors to other machines.
    """
    port, asked = given.number("webhook-server-port"), "webhook-server-port" in given.said
    if not port or not (asked or in_pod):
        return None
    found = address(f":{port}" if in_pod else f"127.0.0.1:{port}", asked=asked, in_pod=in_pod)
    assert found is not None
    folder = given.text("cert-dir")
    return Place(found, namespace, given.text("webhook-service-name"), given.text("webhook-secret-name"),
                 Path(folder) if folder else None)


@dataclass(frozen=True, slots=True)
class Material:
    """The authority's certificate, and what the server shows."""

    authority: bytes
    shown: ClientCertificate


@asynccontextmanager
async def serving(
    place: Place, client: Client, clock: Clock, health: Health, metrics: Metrics
) -> AsyncIterator["Webhook"]:
    """Answer until the end of the block. Raises Taken when the port is not free."""
    hook = Webhook(place, client, clock, metrics)
    health.checks["webhook"] = lambda: hook.ready
    try:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(hook.run())
            try:
                yield hook
            finally:
                working.cancel()
    except ExceptionGroup as several:
        if len(several.exceptions) == 1:
            raise several.exceptions[0] from several
        raise


class Webhook:
    """`ready` once it listens with a certificate that the configuration, if there is one, trusts."""

    def __init__(self, place: Place, client: Client, clock: Clock, metrics: Metrics) -> None:
        self._place = place
        self._metrics = metrics
        self._client = client
        self._clock = clock
        self._news = asyncio.Event()
        self._context: ssl.SSLContext | None = None
        self._shown: Material | None = None
        self.ready = False
        self.port = 0

    async def run(self) -> None:
        configurations = Informer(self._client, VALIDATING_WEBHOOKS, clock=self._clock,
                                  fields=f"metadata.name={door.NAME}")
        configurations.on_change(lambda _before, _after: self._news.set())
        runner: web.AppRunner | None = None
        following = asyncio.create_task(configurations.run())
        try:
            while True:
                self._news.clear()
                try:
                    await self._renew()
                    runner = runner or await self._listen()
                    await self._inject()
                    self.ready = True
                    pause = LOOKS.total_seconds()
                except (KubeError, ValueError) as problem:      # ValueError: a certificate that is none
                    log.warning("the webhook's certificate could not be looked after", problem=str(problem)[:300])
                    pause = PAUSE
                await first(self._news.wait(), self._clock.sleep(pause))
        finally:
            following.cancel()
            if runner is not None:
                await runner.cleanup()

    async def _renew(self) -> None:
        """Show the certificate that is in the Secret; make one if there is none, or soon none any more."""
        folder = self._place.folder
        if folder is not None:
            material = brought(folder)
        else:
            material = await ensured(self._client, self._place, self._clock)
        if material == self._shown:
            return
        if self._context is None:
            self._context = server_context(material.shown)
        else:
            present(self._context, material.shown)
        self._shown = material

    async def _listen(self) -> web.AppRunner:
        app = web.Application(client_max_size=MOST_BYTES)
        app.add_routes([web.post(door.path_of(kind), self._answer) for kind in KINDS])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
        await runner.setup()
        place = self._place.address
        try:
            await web.TCPSite(runner, place.host, place.port, ssl_context=self._context).start()
        except OSError as problem:
            await runner.cleanup()
            raise Taken(f"cannot listen on {place.text} for the webhook: {problem.strerror or problem}. Give another "
                        "--webhook-server-port, or 0.") from problem
        self.port = runner.addresses[0][1]
        return runner

    async def _answer(self, request: web.Request) -> web.Response:
        began = self._clock.monotonic()
        said = await answer(request)
        self._metrics.answered(request.path, said.status, self._clock.monotonic() - began)
        return said

    async def _inject(self) -> None:
        """Make the configuration trust us. One that is not there yet is news when it comes."""
        assert self._shown is not None
        for _ in range(ATTEMPTS):
            try:
                found = await self._client.get(VALIDATING_WEBHOOKS, door.NAME)
                wanted = trusting(found, self._place.service, self._shown.authority)
                if wanted != found:
                    await self._client.replace(VALIDATING_WEBHOOKS, wanted)
                    log.info("the webhook configuration trusts our certificate now", configuration=door.NAME)
            except NotFound:
                return
            except Conflict:
                continue
            else:
                return


async def answer(request: web.Request) -> web.Response:
    """An AdmissionReview for an AdmissionReview."""
    try:
        review = json.loads(await request.read())
        about = review["request"]
        said = door.judged(about)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        return web.Response(status=400, text=f"not an AdmissionReview: {type(problem).__name__}\n")
    return web.json_response({
        "apiVersion": review.get("apiVersion", "admission.k8s.io/v1"), "kind": "AdmissionReview", "response": said})


def trusting(configuration: Object, service: str, authority: bytes) -> Object:
    """The configuration with our authority at every webhook that leads to our Service."""
    bundle = base64.b64encode(authority).decode()
    hooks = []
    for hook in configuration.get("webhooks") or ():
        client = hook.get("clientConfig") or {}
        ours = (client.get("service") or {}).get("name") == service
        hooks.append({**hook, "clientConfig": {**client, "caBundle": bundle}} if ours else hook)
    return {**configuration, "webhooks": hooks}


def brought(folder: Path) -> Material:
    """What is in a folder. Raises KubeError: it may come a moment later, as mounts do."""
    try:
        authority, certificate, key = ((folder / name).read_bytes() for name in ("ca.crt", "tls.crt", "tls.key"))
    except OSError as problem:
        raise KubeError(f"--cert-dir: {problem.filename}: {problem.strerror}") from problem
    return Material(authority, ClientCertificate(certificate, key))


async def ensured(client: Client, place: Place, clock: Clock) -> Material:
    """What is in the Secret, made there if need be; of two that make it at once, both get that of the first."""
    for _ in range(ATTEMPTS):
        try:
            secret: Object | None = await client.get(SECRETS, place.secret, place.namespace)
        except NotFound:
            secret = None
        found = _stored(secret or {})
        if found is not None and certificates.serves(
                found.shown, found.authority, place.names, clock.now() + RENEWED):
            return found
        made = _made(place, clock)
        try:
            if secret is None:
                meta = {"name": place.secret, "namespace": place.namespace}
                await client.create(SECRETS, {"metadata": meta, "data": made})
            else:
                await client.replace(SECRETS, {**secret, "metadata": metadata(secret), "data": {
                    **(secret.get("data") or {}), **made}})
            log.info("made a certificate for the webhook", secret=place.secret, names=",".join(place.names))
        except (Conflict, AlreadyExists):
            continue      # somebody else was faster: take theirs
    raise KubeError(f"the secret {place.secret} changes all the time")


def _made(place: Place, clock: Clock) -> Object:
    authority = certificates.authority(f"{place.service}-ca", place.service, clock.now(), VALID)
    shown = certificates.issued(authority, place.names, clock.now(), VALID)
    parts = {"ca.crt": authority.certificate, "ca.key": authority.key, "tls.crt": shown.certificate,
             "tls.key": shown.key}
    return {name: base64.b64encode(pem).decode() for name, pem in parts.items()}


def _stored(secret: Object) -> Material | None:
    data = secret.get("data") or {}
    try:
        authority, certificate, key = (base64.b64decode(data[name]) for name in ("ca.crt", "tls.crt", "tls.key"))
    except (KeyError, TypeError, binascii.Error):
        return None
    return Material(authority, ClientCertificate(certificate, key))
