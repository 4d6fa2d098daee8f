"""The Node object of this machine, and the lease that says it is alive."""

import asyncio
import os
import platform
from datetime import datetime
from pathlib import Path

import trainmaster
from trainmaster.api.core import LEASES, NODES
from trainmaster.api.meta import Object, micro_timestamp, timestamp
from trainmaster.cluster.kubelet.holder import GATEWAY
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("kubelet")

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40          # as Kubernetes: a node that is silent for so long is not ready
RENEW_SECONDS = 10.0
REPORT_SECONDS = 300.0      # the status itself, when nothing changes
MOST_PODS = "250"
# What kubectl prints as the node's version; the API level that the embedded cluster speaks.
KUBELET_VERSION = "v1.32.0"

_HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


async def register(settings: NodeSettings, client: Client, clock: Clock) -> Object:
    """Have the Node object, and say what the machine offers. Repeats until the API takes it."""
    wanted = node(settings)
    try:
        found = await client.create(NODES, wanted)
    except AlreadyExists:
        found = await client.get(NODES, settings.name)
        about = found["metadata"]
        about["labels"] = {**(about.get("labels") or {}), **wanted["metadata"]["labels"]}
        found = await client.replace(NODES, found)
    return await _report(settings, client, clock, found)


async def keep_alive(settings: NodeSettings, client: Client, clock: Clock) -> None:
    """Renew the lease, and the status now and then, until cancelled."""
    last_report = clock.monotonic()
    trouble = False
    while True:
        try:
            await _renew(settings.name, client, clock)
            if clock.monotonic() - last_report >= REPORT_SECONDS:
                await _report(settings, client, clock, await client.get(NODES, settings.name))
                last_report = clock.monotonic()
            trouble = False
        except NotFound:
            await asyncio.shield(register(settings, client, clock))    # somebody deleted our Node
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
        "ephemeral-storage": f"{space.f_blocks * space.f_frsize // 1024}Ki", **settings.resources,
    }


def status(settings: NodeSettings, before: Object, now: datetime) -> Object:
    """The Node's status; a condition keeps the time at which it became what it is."""
    known = {one.get("type"): one for one in before.get("conditions") or ()}
    conditions = []
    for kind, (value, reason, message) in _HEALTHY.items():
        old = known.get(kind) or {}
        since = old.get("lastTransitionTime") if old.get("status") == value else None
        conditions.append({
            "type": kind, "status": value, "reason": reason, "message": message,
            "lastHeartbeatTime": timestamp(now), "lastTransitionTime": since or timestamp(now),
        })
    others = [one for kind, one in known.items() if kind not in _HEALTHY]
    offers = offered(settings)
    return {
        **before, "capacity": offers, "allocatable": offers, "conditions": conditions + others,
        "addresses": [{"type": "InternalIP", "address": GATEWAY}, {"type": "Hostname", "address": settings.name}],
        "nodeInfo": _node_info(),
    }


async def _report(settings: NodeSettings, client: Client, clock: Clock, found: Object) -> Object:
    while True:
        found["status"] = status(settings, found.get("status") or {}, clock.now())
        try:
            return await client.replace(NODES, found, subresource="status")
        except Conflict:
            found = await client.get(NODES, settings.name)


async def _renew(name: str, client: Client, clock: Clock) -> None:
    now = micro_timestamp(clock.now())
    try:
        await client.patch(LEASES, name, LEASE_NAMESPACE, {"spec": {"renewTime": now}})
    except NotFound:
        lease = {
            "apiVersion": LEASES.api_version, "kind": "Lease",
            "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        }
        await client.create(LEASES, lease)


def _node_info() -> Object:
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "bootID": _text("/proc/sys/kernel/random/boot_id"),
        "containerRuntimeVersion": f"trainmaster://{trainmaster.__version__}",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": KUBELET_VERSION,
        "kubeletVersion": KUBELET_VERSION,
        "machineID": _text("/etc/machine-id"),
        "operatingSystem": "linux",
        "osImage": _os_name(_text("/etc/os-release")),
        "systemUUID": _text("/etc/machine-id"),
    }


def _os_name(release: str) -> str:
    for line in release.splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return "Linux"


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
