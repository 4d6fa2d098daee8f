"""Our operator does what the Go operator did, on the same server: a real kube-apiserver."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes import control_plane as real
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries
from tests.spec import parity

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.schema import definitions

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif(not parity.scenarios(), reason=f"the recordings are not in {parity.KIT}"),
]

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
SLICE = ("seed-00[01]-*", "*-success", "*-suspend-resume", "*-exit-code-*", "*-clean-*", "*-evicted", "*-fails-never",
         "tf-recreated", "tf-scale-up", "tf-template-*", "tf-omitted-everything", "tf-delete*")
# Refusals are a webhook's, which is not called here.
REFUSED = ("*-refused", "*-managed-by-other", "*-immutable")
# Gangs are not told to a scheduler yet.
GANGS = ("gang-*", "seed-003-*")


@pytest.fixture(scope="module")
def place(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[parity.Place]:
    folder = tmp_path_factory.mktemp("parity")
    with real.running(binaries(*PROGRAMS), folder / "control-plane") as plane:
        asyncio.run(install(plane.kubeconfig()))
        plane.start_controllers("garbage-collector-controller", "namespace-controller")
        operator = [sys.executable, "-m", "trainmaster.cli.main", "operator"]
        yield parity.Place(plane.kubeconfig(), folder, operator, {})


async def install(kubeconfig: Path) -> None:
    async with connected(kubeconfig) as client:
        for definition in definitions():
            await client.create(DEFINITIONS, definition)


def test_a_slice_of_the_scenarios(place: parity.Place) -> None:
    assert {} == parity.differing(parity.chosen(SLICE), place, settle=0.5)


@pytest.mark.full
def test_all_scenarios(place: parity.Place) -> None:
    """As slowly as they were recorded: deadlines and times to live end in the same steps."""
    missing = parity.chosen([*REFUSED, *GANGS])

    assert {} == parity.differing([name for name in parity.scenarios() if name not in missing], place, settle=1.0)
