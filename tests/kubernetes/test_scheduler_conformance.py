"""Kubernetes' own tests of its scheduler, with ours in its place: the embedded cluster, two nodes that only pretend."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes import clusters, conformance
from tests.kubernetes.conftest import Binaries

pytestmark = pytest.mark.kubernetes

NAMES = conformance.names_in(Path(__file__).with_name("conformance-of-scheduler.txt"))
SLICE = "NodeSelector is respected if matching"      # the others wait for minutes to see that nothing happens
SECONDS = 600.0


@pytest.fixture(scope="module")
def suite(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[conformance.Suite]:
    folder = tmp_path_factory.mktemp("scheduler")
    programs = binaries("e2e.test", "kubectl")
    with clusters.embedded(folder, simulated=2) as cluster:
        yield conformance.Suite(programs, cluster.kubeconfig, folder / "logs", SECONDS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=name, marks=() if SLICE in name else pytest.mark.full) for name in NAMES])
def test_our_scheduler_passes_for_that_of_kubernetes(name: str, suite: conformance.Suite) -> None:
    verdict = conformance.run(suite, name)

    assert verdict.passed, f"{verdict.outcome}: {verdict.reason}\nlog: {verdict.log}"
