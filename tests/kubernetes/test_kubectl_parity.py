"""kubectl prints the same about the same job, whichever cluster it asks.

The columns of `get` come from the server, what `describe` shows from the objects, and messages about mistakes from the
server again: comparing the text compares all of it. Only what differs by nature is taken out first.
"""

import re
from collections.abc import Iterator

import pytest
from tests.kubernetes.clusters import Cluster, Kubectl
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.test_kubectl import job

pytestmark = pytest.mark.kubernetes

NAME = "parity"
OURS = f"training.kubeflow.org/job-name={NAME}"
Pair = tuple[Kubectl, Kubectl]

NATURAL = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\b(\d+[smhd]){1,2}\b", "AGE"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"(Resource Version: +)\d+", r"\1REVISION"),
    (r"Service Account: .*\n", ""),  # accounts are turned off on the real control plane
    (r"(?s)Tolerations: .*?(?=\n\S|$)", "Tolerations: SOME"),  # of lost nodes, which one machine does not have
    (r"Endpoints: .*", "Endpoints: SOME"),  # nobody makes them on the real control plane: it has no controllers
    (r"(?s)\nEvents:.*", ""),  # the embedded scheduler speaks, the real cluster has none
    (r" +", " "),  # a column is as wide as its widest value
)


@pytest.fixture(scope="module")
def pair(
    real_cluster: Cluster, embedded_cluster: Cluster, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """kubectl for the real cluster and for the embedded one, each with a job that runs."""
    program, home = binaries("kubectl") / "kubectl", tmp_path_factory.mktemp("kubectl")
    both = Kubectl(program, real_cluster, home / "real"), Kubectl(program, embedded_cluster, home / "embedded")
    for kubectl in both:
        kubectl.output("create", "-f", "-", stdin=job(NAME))
    for kubectl in both:
        kubectl.output("wait", "--for=condition=Running", f"tfjob/{NAME}", "--timeout=100s")
        kubectl.output("wait", "--for=condition=Ready", "pod", "-l", OURS, "--timeout=100s")
        for role, count in (("PS", 1), ("Worker", 2)):      # the operator counts them when it comes to it
            kubectl.output("wait", f"--for=jsonpath={{.status.replicaStatuses.{role}.active}}={count}",
                           f"tfjob/{NAME}", "--timeout=100s")
    yield both
    for kubectl in both:
        kubectl.output("delete", "tfjob", NAME)


def comparable(text: str) -> str:
    for pattern, instead in NATURAL:
        text = re.sub(pattern, instead, text)
    return text


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(f"get tfjob {NAME}", id="get a job"),
        pytest.param(f"get tfjob {NAME} -o wide --show-labels", id="get a job, wide"),
        pytest.param(f"get pods -l {OURS}", id="get pods"),
        pytest.param(f"get pods -l {OURS} -o wide --show-labels", id="get pods, wide"),
        pytest.param(f"get pods -l {OURS} --sort-by=.metadata.name --no-headers", id="get pods, sorted"),
        pytest.param(f"get pods -l {OURS} -o custom-columns=N:.metadata.name,P:.status.phase", id="own columns"),
        pytest.param(f"get services -l {OURS} -o wide", id="get services"),
        pytest.param(f"get pods,services -l {OURS}", id="get two kinds"),
        pytest.param(f"describe pod {NAME}-worker-0", id="describe a pod"),
        pytest.param(f"describe service {NAME}-worker-0", id="describe a service"),
        pytest.param(f"describe tfjob {NAME}", id="describe a job"),
        pytest.param("get namespace training -o wide", id="get a namespace"),
        pytest.param("api-resources --api-group=kubeflow.org -o wide", id="our kinds"),
        pytest.param("explain tfjob --recursive", id="all our fields"),
        pytest.param("explain tfjob.spec.runPolicy", id="some of our fields, explained"),
        pytest.param("get pod nothing", id="a pod that is not there"),
        pytest.param("get nothing", id="a kind that is not there"),
        pytest.param("delete tfjob nothing", id="delete what is not there"),
        pytest.param("get pods -l a=b", id="no pod is chosen"),
        pytest.param("get pods -l ///", id="a selector that is none"),
        pytest.param("get pods --field-selector spec.colour=red", id="a field that cannot be selected"),
        pytest.param(f"patch tfjob {NAME} --type=merge -p {{'spec':7}}", id="a patch of the wrong type"),
        pytest.param(
            f"patch pod {NAME}-ps-0 --type=json -p [{{'op':'test','path':'/kind','value':'X'}}]", id="a failed test"
        ),
        pytest.param("create configmap Not_A_Name", id="a name that is none"),
        pytest.param("create configmap x -n nowhere", id="a namespace that is not there"),
        pytest.param("get --raw /nothing", id="a path that is not there"),
    ],
)
def test_both_print_the_same(pair: Pair, command: str) -> None:
    arguments = [part.replace("'", '"') for part in command.split()]
    real, embedded = (kubectl(*arguments) for kubectl in pair)

    assert comparable(embedded.stdout + embedded.stderr) == comparable(real.stdout + real.stderr)
    assert embedded.returncode == real.returncode
