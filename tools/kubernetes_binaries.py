"""Builds the real etcd and Kubernetes programs that the `kubernetes` test tier runs against.

    python tools/kubernetes_binaries.py etcd kube-apiserver      prints the folder that holds them, built if missing

Nobody has to install a cluster to test against one: the programs come as source from their Go modules, through the
ordinary Go client with whatever settings it has on this machine, into a cache outside the checkout. Downloading
released programs was rejected: it needs a second source of trust and a list of hosts, while `go` verifies every module.

Only what is asked for is built (the whole set takes about half an hour on two cores, etcd less than a minute). A
program appears under its name only when it is whole, and two builds into one cache take turns.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# The pins: everything this tier compares us with has these versions and no others.
KUBERNETES = "1.36.3"
ETCD = "3.6.16"
TRAINING_OPERATOR = "1.9.4"
CONTROLLER_RUNTIME = "0.24.1"
# The oldest Kubernetes whose modules build as they are: those of 1.22 and 1.23 lack a generated file.
OLD_KUBERNETES, OLD_GO = "1.24.17", "go1.21.13"

EXIT_BUILD_FAILED = 1
EXIT_NO_GO = 3  # its own code, so that a caller can tell "cannot" from "went wrong"; 2 means wrong arguments

OWN = Path(__file__).parents[1] / "tests" / "kubernetes" / "go"  # a Go program of ours, not one of a module

QUIET_FOR = 20.0  # seconds between progress lines: a person sees that it lives, a log stays short
TAIL = 30  # lines of the Go client that are shown when it fails


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    module: str
    version: str
    package: str
    is_test: bool = False  # e2e.test is a compiled test package, not a command
    toolchain: str = ""  # the Go that builds it, where the installed one is too new


PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "go.etcd.io/etcd/server/v3", ETCD, "go.etcd.io/etcd/server/v3"),
        *(
            Program(name, "k8s.io/kubernetes", KUBERNETES, f"k8s.io/kubernetes/cmd/{name}")
            for name in ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
        ),
        Program(
            f"kube-apiserver-{OLD_KUBERNETES}",
            "k8s.io/kubernetes",
            OLD_KUBERNETES,
            "k8s.io/kubernetes/cmd/kube-apiserver",
            toolchain=OLD_GO,
        ),
        Program(
            f"training-operator-{TRAINING_OPERATOR}",  # its version is not in the name of the folder
            "github.com/kubeflow/training-operator",
            TRAINING_OPERATOR,
            "github.com/kubeflow/training-operator/cmd/training-operator.v1",
        ),
        Program("e2e.test", "k8s.io/kubernetes", KUBERNETES, "k8s.io/kubernetes/test/e2e", is_test=True),
        *(
            Program(name, "k8s.io/kubernetes", KUBERNETES, f"k8s.io/kubernetes/test/images/{name}")
            for name in ("agnhost", "nonewprivs")  # what the pods of the tests run
        ),
    )
}


def go_clients() -> str:
    """The name of our own Go program; a changed source is another program."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(OWN.glob("*.go"))))
    return f"go-clients-{CONTROLLER_RUNTIME}-{digest.hexdigest()[:12]}"


class NoGo(Exception):
    """There is no Go on this machine that could build the programs."""


class BuildFailed(Exception):
    """The Go client did not manage; the message ends with what it said."""


def cache() -> Path:
    """Where the programs are kept: one folder per set of pins, so that changing a pin never reuses an old program."""
    base = os.environ.get("TRAINMASTER_TEST_CACHE")
    if not base:
        base = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmaster-tests")
    return Path(base).absolute() / "kubernetes" / f"{KUBERNETES}-etcd-{ETCD}"


def ensure(names: Sequence[str], folder: Path, jobs: int = 0) -> Path:
    """Make sure that `folder` holds the named programs, whole; returns the folder."""
    if all((folder / name).exists() for name in names):
        return folder
    go = shutil.which("go")
    if go is None:
        raise NoGo(
            "Go is not installed (no `go` in PATH), so etcd and Kubernetes cannot be built for these tests. "
            "Install Go 1.26 or newer, or put the programs into " + str(folder)
        )
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        for left in folder.glob(".build-*"):  # a build that was killed; we hold the lock, so it is nobody's now
            shutil.rmtree(left, ignore_errors=True)
        for name in names:
            if not (folder / name).exists():  # another build may have made it while we waited
                build(found(name), folder, go, jobs)
    return folder


def found(name: str) -> Program:
    if name == go_clients():
        return Program(name, "", CONTROLLER_RUNTIME, ".")
    return PROGRAMS[name]


def build(program: Program, folder: Path, go: str, jobs: int) -> None:
    """Compile one program and let it appear in `folder` in one step."""
    began = time.monotonic()
    say(f"{program.name} {program.version}: fetching its modules")
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as scratch:
        module, output = Path(scratch) / "module", Path(scratch) / program.name
        module.mkdir()
        if program.module:
            write_module(program, module, go)
        else:
            write_own_module(module)
        run(compile_command(program, go, output, jobs), module, program)
        output.chmod(0o755)
        with output.open("rb") as whole:
            os.fsync(whole.fileno())  # the name must not survive a power cut that the content does not
        output.rename(folder / program.name)
    size = (folder / program.name).stat().st_size / 1e6
    say(f"{program.name} {program.version}: built in {time.monotonic() - began:.0f} s, {size:.0f} MB")


