"""The user's first document, unchanged but for the image it leaves open: six processes really train."""

import re
from pathlib import Path

import pytest
from tests.e2e.person import Person
from tests.e2e.test_line import leftovers

from trainmaster.testing import census

MANIFEST = Path(__file__).parent / "000-tfjob-ps-worker.yaml"
IMAGE = "kubeflow/tf-dist-mnist-test:1.0"


@pytest.mark.frameworks
@pytest.mark.usefixtures("kubectl")
def test_two_parameter_servers_and_four_workers_learn_digits(person: Person) -> None:
    """Slow, because TensorFlow is: nothing cheaper shows that gradients are exchanged."""
    name = "dist-mnist-for-e2e-test"
    before = census.taken()
    person.trainmaster("up")

    person.kubectl("create", "-f", "-", text=MANIFEST.read_text().replace("<训练镜像>", IMAGE))
    person.kubectl("wait", "--for=condition=Succeeded", "--timeout=400s", f"tfjob/{name}", timeout=420)

    workers = [f"pod/{name}-worker-{index}" for index in range(4)]      # the job is over with the first of them
    person.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=300s", *workers, timeout=320)
    for index in range(4):
        said = person.kubectl("logs", f"{name}-worker-{index}")
        losses = [float(loss) for loss in re.findall(r"step \d+(?:/\d+)? loss ([\d.]+)", said)]
        assert len(losses) >= 3, "every worker did its share"
        assert losses[-1] < losses[0] / 2, "and what the others learned reached it"
    assert "Succeeded" in person.kubectl("get", "tfjob", name)
    assert 2 == person.kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name").count("-ps-")
    addresses = person.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.podIP}").split()
    assert 6 == len(set(addresses))
    person.trainmaster("down")

    assert {} == leftovers(person, before)
