"""The same webhook server behind a real kube-apiserver and behind the embedded one: writes end alike."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kubernetes import clusters
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.waiting import until
from tests.unit.cluster.apiserver.hook_cases import CASES, MAPS, Case, Settled, ask, config_map, played
from tests.unit.cluster.apiserver.hook_server import HookServer, Say, hook, hook_server

from trainmaster.api.core import DEFINITIONS, SERVICES, VALIDATING_WEBHOOKS
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Object
from trainmaster.api.schema import definitions
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, ApiError
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Transport
from trainmaster.operator import door, webhook
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.probes import Address, Health
from trainmaster.runtime.clock import RealClock

pytestmark = pytest.mark.kubernetes


class Lagging(Settled):
    """A real server learns of configurations through a watch of its own: a second webhook tells when it has."""

    def __init__(self, carrier: Transport, server: HookServer) -> None:
        self._carrier = carrier
        self._server = server

    def prepared(self, thing: Object) -> Object:
        probe = hook(self._server.client(f"/probe/{thing['kind']}"), "probe.example.com",
                     objectSelector={"matchLabels": {"probe": "yes"}})
        return {**thing, "webhooks": [*thing["webhooks"], probe]}

    async def wait(self, thing: Object, *, there: bool) -> None:
        async def settled() -> bool:
            self._server.asked.clear()
            await ask(self._carrier, "POST", MAPS, config_map("probe", {"probe": "yes"}), query="dryRun=All")
            return (f"/probe/{thing['kind']}" in self._server.paths) is there

        await until(settled, f"{thing['kind']} is {'in force' if there else 'forgotten'}")


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with hook_server() as found:
        yield found
    await until(lambda: _is(not held(found.port)), "the server has let go of its connections")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.when) for case in CASES])
async def test_the_table_is_what_the_real_server_answers(
    control_plane: ControlPlane, server: HookServer, case: Case
) -> None:
    carrier = transport(load(control_plane.kubeconfig()))
    try:
        said, asked = await played(carrier, server, case, Lagging(carrier, server))
    finally:
        await carrier.close()

    assert case.said == said or (case.ours and said)
    if case.asked is not None:
        assert sorted(case.asked) == sorted(path for path in asked if not path.startswith("/probe"))


async def test_both_servers_send_the_same_review(
    control_plane: ControlPlane, embedded_server: clusters.Cluster, server: HookServer
) -> None:
    case = Case("", (hook("/yes"),), {}, more=(hook("/first"),))
    seen = []
    for path in (control_plane.kubeconfig(), embedded_server.kubeconfig):
        carrier = transport(load(path))
        try:
            settled = Lagging(carrier, server)
            kept: list[tuple[str, Object]] = []
            case.says.clear()
            case.says["/yes"] = case.says["/first"] = _keeping(kept)
            await played(carrier, server, case, settled)
        finally:
            await carrier.close()
        seen.append(kept)

    assert [_comparable(request) for _, request in seen[0]] == [_comparable(request) for _, request in seen[1]]
    assert 2 == len(seen[0])


def _keeping(kept: list[tuple[str, Object]]) -> Say:
    def say(request: Object) -> Object:
        kept.append(("", request))
        return {"allowed": True}

    return say


def _comparable(request: Object) -> Object:
    """Without what is another on every server: identities, moments, who asks, and the managers of fields."""
    meta = {field: value for field, value in request["object"]["metadata"].items()
            if field not in {"uid", "creationTimestamp", "managedFields"}}
    return {**request, "uid": "", "userInfo": "", "object": {**request["object"], "metadata": meta}}


async def test_a_real_server_asks_the_operators_webhook(control_plane: ControlPlane) -> None:
    """With upstream's configuration, a Service, and the certificate that the operator makes and writes into it."""
    async with connected(control_plane.kubeconfig("operator")) as client:
        for definition in definitions():
            with contextlib.suppress(AlreadyExists):
                await client.create(DEFINITIONS, definition)
        place = webhook.Place(Address("127.0.0.1:0"), "default")
        async with webhook.serving(place, client, RealClock(), Health(), Metrics()) as served:
            await until(lambda: _is(served.ready), "the webhook is ready")
            # A real cluster has a network that leads to pods; here the Service leads to loopback.
            await client.create(SERVICES, {"metadata": {"name": place.service, "namespace": "default"}, "spec": {
                "type": "ExternalName", "externalName": "localhost"}})
            wanted = door.configuration("default", place.service)
            for each in wanted["webhooks"]:
                each["clientConfig"]["service"]["port"] = served.port
            await client.create(VALIDATING_WEBHOOKS, wanted)
            try:
                await until(lambda: _said(client, job("", "0th")), "the webhook is asked")
                refused = await _said(client, job("", "1st"))
                taken = await _said(client, job("x:1", "fine"))
            finally:
                await client.delete(VALIDATING_WEBHOOKS, door.NAME)
                await client.delete(SERVICES, place.service, "default")
                for definition in definitions():
                    await client.delete(DEFINITIONS, definition["metadata"]["name"])
        await until(lambda: _is(not held(served.port)), "the server has let go of its connections")

    assert "" == taken
    assert refused.startswith('admission webhook "validator.tfjob.training-operator.kubeflow.org" denied the request: '
                              '[metadata.name: Invalid value: "1st": should match: a DNS-1035 label')
    assert refused.endswith("spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required value: must be "
                            "required]")


def job(image: str, name: str) -> Object:
    container = {"name": "tensorflow", **({"image": image} if image else {})}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name, "namespace": "default"},
            "spec": {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [container]}}}}}}


async def _said(client: Client, thing: Object) -> str:
    """What the webhook says to a creation; nothing if it was not asked, or had nothing to say."""
    try:
        await client.request("POST", KINDS[0].resource.path("default"), query=[("dryRun", "All")], body=thing)
    except ApiError as problem:
        return str(problem) if "admission webhook" in str(problem) else ""
    return ""


def held(port: int) -> list[str]:
    """Connections to a port of ours that is closed by now: the other side keeps its end until it hears of that."""
    lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return [peer for _, local, peer, state, *_ in lines if local.endswith(f":{port:04X}") and state in {"01", "08"}]


async def _is(value: bool) -> bool:
    return value
