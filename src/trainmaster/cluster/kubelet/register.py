"""The Node object of this machine, and the lease that says it is alive."""

import asyncio
import os
import platform
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

import trainmaster
from trainmaster.api.core import LEASES, NODE_LEASES, NODES, RELEASE_IN_FULL
from trainmaster.api.meta import Object, micro_timestamp, timestamp
from trainmaster.cluster.kubelet.holder import GATEWAY
from trainmaster.cluster.kubelet.machinefiles import text_of
from trainmaster.cluster.kubelet.pressure import DISK, MEMORY, Machine, measured, shortages
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("kubelet")

LEASE_SECONDS = 40          # as Kubernetes: a node that is silent for so long is not ready
RENEW_SECONDS = 10.0
REPORT_SECONDS = 300.0      # the status itself, when nothing changes
MOST_PODS = "250"

_HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


Notes: TypeAlias = Callable[[], Mapping[str, tuple[str, str, str]]]     # further conditions: status, reason, message


def no_notes() -> Mapping[str, tuple[str, str, str]]:
    return {}


async def register(settings: NodeSettings, client: Client, clock: Clock, notes: Notes = no_notes) -> Object:
    """Have the Node object, and say what the machine offers. Repeats until the API takes it."""
    wanted = node(settings)
    try:
        found = await client.create(NODES, wanted)
    except AlreadyExists:
        found = await client.get(NODES, settings.name)
        about = found["metadata"]
        about["labels"] = {**(about.get("labels") or {}), **wanted["metadata"]["labels"]}
        found = await client.replace(NODES, found)
    return await _report(settings, client, clock, found, conditions(measured(settings.run), notes()))


async def keep_alive(settings: NodeSettings, client: Client, clock: Clock, notes: Notes = no_notes) -> None:
    """Renew the lease, and the status when it changes and now and then, until cancelled."""
    last_report = clock.monotonic()
    said: Mapping[str, tuple[str, str, str]] = {}
    trouble = False
    while True:
        try:
            await _renew(settings.name, client, clock)
            # Each time, as a kubelet does: pods of a node that is not there are let go before the next report.
            found = await client.get(NODES, settings.name)
            wanted = conditions(measured(settings.run), notes())
            if wanted != said or clock.monotonic() - last_report >= REPORT_SECONDS:
                await _report(settings, client, clock, found, wanted)
                last_report, said = clock.monotonic(), wanted
            trouble = False
        except NotFound:
            await asyncio.shield(register(settings, client, clock, notes))    # somebody deleted our Node
        except KubeError as error:
            if not trouble:
                log.warning("the node's lease could not be renewed, trying again", cause=error)
            trouble = True
        await clock.sleep(RENEW_SECONDS)


def node(settings: NodeSettings) -> Object:
    """The Node object without its status."""
    machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": settings.name,
            "labels": {
                "kubernetes.io/hostname": settings.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": machine,
                "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": machine,
            },
        },
        "spec": {},
    }


def offered(settings: NodeSettings) -> dict[str, str]:
    """Capacity; all of it is allocatable, since what we need ourselves is small and the machine is shared anyway."""
    space = os.statvfs(settings.run)
    return {
        "cpu": settings.cpus, "memory": settings.memory, "pods": MOST_PODS,
        "ephemeral-storage": f"{space.f_blocks * space.f_frsize // 1024 // settings.share}Ki", **settings.resources,
    }


def conditions(machine: Machine, notes: Mapping[str, tuple[str, str, str]]) -> dict[str, tuple[str, str, str]]:
    """What is true of the node: status, reason and message by type. Pure."""
    found, short = dict(_HEALTHY), {one.resource for one in shortages(machine)}
    if MEMORY in short:
        found["MemoryPressure"] = ("True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
    if DISK in short:
        found["DiskPressure"] = ("True", "KubeletHasDiskPressure", "kubelet has disk pressure")
    if machine.processes is not None and machine.processes[0] > machine.processes[1] * 0.9:
        found["PIDPressure"] = ("True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available")
    return {**notes, **found}


def status(settings: NodeSettings, before: Object, now: datetime,
           wanted: Mapping[str, tuple[str, str, str]] = _HEALTHY) -> Object:
    """The Node's status; a condition keeps the time at which it became what it is."""
    known = {one.get("type"): one for one in before.get("conditions") or ()}
    conditions = []
    for kind, (value, reason, message) in wanted.items():
        old = known.get(kind) or {}
        since = old.get("lastTransitionTime") if old.get("status") == value else None
        conditions.append({
            "type": kind, "status": value, "reason": reason, "message": message,
            "lastHeartbeatTime": timestamp(now), "lastTransitionTime": since or timestamp(now),
        })
    others = [one for kind, one in known.items() if kind not in wanted]
    offers = offered(settings)
    return {
        **before, "capacity": offers, "allocatable": offers, "conditions": conditions + others,
        "addresses": [{"type": "InternalIP", "address": GATEWAY}, {"type": "Hostname", "address": settings.name}],
        "nodeInfo": _node_info(),
    }


async def _report(
    settings: NodeSettings, client: Client, clock: Clock, found: Object, wanted: Mapping[str, tuple[str, str, str]]
) -> Object:
    while True:
        found["status"] = status(settings, found.get("status") or {}, clock.now(), wanted)
        try:
            return await client.replace(NODES, found, subresource="status")
        except Conflict:
            found = await client.get(NODES, settings.name)


async def _renew(name: str, client: Client, clock: Clock) -> None:
    now = micro_timestamp(clock.now())
    try:
        await client.patch(LEASES, name, NODE_LEASES, {"spec": {"renewTime": now}})
    except NotFound:
        lease = {
            "apiVersion": LEASES.api_version, "kind": "Lease",
            "metadata": {"name": name, "namespace": NODE_LEASES},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        }
        await client.create(LEASES, lease)


def _node_info() -> Object:
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "bootID": text_of("/proc/sys/kernel/random/boot_id").strip(),
        "containerRuntimeVersion": f"trainmaster://{trainmaster.__version__}",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": RELEASE_IN_FULL,
        "kubeletVersion": RELEASE_IN_FULL,
        "machineID": text_of("/etc/machine-id").strip(),
        "operatingSystem": "linux",
        "osImage": _os_name(text_of("/etc/os-release")),
        "systemUUID": text_of("/etc/machine-id").strip(),
    }


def _os_name(release: str) -> str:
    for line in release.splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return "Linux"


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
