"""The Go training-operator, unmodified, on the embedded server: what it does there equals what was recorded of it on a
real kube-apiserver. It is controller-runtime with everything: protobuf bodies, informers, webhooks, events.

Scenarios, recordings and their player are beside the checkout, not in it (see `tests/spec/parity.py`). A slice by
default, all of them with FULL=1.
"""

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.processes import Processes, processes
from tests.spec import parity
from tools.kubernetes_binaries import TRAINING_OPERATOR

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif(not (parity.KIT / "scenarios").exists(), reason=f"the recordings are not in {parity.KIT}"),
]

HERE = Path(__file__).parent
TEMPORARY = Path("/tmp")
CERTIFICATE = TEMPORARY / "k8s-webhook-server" / "serving-certs"  # compiled into the operator
PROBES, WEBHOOKS = 18081, 19443
SLICE = ("tf-chief-success", "tf-exit-code-137", "tf-refused", "pytorch-success", "jax-success",
         "xgboost-suspend-resume", "gang-volcano-tf")
# What the operator does or does not on a real kube-apiserver as well: 35 of the recordings, each of several runs,
# say so of one event or another of these kinds (`volatile`), but a few runs cannot show every one. Each is permitted
# only where it can happen.
ENDED = {"path": "events.Normal ExitedWithCode * exited with code 0",
         "reason": "told only of replicas that the operator sees ended before it sees the job ended"}
MADE = {"path": "events.Warning * already exists", "reason": "it creates by a cache that is behind its own writes"}
PROFILES = {
    "training": (),
    "training-volcano": ("--gang-scheduler-name=volcano",),
    "training-scheduler-plugins": ("--gang-scheduler-name=scheduler-plugins-scheduler",),
}


@pytest.fixture(scope="module")
def operator(binaries: Binaries) -> Path:
    name = f"training-operator-{TRAINING_OPERATOR}"
    return binaries(name) / name


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a server that knows the operator's kinds and asks its webhooks."""
    folder = tmp_path_factory.mktemp("go-operator")
    definitions = sorted((source("github.com/kubeflow/training-operator", TRAINING_OPERATOR)
                          / "manifests" / "base" / "crds").glob("kubeflow.org_*.yaml"))
    coscheduling = source("sigs.k8s.io/scheduler-plugins", "0.34.7") / "manifests" / "coscheduling" / "crd.yaml"
    (folder / "webhooks.yaml").write_text(yaml.safe_dump(webhooks()))
    with processes(folder) as started:
        start(started, folder, [HERE / "go_operator.yaml", *definitions, coscheduling, folder / "webhooks.yaml"])
        stop = threading.Event()
        copying = threading.Thread(target=copy_certificate, args=(folder / "kubeconfig", stop))
        copying.start()
        yield folder / "kubeconfig"
        stop.set()
        copying.join()
        shutil.rmtree(CERTIFICATE.parent, ignore_errors=True)


def start(started: Processes, folder: Path, manifests: list[Path]) -> None:
    started.start("server", [sys.executable, HERE / "bare_server.py", folder, *manifests],
                  {**os.environ, "PYTHONPATH": str(HERE.parents[1])})
    started.wait("server", (folder / "kubeconfig").exists)


def source(module: str, version: str) -> Path:
    """The folder of a Go module, fetched if it is not there."""
    done = subprocess.run(["go", "mod", "download", "-json", f"{module}@v{version}"], capture_output=True, text=True,
                          timeout=300, check=False, env={**os.environ, "GOWORK": "off"}, cwd="/")
    assert done.returncode == 0, done.stderr
    return Path(json.loads(done.stdout)["Dir"])


