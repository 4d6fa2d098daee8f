"""A script and a number of workers: no manifest, no image."""

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
    assert "[worker-2] I am 2 of 3 red" in again.stdout
    assert "exit code 4" in again.stderr
