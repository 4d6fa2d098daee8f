"""Queues of Volcano's on a real API server: our policies stand at its door, and our scheduler follows its Commands."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.e2e.test_gangs import Person
from tests.kubernetes import control_plane as real
from tests.kubernetes.clusters import trainmaster
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.processes import processes

from trainmaster.api.groups import definitions
from trainmaster.cluster.scheduler import policies

pytestmark = pytest.mark.kubernetes

API = "scheduling.volcano.sh/v1beta1"
HIERARCHY = {"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "2/4"}


@pytest.fixture
def person(binaries: Binaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    programs = binaries("etcd", "kube-apiserver", "kubectl")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with real.running(programs, tmp_path / "plane") as plane, processes(tmp_path) as started:
        person = Person(plane.kubeconfig(), tmp_path)
        kinds = [each for each in definitions() if each["spec"]["group"].endswith(".volcano.sh")]
        person("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(kinds))
        person("wait", "--for=condition=Established", "crd", "--all", "--timeout=100s")
        person("apply", "-f", "-", given=policies.text())
        started.start("scheduler", trainmaster("scheduler", f"--kubeconfig={plane.kubeconfig('operator')}"))
        person.until("queue/default", ".status.state", "Open")
        yield person


def queue(name: str, annotations: dict[str, str] | None = None, **spec: object) -> str:
    return yaml.safe_dump({"apiVersion": API, "kind": "Queue", "spec": {"weight": 1, **spec},
                           "metadata": {"name": name, "annotations": annotations or {}}})


def refused(person: Person, words: str, *arguments: str, given: str = "") -> None:
    with pytest.raises(AssertionError, match=words):
        person(*arguments, given=given)


def until_they_count(person: Person) -> None:
    """Policies count a moment after they were stored, and so do kinds to them; the server tells nobody when."""
    bad = queue("bad", deserved={"cpu": 3}, capability={"cpu": "2500m"})
    ends, said = time.monotonic() + 60, ""
    while "deserved should less equal than capability" not in said:
        assert time.monotonic() < ends, f"the policies do not count after 60 seconds: {said}"
        time.sleep(0.2)
        try:
            said = person("create", "-f", "-", "--dry-run=server", given=bad)
        except AssertionError as refusal:
            said = str(refusal)


def test_rules_and_orders(person: Person) -> None:
    until_they_count(person)
    for words, given in (
        ("guarantee should less equal than deserved", queue("bad", guarantee={"resource": {"cpu": 2}},
                                                            deserved={"cpu": 1})),
        ("must have the same length", queue("bad", {**HIERARCHY, "volcano.sh/hierarchy": "a"})),
    ):
        refused(person, words, "create", "-f", "-", given=given)
    refused(person, "`default` queue can not be deleted", "delete", "queue", "default")

    person("create", "-f", "-", given=queue("mine", HIERARCHY, deserved={"cpu": 1}, capability={"memory": "1Gi"}))
    made = yaml.safe_load(person("get", "queue", "mine", "-o", "yaml"))
    assert ("root", "root/a/b") == (made["spec"]["parent"], made["metadata"]["annotations"]["volcano.sh/hierarchy"])
    person("annotate", "namespace", "default", "scheduling.volcano.sh/queue-name=mine")
    person("create", "-f", "-", given=yaml.safe_dump({
        "apiVersion": API, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 1}}))
    person.until("podgroup/g", ".spec.queue", "mine")

    for action, state in (("CloseQueue", "Closing"), ("OpenQueue", "Open")):
        person("create", "-f", "-", given=yaml.safe_dump({
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "action": action,
            "metadata": {"generateName": "mine-"}, "target": {"apiVersion": API, "kind": "Queue", "name": "mine"}}))
        person.until("queue/mine", ".status.state", state)
    assert "" == person("get", "commands.bus.volcano.sh", "-o", "name")
