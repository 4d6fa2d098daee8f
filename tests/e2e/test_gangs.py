"""The user's documents about gangs, with kubectl, on a whole control plane whose nodes only pretend.

What kubectl prints is compared; waiting is kubectl's own, by watch.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.kubernetes.processes import processes

from trainmaster.cluster.simulated.nodes import named
from trainmaster.local import parts
from trainmaster.local.asked import Asked
from trainmaster.local.home import Home

HERE = Path(__file__).parent
ONE_GPU, KUBE_BATCH, VOLCANO = (HERE / f"{name}.yaml" for name in (
    "001-tfjob-one-gpu", "003-tfjob-kube-batch", "003-tfjob-volcano"))
JOB = "dist-mnist-for-e2e-test"
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine")


class Person:
    """Somebody with kubectl."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *arguments: str, given: str = "") -> str:
        done = subprocess.run(["kubectl", *arguments], env=self._environment, capture_output=True, text=True,
                              timeout=120, input=given, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def until(self, thing: str, path: str, value: str) -> None:
        self("wait", thing, "--for=create", "--timeout=90s")
        self("wait", thing, f"--for=jsonpath={{{path}}}={value}", "--timeout=90s")

    def table(self, *arguments: str) -> list[list[str]]:
        return [line.split() for line in self(*arguments).splitlines()]

    def pods(self) -> dict[str, str]:
        return {row[0].removeprefix(f"{JOB}-"): row[2] for row in self.table("get", "pods", "--no-headers")}


Cluster = Callable[..., Person]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with processes(tmp_path) as started:
        def start(gang: str = "volcano", *, preempt: bool = False, **offers: str) -> Person:
            home = Home(tmp_path / "home")
            home.make()
            part = parts.control_plane(home)
            asked = Asked(gang_scheduler=gang, preempt=preempt, simulated_nodes=1, simulated_offers={
                "cpu": "64", "memory": "64Gi", **{name.replace("gpu", "nvidia.com/gpu"): each
                                                  for name, each in offers.items()}})
            started.start(part.name, [sys.executable, "-P", "-m", part.module, asked.words()],
                          {**os.environ, "TRAINMASTER_HOME": str(home.path)})
            started.wait(part.name, lambda: "server" in (part.facts() or {}))
            person = Person(home.kubeconfig, tmp_path)
            for node in named(asked.simulated_nodes):      # the server is there before them
                person("wait", f"node/{node}", "--for=create", "--timeout=90s")
                person("wait", f"node/{node}", "--for=condition=Ready", "--timeout=90s")
            return person

        yield start


def test_without_a_gang_three_run_and_three_wait_with_the_message(cluster: Cluster) -> None:
    person = cluster("none", gpu="1")
    person("create", "-f", str(ONE_GPU))
    person.until(f"tfjob/{JOB}", ".status.replicaStatuses.PS.active", "2")
    person.until(f"tfjob/{JOB}", ".status.replicaStatuses.Worker.active", "1")
    at = person.pods()          # which worker got the GPU is for the scheduler to say: they are made side by side
    workers = {name: phase for name, phase in at.items() if name.startswith("worker-")}
    assert ("Running", "Running") == (at["ps-0"], at["ps-1"])
    assert ["Pending", "Pending", "Pending", "Running"] == sorted(workers.values())
    for name in (name for name, phase in workers.items() if phase == "Pending"):
        person("wait", f"pod/{JOB}-{name}", "--for=condition=PodScheduled=False", "--timeout=90s")

    assert at == person.pods(), "and so it stays"
    said = person("get", "pods", "-o", "jsonpath={.items[?(@.status.phase=='Pending')].status.conditions[*].message}")
    assert 3 == said.count("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")


def test_a_gang_that_cannot_fit_has_a_pending_group_and_no_pod(cluster: Cluster) -> None:
    person = cluster(gpu="1")
    person("create", "-f", str(ONE_GPU))
    person.until(f"podgroup/{JOB}", ".status.phase", "Pending")

    header, row = person.table("get", "podGroup")
    assert ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE"] == header
    assert [JOB, "Pending", "6"] == row[:3]
    assert 4 == len(row), "RUNNINGS is blank"
    assert {} == person.pods()
    why = r"jsonpath={.metadata.annotations.trainmaster\.dev/why-waiting}"
    person("wait", f"podgroup/{JOB}", f"--for={why}", "--timeout=90s")      # written after the phase, which is urgent
    assert "3 nvidia.com/gpu short" in person("get", "podgroup", JOB, "-o", why)


def test_a_gang_that_fits_starts_whole(cluster: Cluster) -> None:
    person = cluster(gpu="4")
    person("create", "-f", str(ONE_GPU))
    person.until(f"podgroup/{JOB}", ".status.running", "6")

    assert {"Running"} == set(person.pods().values())
    assert [JOB, "Running", "6", "6"] == person.table("get", "podgroup", "--no-headers")[0][:4]
    person("wait", f"tfjob/{JOB}", "--for=condition=Running", "--timeout=90s")


@pytest.mark.parametrize(
    ("manifest", "gang", "group"),
    [
        pytest.param(KUBE_BATCH, "volcano", "podgroup.scheduling.incubator.k8s.io/tfjob-group",
                     id="a document for kube-batch, where Volcano is the rule"),
        pytest.param(KUBE_BATCH, "kube-batch", "podgroup.scheduling.incubator.k8s.io/tfjob-group",
                     id="a document for kube-batch, where that is the rule"),
        pytest.param(VOLCANO, "volcano", f"podgroup.scheduling.volcano.sh/{JOB}", id="a document for Volcano"),
    ],
)
def test_documents_with_a_group_of_their_own_run_unchanged(cluster: Cluster, manifest: Path, gang: str,
                                                           group: str) -> None:
    person = cluster(gang)
    person("create", "-f", str(manifest))
    person.until(group, ".status.running", "6")

    assert (6, {"Running"}) == (len(person.pods()), set(person.pods().values()))
    groups = person("get", "podgroups.scheduling.volcano.sh,podgroups.scheduling.incubator.k8s.io", "-o", "name")
    assert 1 == len(groups.split()), "the one that the user made, and no other"


def test_with_room_for_five_of_six_none_starts(cluster: Cluster) -> None:
    person = cluster("kube-batch", pods="5")
    person("create", "-f", str(KUBE_BATCH))
    group = "podgroup.scheduling.incubator.k8s.io/tfjob-group"
    said = "{.status.conditions[0].message}"
    person("wait", group, f"--for=jsonpath={said}=1/6 tasks in gang unschedulable: 0 nodes are available",
           "--timeout=90s")

    assert {"Pending"} == set(person.pods().values())


def gang(name: str, size: int, asks: dict[str, str], least: int = 0, queue: str = "default",
         priority: str = "") -> str:
    """A group that a user made, and its pods; without `least` all must start together."""
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
             "spec": {"minMember": least or size, "queue": queue, "priorityClassName": priority}}
    return yaml.safe_dump_all([group, *(member(name, index, asks) for index in range(size))])


