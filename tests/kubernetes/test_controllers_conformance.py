"""Kubernetes' own tests of its controllers, with ours in their place.

The server is a real kube-apiserver, and kube-controller-manager does not run. Everything that the tests are about
(garbage, namespaces, accounts, the authority's certificate, endpoints, quotas, workloads) is done by our controllers.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.kubernetes import conformance, fake_kubelet
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.control_plane import ControlPlane, running

from trainmaster.cluster.controllers import main
from trainmaster.runtime.clock import RealClock

pytestmark = pytest.mark.kubernetes

NAMES = conformance.names_in(Path(__file__).with_name("conformance-of-controllers.txt"))
# Quick ones of different subjects; the others take minutes, mostly waiting to see that nothing happens.
SLICE = (
    "dependency circle", "kube-root-ca.crt", "delete EndpointSlices", "RS created by deployment when not",
    "life of a secret",
)


class Ours:
    """Our controllers in a thread with a loop of its own: the suite runs for minutes, and they must not wait for it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._work()])
        self._task: asyncio.Task[None] | None = None

    async def _work(self) -> None:
        async with connected(self._plane.kubeconfig("controllers")) as client:
            authority = self._plane.certificate.read_bytes()
            self._task = asyncio.create_task(main.run(lambda _name: client, RealClock(), authority=authority))
            with suppress(asyncio.CancelledError):
                await self._task

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()


async def set_scene(plane: ControlPlane) -> None:
    """A node that could take pods, and nobody who would give it any."""
    async with connected(plane.kubeconfig()) as client:
        await fake_kubelet.register(client)


@pytest.fixture(scope="module")
def suite(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[conformance.Suite]:
    folder = tmp_path_factory.mktemp("controllers")
    programs = binaries("etcd", "kube-apiserver", "e2e.test", "kubectl")
    with running(programs, folder) as plane:
        asyncio.run(set_scene(plane))
        with Ours(plane):
            yield conformance.Suite(programs, plane.kubeconfig(), Path(folder) / "logs", seconds=300)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=name, marks=() if any(words in name for words in SLICE) else pytest.mark.full)
        for name in NAMES
    ],
)
def test_our_controllers_pass_for_those_of_kubernetes(name: str, suite: conformance.Suite) -> None:
    verdict = conformance.run(suite, name)

    assert verdict.passed, f"{verdict.outcome}: {verdict.reason}\nlog: {verdict.log}"
