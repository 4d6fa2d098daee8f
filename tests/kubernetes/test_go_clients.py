"""Programs written with client-go and controller-runtime, with their defaults (protobuf bodies, watched lists), on a
real control plane and on the embedded one. What they do and expect is in `go/`; the real one says that it is right to.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes import clusters
from tests.kubernetes import control_plane as real
from tests.kubernetes.conftest import Binaries
from tools import kubernetes_binaries as tool

pytestmark = pytest.mark.kubernetes

SOURCES = Path(__file__).with_name("go")
PIECES = re.findall(
    r'^\t\{"([^"]+)", \w+\},$', "".join(path.read_text() for path in sorted(SOURCES.glob("*.go"))), re.MULTILINE)
CONTROLLERS = ("garbage-collector-controller", "namespace-controller", "disruption-controller")
SECONDS = 300.0


@pytest.fixture(scope="module")
def program(binaries: Binaries) -> Path:
    name = tool.go_clients()
    return binaries(name) / name


@pytest.fixture(scope="module", params=["kube-apiserver", "embedded"])
def answers(
    request: pytest.FixtureRequest, program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """What the program said of each piece on one of the two servers: nothing, or what was wrong."""
    folder = tmp_path_factory.mktemp("go-clients")
    if request.param == "embedded":
        with clusters.embedded(folder) as cluster:
            yield said(program, cluster.kubeconfig)
        return
    programs = request.getfixturevalue("binaries")("etcd", "kube-apiserver", "kube-controller-manager")
    with real.running(programs, folder) as plane:
        plane.start_controllers(*CONTROLLERS)
        yield said(program, plane.kubeconfig())


def said(program: Path, kubeconfig: Path) -> dict[str, str]:
    done = subprocess.run([program, kubeconfig], capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr[-3000:]
    return {line["name"]: line.get("error", "") for line in lines}


@pytest.mark.parametrize("piece", [pytest.param(piece, id=piece) for piece in PIECES])
def test_a_go_program_does_its_work(piece: str, answers: dict[str, str]) -> None:
    assert "" == answers[piece]


def test_every_piece_is_asked_for(answers: dict[str, str]) -> None:
    assert sorted(PIECES) == sorted(answers)
