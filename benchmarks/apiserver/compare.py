"""The embedded API server beside kube-apiserver and etcd: the same load on both, durable and with TLS, ratios out.

    python benchmarks/apiserver/compare.py [--repeats N] [--calm SHARE]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
HARNESS = Path(os.environ.get("BENCH_HARNESS") or ROOT.parent / "shared" / "bench")
TRAINMASTER = Path(sys.executable).parent / "trainmaster"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--calm", type=float, default=1.0, help="start when others use less than this share")
    asked = parser.parse_args()
    if not (HARNESS / "server.py").exists():
        print(f"No load generator in {HARNESS}. Set BENCH_HARNESS to its folder.", file=sys.stderr)
        return 2
    arguments = ["--repeats", "1", "--calm", str(asked.calm)]
    for _ in range(asked.repeats):
        ours, peer = measure_ours(arguments), measure_peer(arguments)
        print(json.dumps({"ours": ours, "peer": peer}))
        report(ours, peer)
    return 0


def measure_peer(arguments: list[str]) -> dict[str, Any]:
    tool = ROOT / "tools" / "kubernetes_binaries.py"
    return harness("--bin", printed([sys.executable, tool, "etcd", "kube-apiserver"]).strip(), *arguments)


def measure_ours(arguments: list[str]) -> dict[str, Any]:
    """The server alone, as `trainmaster up --only apiserver` starts it, in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as folder:
        environment = {**os.environ, "TRAINMASTER_HOME": folder}
        began = time.perf_counter()
        subprocess.run([TRAINMASTER, "up", "--only", "apiserver"], env=environment, check=True, capture_output=True)
        ready = time.perf_counter() - began
        try:
            access = yaml.safe_load(Path(folder, "kubeconfig").read_text())
            token, authority = Path(folder, "token"), Path(folder, "pki", "ca.crt")
            token.write_text(access["users"][0]["user"]["token"])
            pid = json.loads(Path(folder, "run", "control-plane.lock").read_text())["pid"]
            found = harness("--server", access["clusters"][0]["cluster"]["server"], "--token-file", str(token),
                            "--ca", str(authority), "--pids", str(pid), *arguments)
        finally:
            subprocess.run([TRAINMASTER, "down"], env=environment, check=True, capture_output=True)
    return {**found, "ready_s": round(ready, 2)}


def harness(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed([sys.executable, HARNESS / "server.py", *arguments]).splitlines()[-1])
    return found


def printed(command: list[str | Path]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def report(ours: dict[str, Any], peer: dict[str, Any]) -> None:
    print(f"{'at 8 connections':<18}{'ours':>10}{'peer':>10}{'ratio':>8}")
    for name in ours["c8"]:
        mine, theirs = ours["c8"][name], peer["c8"][name]
        for figure in mine:
            if isinstance(mine[figure], int | float) and theirs.get(figure):
                ratio = mine[figure] / theirs[figure]
                print(f"{name + ' ' + figure:<18}{mine[figure]:>10}{theirs[figure]:>10}{ratio:>8.2f}")
    for figure in ("ready_s", "rss_idle", "rss_after_ops", "fanout"):
        print(f"{figure}\n  ours {ours[figure]}\n  peer {peer[figure]}")


if __name__ == "__main__":
    sys.exit(main())
