"""The whole line, once: a manifest in, pods of its own, an outcome, nothing left behind.

The job is a small program without a framework, so that it takes a second; tests/e2e/test_tensorflow.py trains for real.
"""

import json
import os
import select
import shlex
import time
from pathlib import Path

import pytest
from tests.e2e.person import Person, eventually

from trainmaster.cluster.kubelet import cgroups
from trainmaster.testing import census

PROGRAM = """
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
me = config["task"]
if me["type"] == "ps":
    server = socket.create_server(("", 2222), backlog=16)
    while True:
        peer, address = server.accept()
        with peer:
            peer.sendall(b"gradient for " + peer.recv(100))
host, port = config["cluster"]["ps"][0].rsplit(":", 1)
for attempt in range(1200):
    try:
        link = socket.create_connection((host, int(port)), timeout=5)
        break
    except OSError:
        time.sleep(0.05)
link.sendall(b"%s at %s" % (os.uname().nodename.encode(), link.getsockname()[0].encode()))
print("received", link.recv(100).decode(), flush=True)
print("loss 2.0", flush=True)
print("loss 1.0", flush=True)
sys.exit(int(os.environ.get("CODE", "0")))
"""


def job(
    name: str = "small", code: int = 0, program: str = PROGRAM, workers: int = 2, folder: Path | None = None,
) -> str:
    """`folder`: of this machine, which the replicas see as /folder."""
    def role(replicas: int) -> dict[str, object]:
        container: dict[str, object] = {
            "name": "tensorflow", "image": "example.org/any:1", "command": ["python3", "-c", program],
            "env": [{"name": "CODE", "value": str(code)}]}
        spec: dict[str, object] = {"containers": [container]}
        if folder is not None:
            container["volumeMounts"] = [{"name": "folder", "mountPath": "/folder"}]
            spec["volumes"] = [{"name": "folder", "hostPath": {"path": str(folder)}}]
        return {"replicas": replicas, "restartPolicy": "Never", "template": {"spec": spec}}

    return json.dumps({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": {"PS": role(1), "Worker": role(workers)}},
    })


@pytest.mark.usefixtures("kubectl")
def test_kubectl_takes_a_job_from_its_manifest_to_its_end_and_nothing_stays(person: Person) -> None:
    before = census.taken()

    assert 0 == person.trainmaster("up").returncode
    assert "tfjob.kubeflow.org/small created" in person.kubectl("create", "-f", "-", text=job())
    person.kubectl("wait", "--for=condition=Succeeded", "--timeout=60s", "tfjob/small")

    assert ["NAME STATE AGE", "small Succeeded"] == [
        " ".join(line.split()[:3]) if line.startswith("NAME") else " ".join(line.split()[:2])
        for line in person.kubectl("get", "tfjob").splitlines()
    ]
    # The job is over with worker 0; the other goes on to its own end.
    person.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=110s", "pod/small-worker-1")
    said = person.kubectl("logs", "small-worker-1")
    assert "received gradient for small-worker-1 at 10.88." in said
    assert said.index("loss 2.0") < said.index("loss 1.0")
    described = eventually(lambda: person.kubectl("describe", "tfjob", "small"),
                           lambda said: "SuccessfulCreatePod" in said)      # events are written beside the work
    assert "SuccessfulCreatePod" in described
    assert "TFJobSucceeded" in described
    ours = person.kubectl("get", "pods,services", "-l", "training.kubeflow.org/job-name=small", "-o", "name").split()
    assert ["pod"] * 3 + ["service"] * 3 == [name.partition("/")[0] for name in ours]
    person.kubectl("delete", "tfjob", "small", "--timeout=60s")
    person.kubectl("wait", "--for=delete", "pod", "--all", "--timeout=60s")
    assert "" == person.kubectl("get", "pods", "-o", "name")
    assert 0 == person.trainmaster("down").returncode

    assert {} == leftovers(person, before)


