"""Other people's clients, unmodified, against the control plane that `trainmaster up` starts, over TLS.

Each has a program in its own words (`clients/day_*.py`): create, read, list in pages, watch and resume, JSON and merge
patch, delete with each propagation, define and use a kind of one's own. All of them must print the same lines, so
nothing depends on how a client was asked. They run as processes of their own and see none of our packages.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.conformance import environments
from tests.kubernetes import clusters
from tests.kubernetes.access import connected

from trainmaster.api.core import NAMESPACES

PROGRAMS = Path(__file__).parent / "clients"
PATIENCE = 300.0
DAY = """\
created {'a': '1'}
again 409 AlreadyExists []
read {'a': '1'}
merge patch {'a': '1', 'b': '2'}
json patch {'b': '2'}
stale 409 Conflict []
replaced {'c': '3'}
pages ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6']
left 0
watched ['ADDED', 'MODIFIED', 'DELETED']
resumed ['MODIFIED', 'DELETED']
Orphan MODIFIED 0
its owner orphan DELETED
Background DELETED 1
its owner gone DELETED
Foreground DELETED 1
its owner foregroundDeletion DELETED
definition ['Established', 'NamesAccepted']
custom {'size': 1}
invalid 422 Invalid ['spec.size']
patched {'size': 2}
status {'size': 2} {'phase': 'Ready'}
listed ['f']
gone 404 NotFound []
"""
PODS = """\
version 1
created Pending
bound machine
strategic {'a': 'b', 'x': 'y'}
json patch {'a': 'b'}
watched [('ADDED', 'p')]
dynamic ['p']
graceful 30
gone 404 Not Found
"""
TRAINING = """\
running KubeflowOrgV1TFJob 2
pods ['good-chief-0', 'good-worker-0', 'good-worker-1']
master ['good-chief-0']
logs {'good-chief-0': 'epoch 1\\n'}
updated {'team': 'a'}
conditions ['Created', 'Succeeded']
succeeded True False
listed ['from-an-image', 'good']
again True
left []
PyTorchJob ['pytorch-master-0', 'pytorch-worker-0'] [('pytorch-master-0', 'epoch 1\\n')] ['pytorch']
PyTorchJob ['Created', 'Succeeded'] []
XGBoostJob ['xgboost-master-0', 'xgboost-worker-0'] [('xgboost-master-0', 'epoch 1\\n')] ['xgboost']
XGBoostJob ['Created', 'Succeeded'] []
PaddleJob ['paddle-master-0', 'paddle-worker-0'] [('paddle-master-0', 'epoch 1\\n')] ['paddle']
PaddleJob ['Created', 'Succeeded'] []
JAXJob ['jax-worker-0'] [('jax-worker-0', 'epoch 1\\n')] ['jax']
JAXJob ['Created', 'Succeeded'] []
"""
FUNCTION = """\
pods ['fn-master-0', 'fn-worker-0', 'fn-worker-1']
runs ['bash', '-c'] True True
told {'MASTER_ADDR': 'fn-master-0', 'WORLD_SIZE': '6', 'RANK': '0', 'PET_NNODES': '3', 'PET_NPROC_PER_NODE': '2'}
asks {'cpu': '1', 'memory': '1Gi'}
succeeded True
left []
"""
INSTALLED = ""  # what is in the environment of the tests


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    with clusters.embedded_with_kubelet(tmp_path_factory.mktemp("clients")) as cluster:
        asyncio.run(clusters.prepare(cluster))
        yield cluster


async def said(program: str, packages: str, cluster: clusters.Cluster, namespace: str, home: Path) -> tuple[str, str]:
    """What a program printed, and what it complained about."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    command = [sys.executable, "-W", "ignore"]
    if packages != INSTALLED:
        environment["PYTHONPATH"] = str(await asyncio.to_thread(environments.packages, packages))
        command.append("-S")  # nothing but these packages and Python itself
    process = await asyncio.create_subprocess_exec(
        *command, str(PROGRAMS / program), str(cluster.kubeconfig), namespace, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode(), err.decode()


async def namespace(cluster: clusters.Cluster, name: str) -> str:
    async with connected(cluster.kubeconfig) as client:
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.mark.parametrize(("program", "packages"), [
    pytest.param("day_kubernetes.py", "kubernetes-25", id="kubernetes 25"),
    pytest.param("day_kubernetes.py", "kubernetes-31", id="kubernetes 31"),
    pytest.param("day_kubernetes.py", INSTALLED, id="kubernetes, the newest"),
    pytest.param("day_kubernetes_asyncio.py", "kubernetes-asyncio", id="kubernetes_asyncio"),
    pytest.param("day_kr8s.py", "kr8s", id="kr8s"),
    pytest.param("day_lightkube.py", "lightkube", id="lightkube"),
])
async def test_a_day_with(cluster: clusters.Cluster, program: str, packages: str, tmp_path: Path) -> None:
    where = await namespace(cluster, packages or "newest")
    out, err = await said(program, packages, cluster, where, tmp_path)

    assert DAY == out, err


@pytest.mark.parametrize("packages", [
    pytest.param("kubernetes-25", id="kubernetes 25"),
    pytest.param("kubernetes-31", id="kubernetes 31"),
    pytest.param(INSTALLED, id="kubernetes, the newest"),
])
async def test_pods_with(cluster: clusters.Cluster, packages: str, tmp_path: Path) -> None:
    where = await namespace(cluster, f"pods-{packages or 'newest'}")
    out, err = await said("pods_kubernetes.py", packages, cluster, where, tmp_path)

    assert PODS == out, err


@pytest.fixture
async def logs(cluster: clusters.Cluster) -> AsyncIterator[None]:
    """The node's end of the way that logs come; the pods of this cluster are played and say nothing."""
    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="epoch 1\n")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    await web.UnixSite(runner, str(cluster.kubeconfig.parent / "run" / "kubelet.sock")).start()
    yield
    await runner.cleanup()


@pytest.mark.usefixtures("logs")
async def test_a_day_with_the_training_sdk(cluster: clusters.Cluster, tmp_path: Path) -> None:
    out, err = await said("day_kubeflow_training.py", "kubeflow-training", cluster, clusters.NAMESPACE, tmp_path)

    assert TRAINING == out, err


async def test_a_function_as_a_job_with_the_training_sdk(cluster: clusters.Cluster, tmp_path: Path) -> None:
    out, err = await said("function_kubeflow_training.py", "kubeflow-training", cluster, clusters.NAMESPACE, tmp_path)

    assert FUNCTION == out, err