def write_module(program: Program, folder: Path, go: str) -> None:
    """Write a small main module that depends on the program's.

    The parts of Kubernetes that are published on their own (k8s.io/api and so on) are `replace`d by folders that a
    downloaded module does not have, and `replace` counts only in the main module. So ours points each at its release,
    which has the minor and patch number of Kubernetes and major number 0.
    """
    download = [go, "mod", "download", "-json", f"{program.module}@v{program.version}"]
    fetched = json.loads(capture(download, folder, program))
    described = json.loads(capture([go, "mod", "edit", "-json", fetched["GoMod"]], folder, program))
    staged = [
        replaced["Old"]["Path"]
        for replaced in described.get("Replace") or []
        if replaced["New"]["Path"].startswith("./staging/")
    ]
    lines = [
        "module build.invalid/programs",
        f"go {described['Go']}",
        f"require {program.module} v{program.version}",
        *(f"replace {path} => {path} v0.{program.version.partition('.')[2]}" for path in staged),
    ]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")


def write_own_module(folder: Path) -> None:
    """Our sources, and what they are written with, at the pins."""
    for path in OWN.glob("*.go"):
        shutil.copy(path, folder)
    parts = ("api", "apimachinery", "client-go", "apiextensions-apiserver")
    lines = [
        "module build.invalid/clients",
        "go 1.26.0",
        *(f"require k8s.io/{name} v0.{KUBERNETES.partition('.')[2]}" for name in parts),
        f"require sigs.k8s.io/controller-runtime v{CONTROLLER_RUNTIME}",
    ]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")


def compile_command(program: Program, go: str, output: Path, jobs: int) -> list[str]:
    verb = ["test", "-c"] if program.is_test else ["build"]
    parallel = [f"-p={jobs}"] if jobs else []
    flags = ["-mod=mod", "-trimpath", "-buildvcs=false", "-v", "-ldflags", link_flags(program)]
    return [go, *verb, *parallel, *flags, "-o", str(output), program.package]


def link_flags(program: Program) -> str:
    """Strip, and tell a Kubernetes program its version: it knows it only from the linker."""
    if program.module != "k8s.io/kubernetes":
        return "-s -w"
    major, minor, _ = program.version.split(".")
    values = {"gitVersion": f"v{program.version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    homes = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {home}.{key}={value}" for home in homes for key, value in values.items())])


def environment(program: Program) -> dict[str, str]:
    # GOWORK: a workspace around the cache folder must not take part. Everything else is as this machine has it.
    toolchain = {"GOTOOLCHAIN": program.toolchain} if program.toolchain else {}
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", **toolchain}


def capture(command: Sequence[str], folder: Path, program: Program) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(program), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise failure(command, (done.stderr or done.stdout).splitlines())
    return done.stdout


def run(command: Sequence[str], folder: Path, program: Program) -> None:
    """Run the compiler, and say now and then how far it is: it works for minutes."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment(program), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()
    began = time.monotonic()
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(QUIET_FOR)
                break
            say(f"{program.name}: {progress(lines)}, {time.monotonic() - began:.0f} s")
    except BaseException:  # Ctrl-C: the compiler must not go on behind our back
        process.terminate()
        process.wait()
        raise
    reader.join()
    if process.returncode != 0:
        raise failure(command, lines)


def progress(lines: Sequence[str]) -> str:
    """From what `-v` prints: a line per module and per compiled package; of a test, the modules only."""
    compiled = sum(1 for line in lines if not line.startswith("go: "))
    return f"{compiled} packages compiled" if compiled else "at work"


def failure(command: Sequence[str], lines: Sequence[str]) -> Exception:
    said = [line.rstrip() for line in lines if line.strip()]
    for line in said:
        if "requires go >=" in line or "toolchain not available" in line:
            return NoGo(f"This Go is too old to build the programs ({line}). Install a newer one.")
    shown = "\n".join(f"    {line}" for line in said[-TAIL:])
    return BuildFailed(f"`{' '.join(command[:4])} ...` failed. What Go said last:\n{shown}")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock that the kernel drops when we die, whatever the reason."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build is at work in {path.parent}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # stdout carries the folder and nothing else


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Build the named programs into the test cache (what is there is kept) and print its folder."
    )
    known = [*PROGRAMS, go_clients()]
    parser.add_argument("programs", nargs="+", choices=known, metavar="PROGRAM", help=" ".join(known))
    parser.add_argument("-p", "--jobs", type=int, default=0, help="compile this many packages at once (default: Go's)")
    asked = parser.parse_args(arguments)
    try:
        print(ensure(asked.programs, cache(), asked.jobs))
    except NoGo as why:
        say(str(why))
        return EXIT_NO_GO
    except BuildFailed as why:
        say(str(why))
        return EXIT_BUILD_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