def member(group: str, index: int, asks: dict[str, str]) -> dict[str, object]:
    container = {"name": "main", "image": "example.com/train:1", "resources": {"requests": asks, "limits": asks}}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"schedulerName": "volcano", "containers": [container]},
            "metadata": {"name": f"{group}-{index}", "annotations": {"scheduling.k8s.io/group-name": group}}}


def queue(name: str, weight: int) -> str:
    return yaml.safe_dump({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
                           "spec": {"weight": weight}})


GPU, CPU = {"nvidia.com/gpu": "1"}, {"cpu": "1"}
QUEUES = [queue("light", 1), queue("heavy", 3)]


@pytest.mark.parametrize(("offers", "things", "expected"), [
    pytest.param({"cpu": "9", "memory": "18G"},
                 [gang("a", 9, {"cpu": "1", "memory": "4G"}, 1), gang("b", 9, {"cpu": "3", "memory": "1G"}, 1)],
                 {"a": 3, "b": 2}, id="equal jobs share by dominant share"),
    pytest.param({"cpu": "8"}, [*QUEUES, gang("a", 8, CPU, 1, "light"), gang("b", 8, CPU, 1, "heavy")],
                 {"a": 2, "b": 6}, id="queues share by weight"),
    pytest.param({"cpu": "8"}, [*QUEUES, gang("a", 8, CPU, 1, "light"), gang("b", 1, CPU, 1, "heavy")],
                 {"a": 7, "b": 1}, id="what one queue does not want the other gets"),
    pytest.param({"gpu": "3"}, [gang("a", 4, GPU, 2)], {"a": 3}, id="more than the least come as far as there is room"),
    pytest.param({}, [gang("a", 6, {})], {"a": 6}, id="a gang that asks for nothing"),
])
def test_who_gets_how_much(cluster: Cluster, offers: dict[str, str], things: list[str],
                           expected: dict[str, int]) -> None:
    person = cluster(**offers)
    nodes: list[str] = []
    while not nodes:      # the node of the cluster comes when the server is there
        nodes = person("get", "nodes", "-o", "name").split()
    person("cordon", *nodes)      # everybody shall be there before anybody gets something
    person("create", "-f", "-", given="---\n".join(things))
    person("wait", "pods", "--all", "--for=condition=PodScheduled=False", "--timeout=90s")      # and be seen
    person("uncordon", *nodes)

    for name, count in expected.items():
        person.until(f"podgroup/{name}", ".status.running", str(count))
    there = [name.partition("-")[0] for name, phase in person.pods().items() if phase == "Running"]
    assert expected == {name: there.count(name) for name in expected}
    assert {"Running"} == {row[1] for row in person.table("get", "podgroups.scheduling.volcano.sh", "--no-headers")}


