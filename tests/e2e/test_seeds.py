"""The manifests of the user's documents, unchanged, by kubectl and by `trainmaster run`, to the end they describe."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.e2e.person import Person

from trainmaster.cluster.kubelet.images import PROGRAMS

HERE = Path(__file__).parent
PLACEHOLDER = "gcr.io/your-project/your-image"


@dataclass(frozen=True)
class Seed:
    """A document, and what its job leaves: who says at the end that it has learned, and who still serves."""

    file: str
    learned: int
    serving: int = 0
    gpus: int = 0

    @property
    def text(self) -> str:
        return (HERE / self.file).read_text()

    @property
    def job(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = list(yaml.safe_load_all(self.text))[-1]
        return found


SEEDS = {
    "pytorch-simple": Seed("001-pytorchjob-simple.yaml", learned=2),
    "generate-name": Seed("001-tfjob-generate-name.yaml", learned=3, serving=1, gpus=3),
    "one-gpu": Seed("001-tfjob-one-gpu.yaml", learned=4, serving=2, gpus=4),
    "volcano": Seed("003-tfjob-volcano.yaml", learned=4, serving=2),
    "kube-batch": Seed("003-tfjob-kube-batch.yaml", learned=4, serving=2),
}


@pytest.mark.frameworks
@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize("way", ["kubectl", "trainmaster"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] if name != "pytorch-simple" else []) for name in SEEDS]
)
def test_a_document_trains_as_it_is(name: str, way: str, person: Person) -> None:
    seed = SEEDS[name]
    if way == "kubectl" and name == "pytorch-simple" and person.name == "root":
        pytest.skip("the ordinary user does that")
    person.trainmaster("up", *([f"--resource=nvidia.com/gpu={seed.gpus}"] if seed.gpus else []))
    if PLACEHOLDER in seed.text:
        added = person.trainmaster(
            "images", "add", PLACEHOLDER, "--python=tensorflow", "--workdir=/app", "--env=PYTHONPATH=/app/trainer",
            f"--file={shown(person, 'dist_mnist.py')}:/app/trainer/task.py",
            f"--file={shown(person, 'lesson.py')}:/app/trainer/lesson.py",
        )
        assert 0 == added.returncode, added.stderr
    namespace, kind = seed.job["metadata"].get("namespace", "default"), str(seed.job["kind"]).lower()
    if namespace != "default":
        person.kubectl("create", "namespace", namespace)

    if way == "kubectl":
        made = person.kubectl("create", "-f", "-", text=seed.text).splitlines()[-1].split()[0]
        person.kubectl("wait", "-n", namespace, "--for=condition=Succeeded", "--timeout=600s", made, timeout=620)
    else:
        done = person.trainmaster("run", "-", text=seed.text, timeout=900)
        assert 0 == done.returncode, done.stdout + done.stderr

    assert "Succeeded" in person.kubectl("get", kind, "-n", namespace)
    pods = person.kubectl("get", "pods", "-n", namespace, "-o", "name").split()
    said = "".join(person.kubectl("logs", "-n", namespace, pod) for pod in pods)
    losses = re.findall(r"done: loss ([\d.]+) -> ([\d.]+)", said)
    assert 1 <= len(losses) <= seed.learned, said
    assert all(float(last) < float(first) for first, last in losses)
    if not seed.serving:
        assert 1 == len(set(re.findall(r"parameters (\w+)", said)))
    running = person.kubectl("get", "pods", "-n", namespace, "--field-selector=status.phase=Running", "-o", "name")
    assert seed.serving == running.count("-ps-"), "parameter servers stay, as cleanPodPolicy says by default"


def shown(person: Person, program: str) -> Path:
    """The user's own program: one of ours, put where the user has theirs."""
    place = person.home / program
    place.write_text((PROGRAMS / program).read_text())
    place.chmod(0o644)
    return place
