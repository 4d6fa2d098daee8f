"""The embedded server beside the real one, kind by kind: what it adds to an object, what it says of a wrong one, and
what `kubectl get` prints of it."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import yaml
from tests.kubernetes import clusters
from tests.kubernetes.control_plane import ControlPlane
from tests.unit.cluster.apiserver.refusals_table import Row, comparable, rows

from trainmaster.api.meta import Json, Object, Resource, name_of, namespace_of
from trainmaster.cluster.apiserver import builtin
from trainmaster.kube.client import Client
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Request, Transport

pytestmark = pytest.mark.kubernetes

MINIMAL: list[Object] = list(yaml.safe_load_all(Path(__file__).with_name("minimal.yaml").read_text()))
ELSEWHERE = "elsewhere"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# Where the embedded server is another one on purpose: the kind, and the fields of its spec that differ.
ON_PURPOSE = {
    "Node": ("taints",),                                        # nobody here takes the taint of a new node away again
    "Pod": ("serviceAccountName", "serviceAccount", "tolerations"),     # the real one runs without its accounts plug-in
}
# Kinds on which controllers act, and on the real server nobody: they are looked at before they are stored.
ACTED_ON = frozenset({"Deployment", "Job", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget",
                      "ReplicaSet", "ReplicationController", "ResourceQuota", "StatefulSet"})
# Ports are given out only to what is stored: a trial run would not get so far.
GIVEN_OUT = "Internal error occurred: failed to allocate"
_RANDOM = (
    (re.compile(r'"10\.96\.\d+\.\d+"'), '"ADDRESS"'),
    (re.compile(r'"lastPhaseTransitionTime":"[^"]*"'), '"lastPhaseTransitionTime":"MOMENT"'),
)


@pytest.fixture
async def both(control_plane: ControlPlane, embedded_server: clusters.Cluster) -> AsyncIterator[list[Transport]]:
    """The real server, and ours."""
    carriers = [transport(load(path)) for path in (control_plane.kubeconfig(), embedded_server.kubeconfig)]
    for carrier in carriers:
        await ask(carrier, "POST", "/api/v1/namespaces", {"metadata": {"name": ELSEWHERE}})
    for name in ("default", "builder"):
        await clusters.without_token(Client(carriers[1]), "default", name)
    yield carriers
    for carrier in carriers:
        await carrier.close()


async def ask(carrier: Transport, method: str, path: str, body: Json = None, *, accept: str = "application/json",
              media: str = "application/json", dry: bool = False) -> tuple[int, Object]:
    query = (("dryRun", "All"),) if dry else ()
    sent = b"" if body is None else json.dumps(body).encode()
    answer = await carrier.send(Request(method, path, query, {"accept": accept, "content-type": media}, sent))
    return answer.status, orjson.loads(answer.body)


def place_of(thing: Object) -> tuple[Resource, str]:
    resource = next(each.resource for each in builtin.served()[thing["apiVersion"]]
                    if each.resource.kind == thing["kind"])
    return resource, (namespace_of(thing) or "default") if resource.namespaced else ""


async def made(carrier: Transport, thing: Object) -> Object:
    """The object as it is stored; one that an earlier test left is replaced."""
    resource, namespace = place_of(thing)
    code, found = await ask(carrier, "POST", resource.path(namespace), thing)
    if code == 409 or "already allocated" in found.get("message", ""):
        code, found = await ask(carrier, "GET", resource.path(namespace, name_of(thing)))
    assert code < 300, found
    return found


def without_identity(thing: Object) -> Object:
    """What is the same on both servers, if they agree."""
    meta = thing["metadata"]
    uid = meta["uid"]
    kept = {field: value for field, value in meta.items()
            if field not in {"uid", "resourceVersion", "creationTimestamp", "managedFields"}}
    text = orjson.dumps({**thing, "metadata": kept}, option=orjson.OPT_SORT_KEYS).decode().replace(uid, "UID")
    for pattern, word in _RANDOM:
        text = pattern.sub(word, text)
    found: Object = orjson.loads(text)
    for field in ON_PURPOSE.get(thing["kind"], ()):
        found["spec"].pop(field, None)
    return found


each_kind = pytest.mark.parametrize("thing", [
    pytest.param(thing, id=f"{thing['apiVersion']} {thing['kind']} {name_of(thing)} {namespace_of(thing)}".strip())
    for thing in MINIMAL])


@each_kind
async def test_the_same_is_added(thing: Object, both: list[Transport]) -> None:
    real, ours = [without_identity(await made(carrier, thing)) for carrier in both]

    assert real == ours


@each_kind
async def test_the_same_columns_are_printed(thing: Object, both: list[Transport]) -> None:
    resource, namespace = place_of(thing)
    heads, cells = [], []
    for carrier in both:
        if thing["kind"] in ACTED_ON:
            fresh = {**thing, "metadata": {**thing["metadata"], "name": f"{name_of(thing)}-fresh"}}
            _, found = await ask(carrier, "POST", resource.path(namespace), fresh, accept=TABLE, dry=True)
        else:
            await made(carrier, thing)
            _, found = await ask(carrier, "GET", resource.path(namespace, name_of(thing)), accept=TABLE)
        heads.append([(each["name"], each["type"], each["format"], each["priority"])
                      for each in found["columnDefinitions"]])
        cells.append([_said(cell) for cell in found["rows"][0]["cells"]])

    assert heads[0] == heads[1]
    assert cells[0] == cells[1]


def _said(cell: Json) -> Json:
    """A cell without what differs from run to run: ages, addresses, names of jobs."""
    text = re.sub(r"^(\d+[smhdy])+$|^\d{4}-\d\d-\d\dT.*Z$", "AGE", str(cell))
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
    return re.sub(r"^10\.96\.\d+\.\d+$", "ADDRESS", text)


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.family}: {row.when}") for row in rows()])
async def test_the_same_is_refused(row: Row, control_plane: ControlPlane) -> None:
    """The embedded server has these rows in its unit tests; here they are held against the real one."""
    carrier = transport(load(control_plane.kubeconfig()))
    try:
        answer = await refused(carrier, row)
    finally:
        await carrier.close()

    assert row.said == comparable(answer[0], answer[1].get("message", ""))


async def refused(carrier: Transport, row: Row) -> tuple[int, Object]:
    path = row.resource.path(row.namespace)
    if row.change is None and row.status is None:
        return await ask(carrier, "POST", path, row.thing, dry=not row.said.startswith(GIVEN_OUT))
    one = row.resource.path(row.namespace, name_of(row.thing))
    code, found = await ask(carrier, "POST", path, row.thing)
    assert code == 201, found
    merge = "application/merge-patch+json"
    if row.first is not None:
        code, found = await ask(carrier, "PATCH", f"{one}/status", {"status": row.first}, media=merge)
        assert code == 200, found
    change, path = (row.change, one) if row.status is None else ({"status": row.status}, f"{one}/status")
    answer = await ask(carrier, "PATCH", path, change, media=merge)
    await ask(carrier, "PATCH", one, {"metadata": {"finalizers": None}}, media=merge)
    _, left = await ask(carrier, "DELETE", one, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    if left.get("kind") == "Namespace":      # nobody here empties it
        await ask(carrier, "PUT", f"{one}/finalize", {**left, "spec": {"finalizers": []}})
    return answer
