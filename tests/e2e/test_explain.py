"""Why a job failed, hangs or would wait, from a real cluster."""

import subprocess

from tests.e2e.person import Person

FAILS = """
import os, socket, time
print("begun", os.environ["RANK"], flush=True)
if os.environ["RANK"] == "1":
    while True:      # until the other has begun, too
        try:
            socket.create_connection((os.environ["MASTER_ADDR"], 7777), 60)
            break
        except OSError:
            time.sleep(0.1)
    raise ValueError("bad shape 3 != 4")
door = socket.create_server(("", 7777))
time.sleep(600)
"""
HANGS = "print('begun', flush=True)\nimport time\ntime.sleep(600)\n"
WANTS = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: wants}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: pytorch, image: python, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""


def test_a_job_says_what_is_wrong_with_it(person: Person) -> None:
    folder = person.folder("work", {"fails.py": FAILS, "hangs.py": HANGS, "wants.yaml": WANTS})
    person.trainmaster("up")
    person.trainmaster("run", str(folder / "fails.py"), "--workers", "2")
    hanging = subprocess.Popen(
        [*person.prefix, str(person.command), "run", str(folder / "hangs.py"), "--workers", "2"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=person.environment, cwd=person.home)
    assert hanging.stdout is not None
    hanging.stdout.readline()
    hanging.stdout.readline()
    hanging.terminate()
    hanging.communicate()

    failed = person.trainmaster("explain", "fails").stdout
    hung = person.trainmaster("explain", "hangs", "--quiet", "0s").stdout
    would = person.trainmaster("explain", "-f", str(folder / "wants.yaml")).stdout

    assert "fails-worker-1 failed first" in failed
    assert "ValueError: bad shape 3 != 4" in failed
    assert "begun 0\n" == person.trainmaster("logs", "fails", "--replica", "worker-0").stdout     # although it is gone
    assert "nothing was printed for" in hung
    assert 2 == hung.count("(hangs.py:3)"), hung
    assert "would wait: 0 of 2 members fit: 2 nvidia.com/gpu short; it would not fit even if nothing else ran" in would
