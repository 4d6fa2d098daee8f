"""The service `kubernetes` in the namespace `default`: where pods and tools find the API server.

It has no selector, so its Endpoints and its slice are written here, and put right when somebody changes them. The
address is an argument: what is reachable depends on where the cluster's network is, which is not known here.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.core import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from trainmaster.api.meta import Object, Resource, being_deleted, labels_of, metadata
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.slices import SERVICE_NAME
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

NAME, NAMESPACE = "kubernetes", "default"
# The first address of the service network, as in every Kubernetes; the server keeps it free.
CLUSTER_ADDRESS = "10.96.0.1"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API server is reached."""

    address: str
    port: int


async def begin(client: Client, api: Api) -> None:
    """Announce once, before the server says that it is ready: the first pod has its address among its variables."""
    for resource, wanted in _wanted(api):
        try:
            found = await client.get(resource, NAME, NAMESPACE)
        except NotFound:
            found = None
        await _settle(client, resource, found, wanted)


async def run(client: Client, clock: Clock, kinds: Kinds, api: Api) -> None:
    """Announce until cancelled."""
    async with asyncio.TaskGroup() as group:
        for resource, wanted in _wanted(api):
            group.create_task(_keep(client, clock, kinds, resource, wanted))


def _wanted(api: Api) -> list[tuple[Resource, Object]]:
    return [(SERVICES, service(api)), (ENDPOINTS, endpoints(api)), (ENDPOINT_SLICES, endpoint_slice(api))]


def service(api: Api) -> Object:
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": api.port}]
    about = _about({"component": "apiserver", "provider": "kubernetes"})
    spec = {"clusterIP": CLUSTER_ADDRESS, "type": "ClusterIP", "ports": ports, "sessionAffinity": "None"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def endpoints(api: Api) -> Object:
    subset = {"addresses": [{"ip": api.address}], "ports": [{"name": "https", "port": api.port, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": _about({SKIP_MIRROR: "true"}), "subsets": [subset]}


def endpoint_slice(api: Api) -> Object:
    return {
        "apiVersion": ENDPOINT_SLICES.api_version, "kind": ENDPOINT_SLICES.kind,
        "metadata": _about({SERVICE_NAME: NAME}),
        "addressType": "IPv6" if ":" in api.address else "IPv4",
        "endpoints": [{"addresses": [api.address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": api.port, "protocol": "TCP"}],
    }


def right(found: Object, wanted: Object) -> Object | None:
    """What is there, put right; None if it is. Labels and fields that are not ours stay."""
    labels = {**labels_of(found), **metadata(wanted)["labels"]}
    ours = {field: value for field, value in wanted.items() if field not in ("apiVersion", "kind", "metadata")}
    if "spec" in ours:
        there = found.get("spec") or {}
        # The address of a service cannot change: one that was made by other hands keeps its own.
        kept = {"clusterIP": there["clusterIP"]} if there.get("clusterIP") else {}
        ours["spec"] = {**there, **ours["spec"], **kept}
    made = {**found, **ours, "metadata": {**metadata(found), "labels": labels}}
    return None if made == found else made


async def _keep(client: Client, clock: Clock, kinds: Kinds, resource: Resource, wanted: Object) -> None:
    await kinds.until(resource)
    informer = Informer(client, resource, clock=clock, namespace=NAMESPACE, fields=f"metadata.name={NAME}")

    async def reconcile(_key: str) -> datetime | None:
        await _settle(client, resource, informer.copy.get(NAMESPACE, NAME), wanted)
        return None

    controller: Controller[str] = Controller(
        f"announce-{resource.plural}", reconcile, clock=clock, workers=1, informers=[informer]
    )
    informer.on_change(lambda _before, _after: controller.queue.add(NAME))
    controller.queue.add(NAME)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run())
        group.create_task(controller.run())


async def _settle(client: Client, resource: Resource, found: Object | None, wanted: Object) -> None:
    if found is None:
        with suppress(AlreadyExists):    # its watch is about to show it
            await client.create(resource, wanted)
    elif not being_deleted(found) and (better := right(found, wanted)) is not None:
        await client.replace(resource, better)


def _about(labels: dict[str, str]) -> Object:
    return {"name": NAME, "namespace": NAMESPACE, "labels": labels}
