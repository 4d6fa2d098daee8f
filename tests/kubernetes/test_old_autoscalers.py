"""Autoscalers where they have only the name of Kubernetes 1.22, on a real server that is told to serve no other.

1.22 itself cannot be built from its modules (docs/design/test-kubernetes.md); 1.24 is the last but one that has
`autoscaling/v2beta2`, and with `autoscaling/v2` turned off it answers as 1.22 does.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.kubernetes import control_plane as real
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.fake_kubelet import end
from tests.kubernetes.waiting import until

from trainmaster.api.core import AUTOSCALERS, DEFINITIONS, PODS
from trainmaster.api.kubeflow_v1 import PYTORCH_JOB
from trainmaster.api.meta import Object, name_of
from trainmaster.api.schema import definitions
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.operator import process
from trainmaster.operator.config import Settings
from trainmaster.operator.process import Process
from trainmaster.runtime.clock import RealClock

pytestmark = [pytest.mark.kubernetes, pytest.mark.full]

SERVER, NAMESPACE, NAME = "kube-apiserver-1.24.17", "default", "mnist"
OLD = AUTOSCALERS._replace(version="v2beta2")
JOBS = PYTORCH_JOB.resource
PATIENCE = 60.0
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
JOB = {
    "apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": NAME},
    "spec": {
        "elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "metrics": [CPU]},
        "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {
            "spec": {"containers": [{"name": "pytorch", "image": "example.com/mnist:1"}]}}}},
    },
}


@asynccontextmanager
async def operating(kubeconfig: Path) -> AsyncIterator[None]:
    """Our operator at work, as its process runs it."""
    stop, ready = asyncio.Event(), asyncio.Event()
    wanted = Process(Settings(kinds=(JOBS.kind,)))
    working = asyncio.create_task(
        process.run(wanted, transport(load(kubeconfig)), "test", RealClock(), stop, ready.set)
    )
    try:
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
        yield
    finally:
        stop.set()
        await working


async def autoscaler(client: Client) -> Object:
    """The job's, empty if there is none."""
    try:
        return await client.get(OLD, NAME, NAMESPACE)
    except NotFound:
        return {}


async def test_an_autoscaler_follows_its_job_and_goes_with_it(binaries: Binaries, tmp_path: Path) -> None:
    programs = binaries("etcd", SERVER)
    with real.running(programs, tmp_path, "--runtime-config=autoscaling/v2=false", apiserver=SERVER) as plane:
        async with connected(plane.kubeconfig()) as client:
            with pytest.raises(NotFound):
                await client.list(AUTOSCALERS, NAMESPACE)
            await client.create(DEFINITIONS, next(found for found in definitions() if JOBS.plural in name_of(found)))
            async with operating(plane.kubeconfig()):
                await client.create(JOBS, JOB, namespace=NAMESPACE)

                async def says(most: int) -> bool:
                    return bool((await autoscaler(client)).get("spec", {}).get("maxReplicas") == most)

                await until(lambda: says(3), "the autoscaler is there")
                assert [CPU] == (await autoscaler(client))["spec"]["metrics"]

                await client.patch(JOBS, NAME, NAMESPACE, {"spec": {"elasticPolicy": {"maxReplicas": 5}}})
                await until(lambda: says(5), "it follows the job")

                async def has_pods() -> bool:
                    return len((await client.list(PODS, NAMESPACE)).items) == 2

                await until(has_pods, "the job has its pods")
                await end(client, f"{NAME}-worker-0", NAMESPACE)

                async def is_alone() -> bool:
                    return not await autoscaler(client)

                await until(is_alone, "the autoscaler goes when the job ends")
