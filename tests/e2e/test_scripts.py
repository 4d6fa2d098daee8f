"""A script and a number of workers: no manifest, no image."""

import re

from tests.e2e.person import Person

TRAIN = """
import os, sys
import helper
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print(helper.greeting(rank, size), *sys.argv[1:], os.environ["COLOUR"], flush=True)
open("model.txt", "w").write(f"weights {rank}")
sys.exit(int(os.environ.get("CODE", "0")))
"""
HELPER = "def greeting(rank, size): return f'I am {rank} of {size}'\n"


def test_a_script_runs_as_it_is_and_what_it_wrote_comes_back(person: Person) -> None:
    folder = person.folder("work", {"train.py": TRAIN, "helper.py": HELPER, "data.bin": "not sent"})

    done = person.trainmaster("run", str(folder / "train.py"), "--workers", "2", "--env", "COLOUR=blue",
                              "--output", str(folder / "out"), "--", "--epochs", "3")
    again = person.trainmaster("run", str(folder), "--workers", "3", "--env", "COLOUR=red", "--name", "second",
                               "--env", "CODE=4")

    assert 0 == done.returncode, done.stderr
    assert {"[worker-0] I am 0 of 2 --epochs 3 blue", "[worker-1] I am 1 of 2 --epochs 3 blue"} == set(
        done.stdout.splitlines())
    assert "plain Python, as a PyTorchJob" in done.stderr
    assert ["model.txt"] == [path.name for path in (folder / "out" / "worker-1").iterdir()]
    assert "weights 1" == (folder / "out" / "worker-1" / "model.txt").read_text()
    assert 1 == again.returncode, again.stderr
    # Which of the three fails first is open, and those that had not begun by then never do.
    first = re.search(r"first to fail: worker-(\d), exit code 4", again.stderr)
    assert first, again.stderr
    assert f"[worker-{first[1]}] I am {first[1]} of 3 red" in again.stdout.splitlines()


def test_several_jobs_of_one_call_are_followed_together_and_the_worst_end_counts(person: Person) -> None:
    def manifest(name: str, code: int) -> str:
        container = f"{{name: pytorch, image: python, command: [sh, -c, 'echo I am {name}; exit {code}']}}"
        return (f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: {name}}}\nspec:\n"
                "  pytorchReplicaSpecs:\n    Worker:\n      restartPolicy: Never\n"
                f"      template: {{spec: {{containers: [{container}]}}}}\n")

    folder = person.folder("jobs", {"good.yaml": manifest("good", 0), "bad.yaml": manifest("bad", 3)})
    done = person.trainmaster("run", str(folder))

    assert 1 == done.returncode, done.stderr
    assert {"[good/worker-0] I am good", "[bad/worker-0] I am bad"} == set(done.stdout.splitlines())
    assert "good: Succeeded after" in done.stderr
    assert "bad: first to fail: worker-0, exit code 3" in done.stderr