def test_of_two_gangs_one_runs_and_the_other_when_it_ended(cluster: Cluster) -> None:
    person = cluster(gpu="4")
    person("create", "-f", "-", given=gang("first", 3, GPU))
    person.until("podgroup/first", ".status.running", "3")
    person("create", "-f", "-", given=gang("second", 3, GPU))
    person("wait", "pod/second-2", "--for=condition=PodScheduled=False", "--timeout=90s")
    assert {"Pending"} == {person.pods()[f"second-{index}"] for index in range(3)}

    person("delete", "pod", "first-0", "first-1", "first-2")

    person.until("podgroup/second", ".status.running", "3")


def test_a_gang_that_lost_a_member_gets_its_place_back(cluster: Cluster) -> None:
    person = cluster(gpu="2")
    person("create", "-f", "-", given=gang("train", 2, GPU))
    person.until("podgroup/train", ".status.running", "2")
    person("create", "-f", "-", given=gang("other", 1, GPU))
    person("wait", "pod/other-0", "--for=condition=PodScheduled=False", "--timeout=90s")

    person("delete", "pod", "train-1", "--force", "--grace-period=0")
    person.until("podgroup/train", ".status.running", "1")
    person("create", "-f", "-", given=yaml.safe_dump(member("train", 1, GPU)))

    person.until("podgroup/train", ".status.running", "2")
    assert {"train-0": "Running", "train-1": "Running", "other-0": "Pending"} == person.pods()


@pytest.mark.parametrize("preempt", [
    pytest.param(False, id="and waits"), pytest.param(True, id="and may push others out")])
def test_a_more_important_gang_arrives(cluster: Cluster, preempt: bool) -> None:
    person = cluster(gpu="2", preempt=preempt)
    person("create", "priorityclass", "high", "--value=1000")
    person("create", "-f", "-", given=gang("low", 2, GPU))
    person.until("podgroup/low", ".status.running", "2")
    person("create", "-f", "-", given=gang("urgent", 2, GPU, priority="high"))

    if preempt:
        person.until("podgroup/urgent", ".status.running", "2")
        assert {"urgent-0": "Running", "urgent-1": "Running"} == person.pods(), "the other went whole"
    else:
        person("wait", "pod/urgent-1", "--for=condition=PodScheduled=False", "--timeout=90s")
        assert {"low-0": "Running", "low-1": "Running", "urgent-0": "Pending", "urgent-1": "Pending"} == person.pods()
