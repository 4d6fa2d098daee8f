"""Every example runs as it is on the embedded cluster, to the end that its folder promises."""

import re
from pathlib import Path

import pytest
import yaml
from tests.e2e.conftest import PEOPLE
from tests.e2e.person import Person

EXAMPLES = Path(__file__).parents[2] / "examples"
MANIFESTS = {str(path.relative_to(EXAMPLES)): path for path in sorted(EXAMPLES.rglob("*.yaml"))}
# Those whose replicas end with parameters of their own, equal on all; how many those are.
AGREE = {
    "jaxjob/jax.yaml": 3, "mxjob/mxnet.yaml": 2, "paddlejob/paddle.yaml": 2, "pytorchjob/ddp.yaml": 3,
    "pytorchjob/elastic.yaml": 2, "tfjob/multi-worker.yaml": 4, "xgboostjob/lightgbm.yaml": 3,
    "xgboostjob/xgboost.yaml": 3,
}
# The others are too slow for the slice, where their framework is tried another way; `make run` has its own test.
SLICE = {("tfjob/parameter-server.yaml", "root"), ("xgboostjob/lightgbm.yaml", "ordinary user")}


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("name", "trainer"),
    [pytest.param(name, who, marks=[] if (name, who) in SLICE else [pytest.mark.full], id=f"{name} by {who}")
     for name in MANIFESTS for who in PEOPLE],
    indirect=["trainer"],
)
def test_an_example_runs_as_it_is(name: str, trainer: Person) -> None:
    """`make run` is the first of TFJob with a cluster of its own around it."""
    done = trainer.trainmaster("run", "-", text=MANIFESTS[name].read_text(), timeout=900)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "Succeeded" in done.stdout + done.stderr
    for accuracy in re.findall(r"accuracy (\d\.\d+) (?:parameters|at the end)", done.stdout):
        assert float(accuracy) > 0.8
    if name in AGREE:
        said = _said_by_all(trainer, name)
        known = re.findall(r"parameters (\w+)", said)
        assert AGREE[name] == len(known), said
        assert 1 == len(set(known)), said


def _said_by_all(person: Person, name: str) -> str:
    """A job may succeed while some of its replicas still say their last words."""
    job = next(one for one in yaml.safe_load_all(MANIFESTS[name].read_text()) if "apiVersion" in one and
               one["apiVersion"] == "kubeflow.org/v1")
    chosen = f"--selector=training.kubeflow.org/job-name={job['metadata']['name']}"
    person.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=300s", "pods", chosen, timeout=320)
    return person.kubectl("logs", "--tail=-1", "--max-log-requests=10", chosen)


def test_manifests_carry_the_present_scripts() -> None:
    from tools.examples import filled

    for path in MANIFESTS.values():
        assert path.read_text() == filled(path.read_text(), path.parent), "run python tools/examples.py"


def test_every_kind_of_job_has_an_example_with_a_page() -> None:
    kinds = {one["kind"] for path in MANIFESTS.values() for one in yaml.safe_load_all(path.read_text())}

    assert {"TFJob", "PyTorchJob", "XGBoostJob", "JAXJob", "PaddleJob", "MXJob"} <= kinds
    for path in MANIFESTS.values():
        assert path.name in (path.parent / "README.md").read_text()