def test_run_shows_the_job_and_its_outcome_is_the_exit_code(person: Person) -> None:
    good = person.trainmaster("run", "-", text=job())
    bad = person.trainmaster("run", "-", "-o", "json", text=job("broken", code=3))

    assert 0 == good.returncode, good.stderr
    assert "[worker-0] loss 1.0" in good.stdout
    assert "Succeeded after" in good.stderr
    assert "still running: small-ps-0" in good.stderr
    assert 1 == bad.returncode, bad.stderr
    assert "Failed" == json.loads(bad.stdout)["status"]["conditions"][-1]["type"], "for programs: the job as it ended"
    assert "exit code 3; its last lines:" in bad.stderr
    assert "    loss 1.0" in bad.stderr


def test_a_second_up_says_so_and_a_second_down_too(person: Person) -> None:
    state = person.home / "a folder with blanks"
    person.environment.update(TRAINMASTER_HOME=str(state), KUBECONFIG=str(state / "kubeconfig"))
    first = person.trainmaster("up").stderr
    told = next(line for line in first.splitlines() if "export" in line)

    assert ["export", f"KUBECONFIG={state}/kubeconfig"] == shlex.split(told), "it can be typed as it is"
    assert "is up already" in person.trainmaster("up").stderr
    assert "stays as it is" in person.trainmaster("up", "--cpus", "3").stderr
    assert 0 == person.trainmaster("status").returncode
    assert "is down" in person.trainmaster("down").stderr
    assert "was not up" in person.trainmaster("down").stderr
    assert 3 == person.trainmaster("status").returncode


@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize("part", ["control-plane", "node"])
def test_pods_go_on_when_a_part_is_killed_and_are_taken_up_again(person: Person, part: str) -> None:
    """The exit code of a pod that ended while nobody looked is not lost either."""
    waits = ("import os, time\n"
             "while not os.path.exists('/folder/go'): time.sleep(0.05)\n"
             "print('still here', flush=True)")
    folder = person.folder("flags", {"none": ""})
    person.trainmaster("up")
    person.kubectl("create", "-f", "-", text=job(program=waits, folder=folder))
    person.kubectl("wait", "--for=condition=Running", "--timeout=60s", "tfjob/small")
    born = person.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
    person.kill(part)
    (folder / "go").touch()
    restarted = person.trainmaster("up")

    assert 0 == restarted.returncode, restarted.stderr
    person.kubectl("wait", "--for=condition=Succeeded", "--timeout=60s", "tfjob/small")
    assert born == person.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
    assert "still here\n" == person.kubectl("logs", "small-worker-0")


def test_killing_everything_leaves_no_orphan(person: Person) -> None:
    before = census.taken()
    person.trainmaster("run", "-", text=job())
    for part in ("control-plane", "node"):
        person.kill(part)

    assert 0 == person.trainmaster("down").returncode
    assert {} == leftovers(person, before)


def test_a_home_that_is_removed_takes_its_cluster_with_it(person: Person) -> None:
    """The parameter server runs on after its job; nobody could find it any more."""
    before = census.taken()
    person.trainmaster("run", "-", text=job())
    handles = [os.pidfd_open(json.loads((person.state / "run" / name).read_text())["pid"])
               for name in ("control-plane.lock", "node.lock", "holder.json")]
    person.run("rm", "-rf", person.state)

    for handle in handles:
        assert select.select([handle], [], [], 60)[0], "it lives on"
        os.close(handle)
    assert {} == leftovers(person, before)


def leftovers(person: Person, before: census.Census) -> dict[str, list[str]]:
    """What is new and theirs, once processes that are on their way out have gone."""
    def look() -> dict[str, list[str]]:
        marks = (str(person.home), cgroups.name_for(person.state / "run"))
        found = {**census.own(census.taken() - before, marks), **census.of(census.told_of(person.home))}
        return {sort: things for sort, things in found.items() if things}

    deadline = time.monotonic() + 60  # the init of some machines takes its time to reap
    while (new := look()) and time.monotonic() < deadline:
        os.sched_yield()
    return new

