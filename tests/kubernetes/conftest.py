"""What the tests of this tier share: the real programs, a real control plane, and the embedded server next to it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kubernetes import clusters, conformance
from tests.kubernetes import control_plane as real
from tests.kubernetes.control_plane import ControlPlane

TOOL = Path(__file__).parents[2] / "tools" / "kubernetes_binaries.py"
NO_GO = 3  # the tool's exit code

Binaries = Callable[..., Path]

# Where the embedded server is not yet Kubernetes: the test that shows it, and what is missing. A test that begins to
# pass fails the tier until its line is taken out.
GAPS: dict[str, str] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in GAPS:
            item.add_marker(pytest.mark.xfail(strict=True, reason=GAPS[item.name]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many conformance tests pass, next to the number that a real server passes, or that there are of the kind."""
    for test, file, what in (
        ("test_a_conformance_test_passes[", "conformance-passing.txt",
         f"the {conformance.OF_A_REAL_SERVER} that a real kube-apiserver passes"),
        ("test_a_conformance_test_of_the_node_passes[", "conformance-of-node.txt",
         f"the {conformance.OF_A_NODE} in which pods run"),
    ):
        good, bad = (sum(test in report.nodeid for report in terminalreporter.getreports(word))
                     for word in ("passed", "failed"))
        if good or bad:
            listed = len(conformance.names_in(Path(__file__).with_name(file)))
            terminalreporter.write_line(
                f"conformance: {good} of {good + bad} that ran passed; {listed} of {what} are kept passing")


@pytest.fixture(scope="session")
def binaries(pytestconfig: pytest.Config) -> Binaries:
    """`binaries("etcd", ...)` is the folder that holds them; what is missing is built, aloud, because it takes long."""
    console = pytestconfig.pluginmanager.getplugin("capturemanager")

    def folder(*names: str) -> Path:
        with console.global_and_fixture_disabled():
            done = subprocess.run([sys.executable, TOOL, *names], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == NO_GO and os.environ.get("TRAINMASTER_NO_GO") == "1":
            pytest.skip(
                "TRAINMASTER_NO_GO=1: there is no Go here to build the real Kubernetes with, so this is not tested"
            )
        if done.returncode != 0:
            pytest.fail(
                f"{', '.join(names)} could not be built; the reason is above. These tests need Go: "
                "where there is none, TRAINMASTER_NO_GO=1 leaves them out and says so.",
                pytrace=False,
            )
        return Path(done.stdout.strip())

    return folder


@pytest.fixture(scope="session")
def control_plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver, without controllers."""
    with real.running(binaries("etcd", "kube-apiserver"), tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    """The embedded control plane, without a node: what is made in it stays as it was made."""
    with clusters.embedded(tmp_path_factory.mktemp("embedded")) as cluster:
        yield cluster


@pytest.fixture(params=["kube-apiserver", "embedded"])
def server(request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of a server; tests that use it run once per kind of server."""
    if request.param == "embedded":
        bare: clusters.Cluster = request.getfixturevalue("embedded_server")
        return bare.kubeconfig
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return plane.kubeconfig()


@pytest.fixture(scope="session")
def real_cluster(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    """A real control plane with our operator on it; of its own, because its garbage collector acts on everything."""
    folder, programs = tmp_path_factory.mktemp("real-cluster"), binaries(*clusters.PROGRAMS)
    with (
        real.running(programs, folder / "control-plane") as plane,
        clusters.real(plane, programs / "kubectl", folder) as cluster,
    ):
        asyncio.run(clusters.prepare(cluster))
        yield cluster


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    """The embedded control plane, which has our operator in it."""
    with clusters.embedded_with_kubelet(tmp_path_factory.mktemp("embedded-cluster")) as cluster:
        asyncio.run(clusters.prepare(cluster))
        yield cluster


@pytest.fixture(params=["kube-apiserver", "embedded"])
def cluster(request: pytest.FixtureRequest) -> clusters.Cluster:
    """A cluster on which jobs live; tests that use it run once per kind of cluster."""
    name = "embedded_cluster" if request.param == "embedded" else "real_cluster"
    found: clusters.Cluster = request.getfixturevalue(name)
    return found


@pytest.fixture
def kubectl(cluster: clusters.Cluster, binaries: Binaries, tmp_path: Path) -> clusters.Kubectl:
    return clusters.Kubectl(binaries("kubectl") / "kubectl", cluster, tmp_path)
