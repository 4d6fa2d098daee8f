"""The user's documents about gangs on a real control plane: our scheduler beside the real kube-scheduler.

The cases are those of the embedded cluster, word for word; only the cluster is another. Pods without a gang are
kube-scheduler's, all others ours, and neither may give away what the other gave.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from tests.e2e.test_gangs import (  # noqa: F401  collected here with the cluster of this module
    GPU,
    Cluster,
    Person,
    gang,
    test_a_gang_that_cannot_fit_has_a_pending_group_and_no_pod,
    test_a_gang_that_fits_starts_whole,
    test_a_gang_that_lost_a_member_gets_its_place_back,
    test_a_more_important_gang_arrives,
    test_documents_with_a_group_of_their_own_run_unchanged,
    test_of_two_gangs_one_runs_and_the_other_when_it_ended,
    test_who_gets_how_much,
    test_with_room_for_five_of_six_none_starts,
    test_without_a_gang_three_run_and_three_wait_with_the_message,
)
from tests.kubernetes import control_plane as real
from tests.kubernetes import fake_kubelet
from tests.kubernetes.access import connected
from tests.kubernetes.clusters import Cluster as Place
from tests.kubernetes.clusters import kubelet_command, trainmaster
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.processes import processes

from trainmaster.api.groups import definitions
from trainmaster.api.schema import definitions as job_definitions
from trainmaster.kube.kubeconfig import document
from trainmaster.local import scheduler_rights

pytestmark = pytest.mark.kubernetes

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NAMESPACE = "default"
NO_CASE = SimpleNamespace(params=())
VOLCANO_GROUP, KUBE_BATCH_GROUP = "scheduling.volcano.sh", "scheduling.incubator.k8s.io"


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    programs, of_document = binaries(*PROGRAMS), "manifest" in getattr(request.node, "callspec", NO_CASE).params
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")      # its kubectl is of the same age
    with real.running(programs, tmp_path / "plane") as plane, processes(tmp_path) as started:
        def start(gang: str = "volcano", *, preempt: bool = False, **offers: str) -> Person:
            place, person = Place("kube-apiserver", plane.kubeconfig()), Person(plane.kubeconfig(), tmp_path)
            # A real cluster has no order among groups of one short name: only the schedulers of the case are there.
            there = {VOLCANO_GROUP} | ({KUBE_BATCH_GROUP} if of_document or gang == "kube-batch" else set())
            groups = [each for each in definitions() if each["spec"]["group"] in there]
            person("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all([*job_definitions(), *groups]))
            person("wait", "--for=condition=Established", "crd", "--all", "--timeout=100s")
            asyncio.run(a_node(place, {name.replace("gpu", "nvidia.com/gpu"): each for name, each in offers.items()}))
            plane.start_controllers("garbage-collector-controller")
            plane.start_scheduler()
            access = f"--kubeconfig={plane.kubeconfig('operator')}"
            started.start("operator", trainmaster("operator", access, f"--gang-scheduler-name={gang}"))
            started.start("kubelet", kubelet_command(place, namespace=NAMESPACE))
            if gang != "none":
                access = f"--kubeconfig={with_shipped_rights(person, plane)}"
                started.start("scheduler", trainmaster("scheduler", access, *(["--preempt"] if preempt else [])))
            return person

        yield start


def with_shipped_rights(person: Person, plane: real.ControlPlane) -> Path:
    """An account of the cluster that may do what the manifest says, and nothing else."""
    person("apply", "-f", "-", given=scheduler_rights.text())
    token = person("create", "token", scheduler_rights.ACCOUNT, "-n", scheduler_rights.NAMESPACE).strip()
    path = plane.folder / "scheduler.kubeconfig"
    path.write_text(json.dumps(document(plane.server, plane.certificate.read_bytes(), token)))
    path.chmod(0o600)
    return path


async def a_node(place: Place, offers: dict[str, str]) -> None:
    async with connected(place.kubeconfig) as client:
        await fake_kubelet.register(client, offers)


def single(name: str) -> dict[str, object]:
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": GPU}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def test_a_gang_waits_for_what_kube_scheduler_gave_and_gets_it_when_it_is_free(cluster: Cluster) -> None:
    person = cluster(gpu="4")
    person("create", "-f", "-", given=yaml.safe_dump_all([single(f"single-{index}") for index in range(2)]))
    for index in range(2):
        person.until(f"pod/single-{index}", ".status.phase", "Running")
    person("create", "-f", "-", given=gang("train", 3, GPU))
    person("wait", "pod/train-0", "--for=condition=PodScheduled=False", "--timeout=100s")
    assert {"Pending"} == {person.pods()[f"train-{index}"] for index in range(3)}

    person("delete", "pod", "single-0")
    person.until("podgroup/train", ".status.running", "3")

    assert {"train-0", "train-1", "train-2", "single-1"} == {name for name, is_at in person.pods().items()
                                                             if is_at == "Running"}
