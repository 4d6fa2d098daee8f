"""Runs named tests of Kubernetes' own conformance suite against any API server, and says which passed.

    python tests/kubernetes/conformance.py KUBECONFIG LIST [--jobs 2] [--seconds 120] [--logs FOLDER]

One process per test: a test that hangs or brings the suite down costs one verdict, and each has its own log. Bodies are
JSON, as most clients send; the suite's default is protobuf. Tests marked [Serial] run alone, after the others. The
suite's own report decides, not its output: a test that was skipped or does not exist has not passed.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 120.0  # per test; on a real kube-apiserver all but the slowest of those that run no pod need less than 60
GRACE = 20.0  # for the suite to start, and to clean up after a test that was late
OUTCOMES = {"passed": "passed", "skipped": "skipped", "timedout": "timed out"}  # everything else has failed
OF_A_REAL_SERVER = 108  # of the tests that need no pod to run: kube-apiserver and kube-controller-manager 1.36.3
OF_A_NODE = 202  # tests in which a pod must run a process, and programs of this machine do in the place of images
REASON = 300  # characters of a failure that are shown


@dataclass(frozen=True, slots=True)
class Suite:
    """What runs the tests, against which server, and where the logs go."""

    binaries: Path
    kubeconfig: Path
    logs: Path
    seconds: float = SECONDS
    accounts: bool = True  # wait in every new namespace for the default account and the authority's certificate


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    outcome: str  # passed, failed, timed out, skipped, no such test
    seconds: float
    reason: str
    log: Path

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def run_all(suite: Suite, names: Sequence[str], jobs: int = 2) -> Iterator[Verdict]:
    """The verdicts in the order in which they are known."""
    together = [name for name in names if "[Serial]" not in name]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(run, suite, name) for name in together]
        for done in concurrent.futures.as_completed(waiting):
            yield done.result()
    for name in names:
        if "[Serial]" in name:
            yield run(suite, name)


def run_batches(suite: Suite, names: Sequence[str], jobs: int = 2) -> Iterator[Verdict]:
    """The same with one process for a share of them, since the suite takes seconds to start; `seconds` is a share's."""
    together = [name for name in names if "[Serial]" not in name]
    shares = [share for number in range(jobs) if (share := together[number::jobs])]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(run_share, suite, share) for share in shares]
        for done in concurrent.futures.as_completed(waiting):
            yield from done.result()
    if alone := [name for name in names if "[Serial]" in name]:
        yield from run_share(suite, alone)


def run(suite: Suite, name: str) -> Verdict:
    return run_share(suite, [name])[0]


