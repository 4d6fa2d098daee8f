"""The operator's webhook on a cluster: its certificate, its place in the configuration, its answers."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from trainmaster.api.core import SECRETS, VALIDATING_WEBHOOKS
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Object
from trainmaster.kube import certificates
from trainmaster.kube.errors import NotFound
from trainmaster.kube.tls import client_context
from trainmaster.operator import door, flags, webhook
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.probes import Address, Health, Taken
from trainmaster.operator.webhook import Place, Webhook
from trainmaster.runtime.clock import RealClock
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded

PLACE = Place(Address("127.0.0.1:0"), "default")


@asynccontextmanager
async def running(
    cluster: Cluster, place: Place = PLACE, metrics: Metrics | None = None
) -> AsyncIterator[Webhook]:
    health = Health(ready=True)
    async with webhook.serving(place, cluster.client(), cluster.clock, health, metrics or Metrics()) as found:
        await until(lambda: not health.missing())
        yield found


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("never")


async def data(cluster: Cluster) -> Object:
    found: Object = (await cluster.client().get(SECRETS, PLACE.secret, "default"))["data"]
    return found


async def bundles(cluster: Cluster) -> set[str]:
    found = await cluster.client().get(VALIDATING_WEBHOOKS, door.NAME)
    return {each["clientConfig"].get("caBundle", "") for each in found["webhooks"]}


async def test_it_makes_its_certificate_and_tells_the_configuration() -> None:
    async with embedded(VirtualClock()) as cluster:
        client = cluster.client()
        # Empty, as upstream ships it.
        await client.create(SECRETS, {"metadata": {"name": PLACE.secret, "namespace": "default"}})
        await client.create(VALIDATING_WEBHOOKS, door.configuration("default", PLACE.service))
        async with running(cluster):
            stored = await data(cluster)
            trusted = await bundles(cluster)

    assert {"ca.crt", "ca.key", "tls.crt", "tls.key"} == stored.keys()
    assert {stored["ca.crt"]} == trusted
    shown = x509.load_pem_x509_certificate(base64.b64decode(stored["tls.crt"]))
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "training-operator.default.svc" in names.get_values_for_type(x509.DNSName)


async def test_b37_it_answers_for_every_kind_over_tls_whichever_the_operator_runs() -> None:
    """The configuration sends all kinds; one that nobody answers for could not be written."""
    metrics = Metrics()
    async with embedded(RealClock()) as cluster, running(cluster, metrics=metrics) as hook:     # TLS asks the real one
        context = client_context(base64.b64decode((await data(cluster))["ca.crt"]), None)
        answers = []
        async with aiohttp.ClientSession(f"https://127.0.0.1:{hook.port}") as session:
            for kind in KINDS:
                bad = {"uid": "u", "object": {"kind": kind.kind, "metadata": {"name": "a"}, "spec": {}}}
                async with session.post(
                    door.path_of(kind), json={"apiVersion": "admission.k8s.io/v1", "request": bad}, ssl=context,
                    server_hostname="training-operator.default.svc",
                ) as answer:
                    answers.append((await answer.json())["response"])
            async with session.post(door.path_of(KINDS[0]), data=b"no", ssl=context,
                                    server_hostname="training-operator.default.svc") as answer:
                refused = answer.status

    assert [("u", False, 403)] * len(KINDS) == [
        (each["uid"], each["allowed"], each["status"]["code"]) for each in answers]
    assert 400 == refused
    counted = {
        (sample.labels["webhook"], sample.labels["code"]): sample.value for metric in metrics.registry.collect()
        for sample in metric.samples if sample.name == "controller_runtime_webhook_requests_total"
    }
    assert {**{(door.path_of(kind), "200"): 1 for kind in KINDS}, (door.path_of(KINDS[0]), "400"): 1} == counted


async def test_the_next_one_takes_what_is_there() -> None:
    async with embedded(VirtualClock()) as cluster:
        async with running(cluster):
            first = await data(cluster)
        async with running(cluster):
            assert first == await data(cluster)


@pytest.mark.parametrize("later", [
    pytest.param(timedelta(days=3650 - 80), id="it ends soon"),
    pytest.param(timedelta(days=9999), id="it has ended"),
])
async def test_one_that_ends_is_renewed(later: timedelta) -> None:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        async with running(cluster):
            first = await data(cluster)
        await clock.advance(later.total_seconds())
        async with running(cluster):
            assert first["tls.crt"] != (await data(cluster))["tls.crt"]


async def test_what_is_no_certificate_is_replaced() -> None:
    async with embedded(VirtualClock()) as cluster:
        await cluster.client().create(SECRETS, {"metadata": {"name": PLACE.secret, "namespace": "default"}, "data": {
            name: base64.b64encode(b"x").decode() for name in ("ca.crt", "tls.crt", "tls.key")}})
        async with running(cluster):
            assert base64.b64decode((await data(cluster))["tls.crt"]).startswith(b"-----BEGIN CERTIFICATE")


async def test_a_configuration_that_comes_later_or_is_written_over_is_told_again() -> None:
    async with embedded(VirtualClock()) as cluster, running(cluster):
        client = cluster.client()
        wanted = (await data(cluster))["ca.crt"]
        await client.create(VALIDATING_WEBHOOKS, door.configuration("default", PLACE.service))
        await trusted(cluster, wanted)
        made = await client.get(VALIDATING_WEBHOOKS, door.NAME)
        for each in made["webhooks"]:
            each["clientConfig"].pop("caBundle")
        await client.replace(VALIDATING_WEBHOOKS, made)
        await trusted(cluster, wanted)


async def trusted(cluster: Cluster, wanted: str) -> None:
    """Return once the configuration trusts this authority."""
    async with asyncio.timeout(60):
        async for _ in cluster.client().watch(VALIDATING_WEBHOOKS, revision="0"):
            if await bundles(cluster) == {wanted}:
                return


def test_webhooks_of_others_in_the_same_configuration_stay_as_they_are() -> None:
    theirs = {"name": "x", "clientConfig": {"url": "https://example.com"}}

    assert [theirs] == webhook.trusting({"webhooks": [theirs]}, PLACE.service, b"x")["webhooks"]


@pytest.mark.parametrize(("words", "in_pod", "expected"), [
    pytest.param({}, True, (None, 9443), id="in a pod, everywhere"),
    pytest.param({}, False, None, id="not on a laptop"),
    pytest.param({"webhook-server-port": ["9444"]}, False, ("127.0.0.1", 9444),
                 id="on a laptop if asked for, for itself alone"),
    pytest.param({"webhook-server-port": ["0"]}, True, None, id="turned off"),
    pytest.param({"monitoring-port": ["9445"]}, True, (None, 9445), id="under its old name"),
])
def test_where_it_listens(
    words: dict[str, list[str]], in_pod: bool, expected: tuple[str | None, int] | None
) -> None:
    found = webhook.place_of(flags.read(words, {}), "kubeflow", in_pod=in_pod)

    assert expected == (None if found is None else (found.address.host, found.address.port))


async def test_a_certificate_that_somebody_brings_is_shown(tmp_path: Path) -> None:
    authority = certificates.authority("theirs", "", VirtualClock().now(), timedelta(days=1))
    shown = certificates.issued(authority, ["x"], VirtualClock().now(), timedelta(days=1))
    for name, pem in (("ca.crt", authority.certificate), ("tls.crt", shown.certificate), ("tls.key", shown.key)):
        (tmp_path / name).write_bytes(pem)
    async with embedded(VirtualClock()) as cluster:
        await cluster.client().create(VALIDATING_WEBHOOKS, door.configuration("default", PLACE.service))
        async with running(cluster, replace(PLACE, folder=tmp_path)):
            assert {base64.b64encode(authority.certificate).decode()} == await bundles(cluster)
            with pytest.raises(NotFound):
                await data(cluster)


async def test_a_port_that_is_taken_ends_the_process_with_a_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = Place(Address(f"127.0.0.1:{taken.getsockname()[1]}"), "default")
        async with embedded(VirtualClock()) as cluster:
            with pytest.raises(Taken, match=r"cannot listen on .* for the webhook"):
                async with webhook.serving(place, cluster.client(), cluster.clock, Health(), Metrics()):
                    await asyncio.Event().wait()
