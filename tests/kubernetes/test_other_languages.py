"""Clients in JavaScript (@kubernetes/client-node) and Java (fabric8), unmodified, on the embedded server.

What they do is in `javascript/` and `java/`. Their packages come by npm and Maven, as these are set up on the machine,
into the test cache. Where there is no npm or Maven the tests say so and are left out; where nothing can be fetched,
TRAINMASTER_NO_CLIENTS=1 leaves them out, as those of other clients.
"""

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conformance.environments import made, ran
from tests.kubernetes.clusters import Cluster

pytestmark = pytest.mark.kubernetes

HERE = Path(__file__).parent
SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Language:
    folder: Path
    tools: tuple[str, ...]
    install: tuple[str, ...]
    listed: str                   # the file that says which packages
    program: str
    run: tuple[str, ...]
    pieces: str                   # how a piece of work begins in the program

    def names(self) -> list[str]:
        return re.findall(self.pieces, (self.folder / self.program).read_text(), re.MULTILINE)

    def installed(self) -> Path:
        """The folder with the packages and the program. Skips where they cannot be had."""
        missing = [tool for tool in self.tools if shutil.which(tool) is None]
        if missing:
            pytest.skip(f"there is no {' and no '.join(missing)} on this machine")
        digest = hashlib.sha256((self.folder / self.listed).read_bytes()).hexdigest()[:16]

        def install(into: Path) -> None:
            shutil.copy(self.folder / self.listed, into)
            ran(list(self.install), into)

        return made(f"{self.folder.name}-{digest}", install)


LANGUAGES = (
    Language(HERE / "javascript", ("node", "npm"),
             ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"),
             "package.json", "clients.js", ("node", "clients.js"), r'^    "([^"]+)": async \('),
    Language(HERE / "java", ("java", "mvn"),
             ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"),
             "pom.xml", "Clients.java", ("java", "-cp", "lib/*", "Clients.java"), r'PIECES\.put\("([^"]+)"'),
)


@pytest.fixture(scope="module", params=[pytest.param(each, id=each.folder.name) for each in LANGUAGES])
def language(request: pytest.FixtureRequest) -> Language:
    found: Language = request.param
    return found


def test_programs_in_other_languages_do_their_work(
        language: Language, embedded_server: Cluster, tmp_path: Path) -> None:
    packages = language.installed()
    for path in packages.iterdir():      # a program finds its packages beside itself
        (tmp_path / path.name).symlink_to(path)
    shutil.copy(language.folder / language.program, tmp_path)
    done = subprocess.run([*language.run, embedded_server.kubeconfig], cwd=tmp_path, capture_output=True, text=True,
                          timeout=SECONDS, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert language.names() == [line["name"] for line in lines], done.stderr[-2000:]
    assert {} == {line["name"]: line["error"] for line in lines if "error" in line}
