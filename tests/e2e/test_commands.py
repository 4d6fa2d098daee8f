"""A day with a job that runs: the commands that need a node, and a control plane that is killed meanwhile."""

import json
import subprocess

from tests.e2e.person import Person, eventually

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: steps}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: pytorch
            image: any
            command: [sh, -c, "i=0; until [ -e /tmp/stop ]; do i=$((i + 1)); echo step $i; sleep 0.1; done; echo last"]
"""


def test_a_job_is_followed_entered_and_ended_across_the_death_of_the_control_plane(person: Person) -> None:
    """Slow: a real cluster, and nothing cheaper has processes to enter and a server that dies."""

    def says(*words: str, text: str = "") -> str:
        done = person.trainmaster(*words, text=text)
        assert 0 == done.returncode, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    says("up")
    assert "pytorchjob.kubeflow.org/steps created\n" == says("apply", "-f", "-", text=JOB)
    assert "Running" in says("wait", "steps", "--for", "Running", "--timeout", "110s")
    # The job runs with the first of its replicas; what follows needs both.
    begun = eventually(lambda: says("logs", "steps"), lambda said: "[worker-0]" in said and "[worker-1]" in said)
    assert "[worker-0] step 1\n" in begun
    assert "[worker-1] step 1\n" in begun
    following = subprocess.Popen(
        [*person.prefix, str(person.command), "logs", "-f", "steps"], env=person.environment, cwd=person.home,
        text=True, stdout=subprocess.PIPE)
    try:
        assert following.stdout is not None
        first = following.stdout.readline()
        person.kill("control-plane")
        assert 3 == person.trainmaster("get", "jobs").returncode
        says("up")
        assert "steps-worker-1\n" == says("exec", "steps/worker-1", "--", "hostname")
        assert "to it\n" == says("exec", "-i", "steps", "--", "cat", text="to it\n")
        failed = person.trainmaster("exec", "-o", "json", "steps", "--", "sh", "-c", "echo no >&2; exit 7")
        assert (7, {"pod": "steps-worker-0", "replica": "worker-0", "exitCode": 7, "stdout": "", "stderr": "no\n"}) == (
            failed.returncode, json.loads(failed.stdout))
        line = json.loads(says("logs", "steps", "--replica", "worker-1", "-o", "json").splitlines()[0])
        assert ("worker-1", "step 1") == (line["replica"], line["text"])
        assert ["REPLICA", "worker-0", "worker-1"] == [line.split()[0] for line in says("top", "steps").splitlines()]
        (person.home / "stop").write_text("now")
        says("cp", str(person.home / "stop"), "steps/worker-0:/tmp/note")
        assert f"{person.home / 'back'}\n" == says(
            "cp", "-o", "name", "steps/worker-0:/tmp/note", str(person.home / "back"))
        for replica in ("worker-1", "worker-0"):
            says("cp", str(person.home / "stop"), f"steps/{replica}:/tmp/stop")
        assert "Succeeded" in says("wait", "steps", "--timeout", "110s")
        told = first + following.stdout.read()
        assert 0 == following.wait(60)
    finally:
        following.kill()
        following.communicate()

    assert "now" == (person.home / "back").read_text()
    for replica in ("worker-0", "worker-1"):      # every line once, in order, through the death of the server
        lines = [line.removeprefix(f"[{replica}] ") for line in told.splitlines()
                 if line.startswith(f"[{replica}]")]
        assert [*(f"step {number}" for number in range(1, len(lines))), "last"] == lines
    assert "pytorchjob.kubeflow.org/steps deleted\n" == says("delete", "steps")
    assert "" == says("get", "pods")
