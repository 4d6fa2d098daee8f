"""How fast the log of a pod is followed, and what a pod that prints without end costs.

    trainmaster up; KUBECONFIG=… python benchmarks/node/logs.py

Prints lines a second that `kubectl logs -f` shows while a pod prints them, and the megabytes a second that another pod
prints undisturbed while nobody reads, with what its log then takes on disk. Goals: 50,000 lines/s; 100 MB/s.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

LINES = 2_000_000
SECONDS = 5.0
FLOOD = "yes 'a line of eighty characters that a program prints again and again, as fast as ever'"


def kubectl(*arguments: str) -> str:
    return subprocess.run(["kubectl", *arguments], check=True, capture_output=True, text=True, timeout=120).stdout


def running(name: str, script: str) -> dict[str, object]:
    kubectl("run", name, "--image=busybox", "--restart=Never", "--command", "--", "sh", "-c", script)
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    found: dict[str, object] = json.loads(kubectl("get", "pod", name, "-o", "json"))["metadata"]
    return found


def followed() -> float:
    """Lines a second, from the first that is shown to the last."""
    running("bench-lines", f"sleep 2; seq 1 {LINES}; sleep 1")
    with subprocess.Popen(["kubectl", "logs", "-f", "bench-lines"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        began, count, ended = time.perf_counter(), 1, 0.0
        while data := process.stdout.read(1 << 16):
            count += data.count(b"\n")
            if count >= LINES and not ended:
                ended = time.perf_counter()
    assert (first, count) == (b"1\n", LINES), f"{count} of {LINES} lines came"
    return LINES / (ended - began)


def flooded(logs: Path) -> tuple[float, float]:
    """Megabytes a second that were printed, and megabytes that are kept."""
    about = running("bench-flood", FLOOD)
    folder = logs / f"{about['namespace']}_{about['name']}_{about['uid']}" / "bench-flood" / "0"

    def printed() -> int:
        files = {int(path.stem): path.stat().st_size for path in folder.glob("*.log")}
        newest = max(files)
        return newest * 10 * 1024 * 1024 + files[newest]

    begun, began = printed(), time.perf_counter()
    time.sleep(SECONDS)
    rate = (printed() - begun) / (time.perf_counter() - began)
    return rate / 1e6, sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def main() -> int:
    logs = Path(os.environ["KUBECONFIG"]).parent / "logs" / "pods"
    try:
        lines = followed()
        rate, kept = flooded(logs)
    finally:
        kubectl("delete", "pod", "bench-lines", "bench-flood", "--ignore-not-found", "--grace-period=0", "--force")
    load = os.getloadavg()[0]
    print(f"followed {lines:,.0f} lines/s; printed {rate:,.0f} MB/s with {kept:.0f} MB on disk (load {load:.0f})")
    return 0 if lines >= 50_000 and rate >= 100 else 1


if __name__ == "__main__":
    sys.exit(main())
