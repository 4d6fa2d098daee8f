"""Every command that the README shows is typed, in its order, by somebody with a script of their own."""

import shutil

from tests.docs.readme import ROOT, commands
from tests.e2e.person import Person

TRAIN = "import os\nfor step in range(3): print(os.environ['RANK'], 'step', step, flush=True)\n"


def test_what_the_readme_shows_can_be_typed(person: Person) -> None:
    person.folder(".", {"train.py": TRAIN, "examples/tfjob/dist-mnist.yaml":
                        (ROOT / "examples/tfjob/dist-mnist.yaml").read_text()})
    typed = []
    for line in commands("README.md"):
        program, *arguments = line.split()
        if program == "trainmaster":
            done = person.trainmaster(*arguments)
        elif program == "kubectl" and shutil.which("kubectl"):
            done = person.run(program, *arguments)
        else:
            continue            # make has tests of its own; where the kubeconfig is, the person knows
        typed.append(line)
        assert 0 == done.returncode, f"{line}\n{done.stdout}{done.stderr}"

    assert "trainmaster run train.py --workers 4" in typed
