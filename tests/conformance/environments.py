"""Other people's clients, each version in a folder of its own: several versions do not fit into one environment.

A folder is made once from a list with hashes (`clients/NAME.lock`, made by `make lock`) and kept outside the checkout,
under a name that says what is in it; a list that changes makes a new folder. A program finds what is in it through
PYTHONPATH, so a folder of packages is enough: virtual environments would be six more interpreters to keep alive.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tools.kubernetes_binaries import cache

LOCKS = Path(__file__).parent / "clients"
WITHOUT = "TRAINMASTER_NO_CLIENTS"
PATIENCE = 300.0
DEBIAN = "kubernetes-client"  # the package of Debian 12 and 13; its kubectl is 1.20


def packages(name: str) -> Path:
    """The folder with the packages that `clients/NAME.lock` lists, installed if it is not there."""
    lock = LOCKS / f"{name}.lock"
    digest = hashlib.sha256(sys.version.encode() + lock.read_bytes()).hexdigest()[:16]

    def install(folder: Path) -> None:
        ran([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
              "--require-hashes", "--target", str(folder), "-r", str(lock)])

    return made(f"{name}-{digest}", install)


def debian_kubectl() -> Path:
    """The kubectl of Debian, beside whatever this machine has installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip("no Debian: its kubectl cannot be fetched here")

    def unpack(folder: Path) -> None:
        ran(["apt-get", "download", "--quiet", "-o", "APT::Sandbox::User=root", DEBIAN], folder)
        ran(["dpkg", "-x", *map(str, folder.glob(f"{DEBIAN}_*.deb")), str(folder)])

    return made(DEBIAN, unpack) / "usr" / "bin" / "kubectl"


def made(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that appears under its name only when it is whole; two who want it take turns."""
    home = cache().parents[1] / "clients"
    found = home / name
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / ".lock"):
        if not found.exists():
            with tempfile.TemporaryDirectory(prefix=".make-", dir=home) as scratch:
                whole = Path(scratch) / "whole"
                whole.mkdir()
                try:
                    make(whole)
                except subprocess.SubprocessError as error:
                    _missing(name, error)
                whole.rename(found)
    return found


def ran(command: list[str], folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE)


def _missing(name: str, error: subprocess.SubprocessError) -> None:
    if os.environ.get(WITHOUT) == "1":
        pytest.skip(f"{WITHOUT}=1: {name} could not be fetched, so it is not tested")
    said = str(getattr(error, "stderr", "") or error)[-2000:]
    pytest.fail(f"{name} could not be fetched. Where there is no network, {WITHOUT}=1 leaves the tests with other "
                f"people's clients out and says so.\n{said}", pytrace=False)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
