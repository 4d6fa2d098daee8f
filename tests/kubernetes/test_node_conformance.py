"""Kubernetes' own tests of nodes, networks and volumes, on pods that run: those that pass today must go on passing.

conformance-of-node.txt names those that pass, conformance-of-node-missing.txt the others, each with its reason;
conformance-of-node-extra.txt further ones that pass; conformance-of-node-slice.txt the short ones that always run. The
images that they name are node_images.py. To try others, start a cluster with those images and give it to

    python tests/kubernetes/conformance.py KUBECONFIG LIST --batches
"""

import itertools
import shutil
from pathlib import Path

import pytest
from tests.kubernetes import clusters, conformance, node_images
from tests.kubernetes.conftest import Binaries

from trainmaster.testing import census

pytestmark = pytest.mark.kubernetes

PASSING, EXTRA, MISSING, CHOSEN = (
    Path(__file__).with_name(f"conformance-of-node{name}.txt") for name in ("", "-extra", "-missing", "-slice"))
SLICE = frozenset(conformance.names_in(CHOSEN))
JOBS, FEW = 2, 40     # most tests wait most of their time, so where there are many, more of them run at once
LEFT_BY_TESTS = (Path("/tmp/job-e2e"),)     # volumes of theirs on the machine, which they do not remove
SECONDS = 3600.0      # of a job; some tests watch for minutes that nothing happens


@pytest.fixture(scope="module")
def verdicts(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, conformance.Verdict]:
    """Of all tests that are asked for in this session, on one cluster, of which nothing is left."""
    asked = [name for item in request.session.items if (name := name_in(item))]
    programs = binaries("e2e.test", "kubectl", *node_images.PROGRAMS)
    folder = tmp_path_factory.mktemp("node")
    with clusters.with_node(folder, programs) as cluster:
        suite = conformance.Suite(programs, cluster.kubeconfig, folder / "logs", SECONDS)
        jobs = JOBS if len(asked) < FEW else 3 * JOBS
        found = {verdict.name: verdict for verdict in conformance.run_batches(suite, asked, jobs)}
    for left in LEFT_BY_TESTS:
        shutil.rmtree(left, ignore_errors=True)
    assert [] == left_of(folder)
    return found


def left_of(folder: Path) -> list[str]:
    """What has to do with a folder; others may have clusters at the same time. Pods end with their node's holder."""
    now = census.taken()
    return [one for sort in (now.processes, now.mounts, now.sockets) for one in sort if str(folder) in one]


def name_in(item: pytest.Item) -> str:
    """The test of the suite that a test here stands for, if it does."""
    stands_for_one = isinstance(item, pytest.Function) \
        and item.originalname == "test_a_conformance_test_of_the_node_passes"
    return item.name.partition("[")[2].removesuffix("]") if stands_for_one else ""


@pytest.mark.parametrize("name", [
    pytest.param(name, id=name, marks=() if name in SLICE else pytest.mark.full)
    for name in (*conformance.names_in(PASSING), *conformance.names_in(EXTRA))
])
def test_a_conformance_test_of_the_node_passes(name: str, verdicts: dict[str, conformance.Verdict]) -> None:
    verdict = verdicts[name]

    assert verdict.passed, f"{verdict.outcome}: {verdict.reason}\nlog: {verdict.log}"


def test_the_slice_is_part_of_the_list() -> None:
    assert frozenset(conformance.names_in(PASSING)) >= SLICE


def test_every_test_of_the_kind_is_in_one_of_the_lists() -> None:
    passing, missing = (conformance.names_in(path) for path in (PASSING, MISSING))

    assert len({*passing, *missing}) == len(passing) + len(missing) == conformance.OF_A_NODE


def test_what_is_missing_has_a_reason() -> None:
    lines = [line for line in MISSING.read_text().splitlines() if line.strip()]
    without = [line for before, line in itertools.pairwise(["", *lines])
               if not line.startswith("#") and not before.startswith("# ")]

    assert [] == without
