"""Kubernetes' own conformance tests on the embedded server: those that pass today must go on passing.

Of the tests that need no pod to run, a real kube-apiserver with its controllers passes 108. conformance-passing.txt
names those that pass here, conformance-missing.txt the others, each with its reason; conformance-extra.txt has further
tests that pass, of kinds that a training cluster hardly uses. conformance-slice.txt names the few that always run. To
see how many more pass by now, and to extend the lists:

    python tests/kubernetes/conformance.py KUBECONFIG LIST
"""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes import clusters, conformance, fake_kubelet
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries

from trainmaster.api.core import CONFIG_MAPS

pytestmark = pytest.mark.kubernetes

PASSING, EXTRA, MISSING = (
    Path(__file__).with_name(f"conformance-{name}.txt") for name in ("passing", "extra", "missing"))
COMPACTED = "if the original version has been compacted away"
SECONDS = 240.0    # a test; that of the compaction asks every 20 seconds
SLICE = frozenset(conformance.names_in(Path(__file__).with_name("conformance-slice.txt")))

each_passing_test = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=name, marks=() if name in SLICE else pytest.mark.full)
        for name in (*conformance.names_in(PASSING), *conformance.names_in(EXTRA))
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
        suite = conformance.Suite(programs, cluster.kubeconfig, folder / "logs", SECONDS)
        with busy(cluster) if any(COMPACTED in name for name in asked) else contextlib.nullcontext():
            yield {verdict.name: verdict for verdict in conformance.run_all(suite, asked)}


def name_in(item: pytest.Item) -> str:
    """The conformance test that a test here stands for, if it does."""
    stands_for_one = isinstance(item, pytest.Function) and item.originalname == "test_a_conformance_test_passes"
    return item.name.partition("[")[2].removesuffix("]") if stands_for_one else ""


@contextlib.contextmanager
def busy(cluster: clusters.Cluster) -> Iterator[None]:
    """Others write, 64 kB ten times a second: the past is kept by its size, and one test waits for it to be forgotten.

    A real server forgets after five minutes, whatever happens.
    """
    stop = threading.Event()
    writing = threading.Thread(target=lambda: asyncio.run(write(cluster, stop)))
    writing.start()
    try:
        yield
    finally:
        stop.set()
        writing.join()


async def write(cluster: clusters.Cluster, stop: threading.Event) -> None:
    about = {"name": "busy", "namespace": "default"}
    async with connected(cluster.kubeconfig) as client:
        await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about})
        for round_ in itertools.count():
            if stop.is_set():
                return
            await client.patch(CONFIG_MAPS, "busy", "default", {"data": {"k": f"{round_:<65536}"}})
            await asyncio.sleep(0.1)


async def set_scene(cluster: clusters.Cluster) -> None:
    """One node that is ready, as the suite wants to see, with room for no pod, as no kubelet would end it."""
    async with connected(cluster.kubeconfig) as client:
        await fake_kubelet.register(client, {"pods": "0"})


@each_passing_test
def test_a_conformance_test_passes(name: str, verdicts: dict[str, conformance.Verdict]) -> None:
    verdict = verdicts[name]

    assert verdict.passed, f"{verdict.outcome}: {verdict.reason}\nlog: {verdict.log}"


def test_the_slice_is_part_of_the_list() -> None:
    assert frozenset(conformance.names_in(PASSING)) >= SLICE


def test_every_test_that_a_real_server_passes_is_in_one_of_the_lists() -> None:
    passing, missing = (conformance.names_in(path) for path in (PASSING, MISSING))

    assert len({*passing, *missing}) == len(passing) + len(missing) == conformance.OF_A_REAL_SERVER


def test_what_is_missing_has_a_reason() -> None:
    lines = [line for line in MISSING.read_text().splitlines() if line.strip()]
    without = [line for before, line in itertools.pairwise(["", *lines])
               if not line.startswith("#") and not before.startswith("# ")]

    assert [] == without
