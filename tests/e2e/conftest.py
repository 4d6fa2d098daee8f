"""The product as a person uses it: real commands, a real cluster, as root and as an ordinary user."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.person import Person

ROOT = Path(__file__).parent.parent.parent
ORDINARY = 65432     # a user number that nobody has; no entry in the password file is needed
SHARED = Path("/var/tmp/trainmaster-tests")   # environments for the ordinary user: root's own cache is closed to others
SYSTEM_PYTHON = Path("/usr/bin/python3")      # root's interpreter may live below a home that is closed to others


@pytest.fixture(scope="session")
def kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is not on this machine; what it does here is tried only where it is")
    return found


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Below /var/tmp, since pytest's own folders are closed to other users."""
    made = Path(tempfile.mkdtemp(prefix="trainmaster-e2e-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def ordinary_installation(folder: Path) -> Path:
    """Trainmaster for a user who cannot read our checkout or our interpreter."""
    venv = folder / "venv"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", venv], check=True)
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", source], check=True)
    return venv / "bin" / "trainmaster"


PEOPLE = ("root", "ordinary user")


@pytest.fixture(params=PEOPLE)
def person(request: pytest.FixtureRequest, folder: Path) -> Iterator[Person]:
    """Each in turn where we are root; on a laptop, whoever runs the tests."""
    with somebody(request, folder) as found:
        yield found


@pytest.fixture(scope="module", params=PEOPLE)
def trainer(request: pytest.FixtureRequest, folder: Path) -> Iterator[Person]:
    """As `person`, with one cluster for all tests of a module."""
    with somebody(request, folder) as found:
        found.trainmaster("up")
        yield found


@contextmanager
def somebody(request: pytest.FixtureRequest, folder: Path) -> Iterator[Person]:
    am_root = os.geteuid() == 0
    if request.param == "root" and not am_root:
        pytest.skip("only root can try it as root; the ordinary user is you")
    home = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
    prefix: tuple[str, ...] = ()
    if request.param == "ordinary user" and am_root:
        installation: Path = request.getfixturevalue("ordinary_installation")
        prefix = ("setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups")
        os.chown(home, ORDINARY, ORDINARY)
        envs = SHARED / "envs"
        envs.mkdir(parents=True, exist_ok=True)
        os.chown(envs, ORDINARY, ORDINARY)
    else:
        installation = Path(sys.executable).parent / "trainmaster"
        envs = Path(os.environ.get("TRAINMASTER_ENVS") or home / "envs")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    someone = Person(request.param, home, installation, prefix, {
        **pip, "HOME": str(home), "PATH": path, "LANG": "C.UTF-8",
        "TRAINMASTER_HOME": str(home / "cluster"), "TRAINMASTER_ENVS": str(envs),
        "KUBECONFIG": str(home / "cluster" / "kubeconfig"),
    })
    yield someone
    someone.trainmaster("down")
    shutil.rmtree(home)