def run_share(suite: Suite, names: Sequence[str]) -> list[Verdict]:
    """One after the other in one process, in an order that the suite chooses."""
    suite.logs.mkdir(parents=True, exist_ok=True)
    log = suite.logs / f"{re.sub(r'[^A-Za-z0-9]+', '-', names[0]).strip('-')[:150]}.log"
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, log.open("wb") as output:
        # A home of its own: kubectl caches what it learns of a server, and servers come and go on the same port. The
        # suite leaves temporary files behind.
        environment = {**os.environ, "HOME": folder, "TMPDIR": folder, "KUBECONFIG": str(suite.kubeconfig)}
        process = subprocess.Popen(
            command(suite, names, Path(folder)), cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            process.wait(suite.seconds + GRACE)
        except subprocess.TimeoutExpired:
            pass  # it was to end by itself before; without a report it has failed
        finally:
            process.kill()
            process.wait()
        specs = reported(Path(folder) / "report.json")
    return [Verdict(name, *judge(specs, name), log) for name in names]


def command(suite: Suite, names: Sequence[str], folder: Path) -> list[str]:
    return [
        str(suite.binaries / "e2e.test"),
        f"--kubeconfig={suite.kubeconfig}",
        f"--host={server(suite.kubeconfig)}",
        f"--kubectl-path={suite.binaries / 'kubectl'}",
        "--kube-api-content-type=application/json",
        "--provider=skeleton",
        "--num-nodes=1",
        "--allowed-not-ready-nodes=-1",  # there is no real node, and no pod in kube-system to wait for
        "--node-schedulable-timeout=5s",
        "--dump-logs-on-failure=false",
        "--disable-log-dump",
        f"--e2e-verify-service-account={'true' if suite.accounts else 'false'}",
        f"--e2e-output-dir={folder}",
        "--ginkgo.no-color",
        "--ginkgo.v",
        "--ginkgo.silence-skips",
        f"--ginkgo.timeout={suite.seconds:.0f}s",
        f"--ginkgo.json-report={folder / 'report.json'}",
        f"--ginkgo.focus=({'|'.join(map(re.escape, names))})$",
    ]


def reported(report: Path) -> list[dict[str, Any]] | None:
    """What the suite's report says of each test, or None if it ended without one."""
    if not report.exists():
        return None
    return [spec for suite in json.loads(report.read_text()) for spec in suite.get("SpecReports") or []]


def judge(specs: Sequence[dict[str, Any]] | None, name: str) -> tuple[str, float, str]:
    """The outcome, the seconds it took and, unless it passed, the reason in few words."""
    if specs is None:
        return "failed", 0.0, "the suite ended without a report"
    for spec in specs:  # what comes before and after the tests is reported only when it went wrong
        if spec["LeafNodeType"] != "It" and spec["State"] not in ("passed", "skipped"):
            return "failed", 0.0, f"{spec['LeafNodeType']}: {why(spec)}"
    ran = [
        spec for spec in specs if spec["LeafNodeType"] == "It" and spec.get("NumAttempts") and full_name(spec) == name
    ]
    if len(ran) != 1:
        return "no such test", 0.0, f"{len(ran)} tests of exactly this name ran"
    return OUTCOMES.get(ran[0]["State"], "failed"), ran[0].get("RunTime", 0) / 1e9, why(ran[0])


def full_name(spec: dict[str, Any]) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])


def why(spec: dict[str, Any]) -> str:
    words = " ".join(str((spec.get("Failure") or {}).get("Message", "")).split())
    return words if len(words) <= REASON else words[: REASON - 1] + "…"


def server(kubeconfig: Path) -> str:
    """The address in a kubeconfig, whether it is written as JSON or as YAML; the suite wants it a second time."""
    found = re.search(r"""server["']?:\s*["']?(https://[^\s"',}]+)""", kubeconfig.read_text())
    assert found, f"{kubeconfig} names no server"
    return found[1]


def names_in(path: Path) -> list[str]:
    """The test names in a file: one per line, empty lines and lines that start with # left out."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests named in LIST against the server of KUBECONFIG.")
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--binaries", type=Path, help="folder of e2e.test and kubectl (default: the test cache)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="per test")
    parser.add_argument("--batches", action="store_true", help="one process per job; --seconds is for all it runs")
    parser.add_argument("--logs", type=Path, default=None)
    parser.add_argument("--without-accounts", action="store_true", help="the server makes no default service accounts")
    asked = parser.parse_args()
    binaries = asked.binaries or built("e2e.test", "kubectl")
    logs = asked.logs or Path(tempfile.mkdtemp(prefix="conformance-logs-"))
    suite = Suite(binaries, asked.kubeconfig.absolute(), logs.absolute(), asked.seconds, not asked.without_accounts)
    names = names_in(asked.list)
    passed = 0
    for verdict in (run_batches if asked.batches else run_all)(suite, names, asked.jobs):
        passed += verdict.passed
        print(f"{verdict.outcome:12} {verdict.seconds:5.1f} s  {verdict.name}", flush=True)
        if not verdict.passed:
            print(f"{'':22}{verdict.reason}", flush=True)
    print(f"{passed} of {len(names)} passed; logs: {logs}")
    return 0 if passed == len(names) else 1


def built(*programs: str) -> Path:
    tool = Path(__file__).parents[2] / "tools" / "kubernetes_binaries.py"
    done = subprocess.run([sys.executable, tool, *programs], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


if __name__ == "__main__":
    sys.exit(main())
