"""Kubernetes' own conformance tests on the embedded server: those that pass today must go on passing.

The list beside this file names them all; the slice that always runs is a fixed handful of different subjects. To see
how many more pass by now, and to extend the list:

    python tests/kubernetes/conformance.py KUBECONFIG LIST
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.kubernetes import clusters, conformance, fake_kubelet
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries

from trainmaster.api.core import SERVICES
from trainmaster.kube.errors import AlreadyExists

pytestmark = pytest.mark.kubernetes

PASSING = Path(__file__).with_name("conformance-passing.txt")
# Subjects that everything else of ours stands on, few enough to run always.
SLICE = frozenset(
    f"{name} [Conformance]"
    for name in (
        "[sig-api-machinery] Namespaces [Serial] should apply a finalizer to a Namespace",
        "[sig-api-machinery] Watchers should be able to start watching from a specific resource version",
        "[sig-api-machinery] Watchers should receive events on concurrent watches in same order",
        "[sig-cli] Kubectl client Kubectl server-side dry-run should check if kubectl can dry-run update Pods",
        "[sig-instrumentation] Events should manage the lifecycle of an event",
        "[sig-network] Services should complete a service status lifecycle",
        "[sig-node] ConfigMap should run through a ConfigMap lifecycle",
        "[sig-node] Lease lease API should be available",
        "[sig-node] Node Lifecycle should run through the lifecycle of a node",
        "[sig-storage] Secrets should be immutable if `immutable` field is set",
    )
)


each_passing_test = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=name, marks=() if name in SLICE else pytest.mark.full)
        for name in conformance.names_in(PASSING)
    ],
)


@pytest.fixture(scope="session")
def verdicts(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, conformance.Verdict]]:
    """Of all conformance tests that are asked for in this session, run two at a time on one server."""
    asked = [name for item in request.session.items if (name := name_in(item))]
    programs, folder = binaries("e2e.test", "kubectl"), tmp_path_factory.mktemp("conformance")
    with clusters.embedded(folder) as cluster:
        asyncio.run(set_scene(cluster))
        suite = conformance.Suite(programs, cluster.kubeconfig, folder / "logs", accounts=False)
        yield {verdict.name: verdict for verdict in conformance.run_all(suite, asked)}


def name_in(item: pytest.Item) -> str:
    """The conformance test that a test here stands for, if it does."""
    stands_for_one = isinstance(item, pytest.Function) and item.originalname == "test_a_conformance_test_passes"
    return item.name.partition("[")[2].removesuffix("]") if stands_for_one else ""


async def set_scene(cluster: clusters.Cluster) -> None:
    """What the suite wants to see before its first test.

    One node that is ready, and takes no pods, as no kubelet would end them; and the service of the API server itself,
    which the embedded cluster does not make yet.
    """
    async with connected(cluster.kubeconfig) as client:
        await fake_kubelet.register(client, schedulable=False)
        ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}]
        metadata = {"name": "kubernetes", "namespace": "default"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}
        with suppress(AlreadyExists):
            await client.create(SERVICES, service)


@each_passing_test
def test_a_conformance_test_passes(name: str, verdicts: dict[str, conformance.Verdict]) -> None:
    verdict = verdicts[name]

    assert verdict.passed, f"{verdict.outcome}: {verdict.reason}\nlog: {verdict.log}"


def test_the_slice_is_part_of_the_list() -> None:
    assert frozenset(conformance.names_in(PASSING)) >= SLICE
