"""What a wrong object is told, by a real kube-apiserver and by ours: sound objects of every kind, bent in one place.

A slice of the bends by default, all of them with FULL=1.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import orjson
import pytest
import yaml
from tests.kubernetes import clusters
from tests.kubernetes.bent import Bend, bends
from tests.kubernetes.control_plane import ControlPlane

from trainmaster.api.meta import Object, name_of
from trainmaster.cluster.apiserver import builtin
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Request, Transport

pytestmark = pytest.mark.kubernetes

FILES = ("objects.yaml", "more_objects.yaml")
EVERY = 1 if os.environ.get("FULL") == "1" else 11  # by default, one of so many bends
AT_ONCE = 8
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
CRASHED = 599  # our word for an answer that the real server does not live to give
# Where ours is another server on purpose, or because the other is set up differently: kind, bend, why.
ON_PURPOSE: tuple[tuple[str, str, str], ...] = (
    ("Pod", r"serviceAccountName", "the real one runs without its accounts plug-in"),
    ("Pod", r"securityContext\.privileged", "nobody set the policy here that forbids it"),
    ("Pod", r"preemptionPolicy", "refused as a value, before it is compared with that of the class"),
    ("StatefulSet", r"rollingUpdate\.maxUnavailable", "the real one leaves the field out; here somebody reads it"),
    ("CustomResourceDefinition", r"colour\.enum\[0\]", "a value that is listed twice is told once"),
    ("CustomResourceDefinition", r"colour\.maxLength := -1", "what is too long is told as any other"),
    ("CustomResourceDefinition", r"map\.additionalProperties\.type", "a key of a map is told without a dot"),
    ("MutatingWebhookConfiguration", r"service\.path := 'é'", "half a letter is no part of a path"),
)


def things() -> list[Object]:
    served = {(version, kind.resource.kind) for version, kinds in builtin.served().items() for kind in kinds}
    found = [thing for file in FILES for thing in yaml.safe_load_all(Path(__file__).with_name(file).read_text())]
    sound = [orjson.loads(orjson.dumps(thing, default=str)) for thing in found if thing]
    return [thing for thing in sound if (thing["apiVersion"], thing["kind"]) in served]


@pytest.fixture
async def both(control_plane: ControlPlane, embedded_server: clusters.Cluster) -> AsyncIterator[list[Transport]]:
    """The real server, and ours."""
    carriers = [transport(load(path)) for path in (control_plane.kubeconfig(), embedded_server.kubeconfig)]
    for name in ("default", "rich-account"):
        await clusters.without_token(Client(carriers[1]), "default", name)
    account = {"metadata": {"name": "rich-account"}}      # on the real one nobody asks whether it is there
    await carriers[0].send(Request("POST", ACCOUNTS, (), {"content-type": "application/json"}, orjson.dumps(account)))
    yield carriers
    for carrier in carriers:
        await carrier.close()


@pytest.mark.parametrize("thing", [pytest.param(thing, id=f"{thing['kind']} {name_of(thing)}") for thing in things()])
async def test_the_same_is_said_of_every_bend(thing: Object, both: list[Transport]) -> None:
    chosen = list(bends(thing))[::EVERY]
    limit = asyncio.Semaphore(AT_ONCE)

    async def compared(bend: Bend) -> str:
        async with limit:
            real, ours = await asyncio.gather(*(verdict(carrier, bend.of(thing)) for carrier in both))
        return "" if real == ours or real[0] == CRASHED or is_meant(thing, bend) else f"{bend}: {real}, ours {ours}"

    found = [said for said in await asyncio.gather(*(compared(bend) for bend in chosen)) if said]

    assert (await verdict(both[0], thing))[0] != CRASHED, "the real server is gone"
    assert not found, "\n".join(found)


async def verdict(carrier: Transport, thing: Object) -> tuple[int, Sequence[tuple[str, str, str]]]:
    """The code of the answer to a trial, and each cause it names: field, reason, and words that are comparable."""
    resource = next(
        each.resource for each in builtin.served()[thing["apiVersion"]] if each.resource.kind == thing["kind"]
    )
    path = resource.path("default" if resource.namespaced else "")
    headers = {"accept": "application/json", "content-type": "application/json"}
    try:
        answer = await carrier.send(Request("POST", path, (("dryRun", "All"),), headers, orjson.dumps(thing)))
    except Unreachable:
        return CRASHED, ()
    causes = (orjson.loads(answer.body).get("details") or {}).get("causes") or ()
    return answer.status, sorted(
        {(cause.get("field") or "", cause["reason"], words(cause["message"])) for cause in causes}
    )


def words(message: str) -> str:
    """Without values that Kubernetes shows as its programs hold them, where nothing and no value are told apart."""
    return re.sub(r" value: (null|[\[{].*([\]}]|\.\.\.)): ", " value: ...: ", message)


def is_meant(thing: Object, bend: Bend) -> bool:
    return any(kind == thing["kind"] and re.search(place, str(bend)) for kind, place, _why in ON_PURPOSE)