def webhooks() -> dict[str, Any]:
    """The operator's own configuration, with the names that its installation gives."""
    path = source("github.com/kubeflow/training-operator", TRAINING_OPERATOR) / "manifests" / "base" / "webhook"
    found: dict[str, Any] = next(yaml.safe_load_all((path / "manifests.yaml").read_text()))
    found["metadata"]["name"] = "validator.training-operator.kubeflow.org"
    for each in found["webhooks"]:
        each["clientConfig"]["service"] |= {"name": "training-operator", "namespace": "kubeflow", "port": WEBHOOKS}
    return found


def copy_certificate(kubeconfig: Path, stop: threading.Event) -> None:
    """As a kubelet would mount it: the operator makes its certificate, stores it and waits until it is in a file."""
    CERTIFICATE.mkdir(parents=True, exist_ok=True)
    command = ["kubectl", f"--kubeconfig={kubeconfig}", "--namespace=kubeflow", "get", "secret",
               "training-operator-webhook-cert", "--output=json"]
    while not stop.wait(0.3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        for name, value in (json.loads(done.stdout or "{}").get("data") or {}).items():
            content, file = base64.b64decode(value), CERTIFICATE / name
            if not file.exists() or file.read_bytes() != content:
                file.write_bytes(content)


def recorded_again(
    operator: Path, kubeconfig: Path, folder: Path, names: list[str], settle: float
) -> dict[str, list[str]]:
    """Play scenarios and say what differs from the recordings."""
    command = [str(operator), f"--kubeconfig={kubeconfig}", "--metrics-bind-address=0",
               f"--health-probe-bind-address=127.0.0.1:{PROBES}", f"--webhook-server-port={WEBHOOKS}",
               "--kube-api-qps=1000", "--kube-api-burst=1000"]
    profiles = [f"--operator-command={name}={shlex.join([*command, *flags])}" for name, flags in PROFILES.items()]
    output = folder / f"traces-{time.monotonic_ns()}"
    done = subprocess.run(
        [sys.executable, "-m", "tests.spec.recording", parity.KIT, "--name=go", f"--output={output}",
         f"--kubeconfig={kubeconfig}", "--repeat=1",
         f"--settle={settle}", "--parallel=5", f"--log={folder}", "--warm-up=2",
         f"--ready=http://127.0.0.1:{PROBES}/readyz", *profiles,
         *(parity.KIT / "scenarios" / f"{name}.yaml" for name in names)],
        cwd=parity.ROOT, env={**os.environ, "TMPDIR": str(TEMPORARY)}, capture_output=True, text=True, timeout=1200,
        check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return parity.judged({name: json.loads((output / f"{name}.json").read_text()) for name in names}, races(names))


def races(names: Sequence[str]) -> list[dict[str, Any]]:
    """What may differ: of ends, where a replica succeeds; of creations, where there is a pod."""
    found = {name: yaml.safe_load((parity.KIT / "scenarios" / f"{name}.yaml").read_text()) for name in names}
    succeeds = [name for name in names if any("succeed" in step for step in found[name]["steps"])]
    makes = [name for name in names if any(word in step for step in found[name]["steps"] for word in ("pods", "run"))]
    return [{"scenario": name, **race} for race, where in ((ENDED, succeeds), (MADE, makes)) for name in where]


def training() -> list[str]:
    paths = sorted((parity.KIT / "scenarios").glob("*.yaml"))
    return [path.stem for path in paths if yaml.safe_load(path.read_text())["operator"] == "training"]


@pytest.mark.parametrize("names", [
    pytest.param(SLICE, id="a slice"),
    pytest.param(None, id="all", marks=pytest.mark.full),
])
def test_it_does_what_it_did(operator: Path, server: Path, names: tuple[str, ...] | None, tmp_path: Path) -> None:
    wrong = list(names or training())
    differing: dict[str, list[str]] = {}
    for settle in (0.7, 2.0, 4.0, 12.0):  # a step may be cut short on a busy machine: more patience, for what differs
        differing = recorded_again(operator, server, tmp_path, wrong, settle)
        wrong = list(differing)
        if not wrong:
            break

    assert {} == differing
