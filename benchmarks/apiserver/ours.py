"""The embedded API server as `trainmaster up --only apiserver` starts it, in a home of its own, for one measurement."""

import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
HARNESS = Path(os.environ.get("BENCH_HARNESS") or ROOT.parent / "shared" / "bench")
TRAINMASTER = Path(sys.executable).parent / "trainmaster"
RESULTS = Path(__file__).parent / "results.md"
if not (HARNESS / "server.py").exists():
    sys.exit(f"No load generator in {HARNESS}. Set BENCH_HARNESS to its folder.")
sys.path.insert(0, str(HARNESS))


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    token: str
    authority: str          # path of its certificate
    pid: int
    ready: float            # seconds until it was

    @property
    def target(self) -> tuple[str, str, str]:
        return self.url, self.token, self.authority

    def cpu(self) -> float:
        """Seconds that it has computed so far, all threads; finer than the ticks of /proc/PID/stat."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def loop_cpu(self) -> float:
        """Seconds of the thread that answers requests."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def memory(self) -> float:
        """Resident, in MB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def running() -> Iterator[Running]:
    compileall.compile_dir(ROOT / "src", quiet=1)  # an installed package is, a checkout need not be
    with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder:
        environment = {**os.environ, "TRAINMASTER_HOME": folder}
        began = time.perf_counter()
        subprocess.run([TRAINMASTER, "up", "--only", "apiserver"], env=environment, check=True, capture_output=True)
        ready = time.perf_counter() - began
        try:
            access = yaml.safe_load(Path(folder, "kubeconfig").read_text())
            pid = json.loads(Path(folder, "run", "control-plane.lock").read_text())["pid"]
            yield Running(access["clusters"][0]["cluster"]["server"], access["users"][0]["user"]["token"],
                          str(Path(folder, "pki", "ca.crt")), pid, ready)
        finally:
            subprocess.run([TRAINMASTER, "down"], env=environment, check=True, capture_output=True)
