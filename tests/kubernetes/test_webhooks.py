"""The same webhook server behind a real kube-apiserver and behind the embedded one: writes end alike."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.kubernetes import clusters
from tests.kubernetes.control_plane import ControlPlane
from tests.unit.cluster.apiserver.hook_cases import CASES, MAPS, Case, Settled, ask, config_map, played
from tests.unit.cluster.apiserver.hook_server import HookServer, hook, hook_server

from trainmaster.api.meta import Object
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Transport

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
        for _ in range(500):
            self._server.asked.clear()
            await ask(self._carrier, "POST", MAPS, config_map("probe", {"probe": "yes"}), query="dryRun=All")
            if (f"/probe/{thing['kind']}" in self._server.paths) is there:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{thing['kind']} did not come into force")


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with hook_server() as found:
        yield found


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


def _keeping(kept: list[tuple[str, Object]]):  # type: ignore[no-untyped-def]
    def say(request: Object) -> Object:
        kept.append(("", request))
        return {"allowed": True}

    return say


def _comparable(request: Object) -> Object:
    """Without what is another on every server: identities, moments, who asks, and the managers of fields."""
    meta = {field: value for field, value in request["object"]["metadata"].items()
            if field not in {"uid", "creationTimestamp", "managedFields"}}
    return {**request, "uid": "", "userInfo": "", "object": {**request["object"], "metadata": meta}}
