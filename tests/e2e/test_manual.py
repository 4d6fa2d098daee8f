"""Everything that README and manual show is typed, page by page and in its order, on one cluster, by an ordinary user.

Jobs run to their end, other manifests are applied, programs run. What cannot be done here stands in `ELSEWHERE` with
the reason; docs/operator.md is about a Kubernetes of one's own, which tests/kubernetes has. Pages in Chinese show what
their English twins show (tests/docs), so these are typed once.
"""

import shlex
import signal
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, ROOT, blocks, commands, files, mentioned
from tests.e2e.conftest import somebody
from tests.e2e.person import Person, eventually

PAGES = [page for page in (
    str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if not {"zh", "design"} & set(path.parts) and path.name != "operator.md"
) if commands(page) or mentioned(page) or blocks(page, "yaml") or blocks(page, "python")]
# These train with a framework, which takes minutes to install: in the tier where it is there.
TRAINING = {page for page in PAGES if page == "docs/start/first-job.md" or page.startswith("docs/walk-throughs/")}
ELSEWHERE = {
    "make *": "tests/e2e/test_newcomer.py types `make run`; `make test` is what runs this",
    "trainmaster operator*": "on a Kubernetes of one's own, where nobody else is the operator: tests/kubernetes",
    "trainmaster scheduler*": "on a Kubernetes of one's own, where nobody else is the scheduler: tests/kubernetes",
    "trainmaster crds | kubectl apply -f -": "part of the same session",
    "trainmaster up --gang-scheduler-name *": "tests/e2e/test_gangs.py, which starts a cluster of each sort",
    "trainmaster completion zsh *": "fpath is a word of zsh; tests/unit/cli looks at its script",
}
# Go on until they are told to stop.
ENDLESS = {"trainmaster get jobs -A -w", "trainmaster logs -f mnist --replica worker --tail 10",
           "trainmaster logs -f mnist"}
# After these the next line may not find the job as it was.
CHANGING = ("down", "delete", "suspend", "scale", "restart", "resume")
JOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: NAME}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 0
          containers:
          - name: tensorflow
            image: python
            command: [sh, -c, "mkdir -p /workspace; touch /workspace/model.pt; echo step 1/1; sleep SECONDS"]
"""
TRAIN = "import os\nfor step in range(3): print(os.environ.get('RANK', '-'), 'step', step, flush=True)\n"


def job(name: str, seconds: str) -> str:
    return JOB.replace("NAME", name).replace("SECONDS", seconds)


class Reader:
    """Somebody with the manual before them: a shell, the files that pages speak of, and a job called mnist."""

    def __init__(self, person: Person) -> None:
        environment = {**person.environment, "PATH": f"{person.command.parent}:{person.environment['PATH']}"}
        for name in ("TRAINMASTER_HOME", "KUBECONFIG"):      # as in the manual: where they are if nobody says
            environment.pop(name)
        self._person = replace(person, environment=environment)
        files = {"train.py": TRAIN, "my-folder/main.py": TRAIN, "trainer/task.py": TRAIN, "data.csv": "1,2\n",
                 "requirements.txt": "", "job.yaml": job("digits", "0")}
        examples = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "examples").rglob("*.yaml")}
        person.folder(".", {**files, **examples})
        with tarfile.open(person.home / "image.tar", "w") as tar:
            tar.add(person.home / "data.csv", "etc/data.csv")
        (person.home / "image.tar").chmod(0o644)
        self.typed: set[str] = set()
        self.changed = True

    def begins(self) -> None:
        """The cluster is up, and mnist runs."""
        if not self.changed:
            return
        self.types("trainmaster up")
        self.types("trainmaster delete --all")
        self.types("trainmaster apply -f -", job("mnist", "infinity"))
        self.types("trainmaster wait mnist --for Running --timeout 110s")
        # It runs with the first of its replicas, and that before the replica has done anything.
        said = eventually(lambda: self._person.run("bash", "-c", "trainmaster logs mnist").stdout,
                          lambda said: 2 == said.count("step 1/1"))
        assert 2 == said.count("step 1/1"), said
        self.changed = False

    def types(self, line: str, text: str = "") -> None:
        self.typed.add(line)
        words = line.split()
        self.changed = self.changed or words[1] in CHANGING
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._person.environment[name] = value.replace("~", str(self._person.home))
        elif line in ENDLESS:
            self._and_stops(line)
        else:
            done = self._person.run("bash", "-c", line, text=text, timeout=900)
            assert 0 == done.returncode, f"{line}\n{done.stdout}{done.stderr}"

    def runs(self, program: str) -> None:
        file = self._person.folder("programs", {"shown.py": program}) / "shown.py"
        done = self._person.run(self._person.command.parent / "python", file)
        assert 0 == done.returncode, f"{program}\n{done.stdout}{done.stderr}"
        self.changed = True

    def turns(self, files: Mapping[str, str]) -> None:
        """The page, with what it says to save, and in a new shell."""
        for name, text in files.items():
            (self._person.home / name).write_text(text)
        self._person.environment.pop("KUBECONFIG", None)

    def _and_stops(self, line: str) -> None:
        person = self._person
        typed = [*person.prefix, "env", "--default-signal=INT", *shlex.split(line)]
        running = subprocess.Popen(typed, env=person.environment, cwd=person.home, stdout=subprocess.PIPE, text=True)
        try:
            assert running.stdout is not None
            assert running.stdout.readline(), line
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=60)
            assert 130 == running.returncode, line
        finally:
            running.kill()


@pytest.fixture(scope="module", params=["ordinary user"])
def reader(request: pytest.FixtureRequest, folder: Path) -> Iterator[Reader]:
    with somebody(request, folder) as person:
        found = Reader(person)
        yield found
        found.turns({})
        found.types("trainmaster down")


def elsewhere(line: str) -> bool:
    return any(fnmatchcase(line, pattern) for pattern in ELSEWHERE)


@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize("page", [
    pytest.param(page, marks=[pytest.mark.frameworks, pytest.mark.full] if page in TRAINING else [], id=page)
    for page in PAGES
])
def test_a_page_can_be_typed(page: str, reader: Reader) -> None:
    """Slow: real processes on a real cluster, as a person has them."""
    reader.turns(files(page))
    shown = [line for line in commands(page) if not elsewhere(line)]
    if any(line.startswith("trainmaster up --") for line in shown[:1]):      # a cluster that is up stays as it is
        reader.types("trainmaster down")
    else:
        reader.begins()
    for line in shown:
        reader.types(line)
    for manifest in set(blocks(page, "yaml")) - set(files(page).values()):
        reader.types("trainmaster run -" if "ReplicaSpecs:" in manifest else "trainmaster apply -f -", manifest)
    for program in blocks(page, "python"):
        reader.runs(program)
    for line in mentioned(page):
        if not elsewhere(line) and line not in reader.typed:
            reader.begins()
            reader.types(line)


def test_what_is_done_elsewhere_is_still_shown() -> None:
    shown = [line for page in PAGES for line in (*commands(page), *mentioned(page))]

    assert [] == [pattern for pattern in ELSEWHERE if not any(fnmatchcase(line, pattern) for line in shown)]
    assert set() == ENDLESS - set(shown)
