"""The tool that builds the real programs, with a stand-in for the Go client: these tests need no Go and no network."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "kubernetes_binaries.py"

# Answers the three questions that the tool asks, and writes down how it was asked to compile.
GO = """#!/bin/sh
case "$1 $2" in
"mod download") echo '{"GoMod": "x.mod"}' ;;
"mod edit") echo '{"Go": "1.26.0", "Replace": [
    {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
    {"Old": {"Path": "example.com/elsewhere"}, "New": {"Path": "../elsewhere"}}]}' ;;
*)  echo "$*" >> "$ASKED"; cat go.mod >> "$ASKED"; echo "cgo=$CGO_ENABLED" >> "$ASKED"
    while [ "$1" != -o ]; do shift; done
    printf program > "$2"
    %s ;;
esac
"""

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    def run(*programs: str, go: str | None = "exit 0") -> subprocess.CompletedProcess[str]:
        path = tmp_path / "path"
        path.mkdir(exist_ok=True)
        if go is not None:
            (path / "go").write_text(GO % go)
            (path / "go").chmod(0o755)
        environment = {
            "TRAINMASTER_TEST_CACHE": str(tmp_path / "cache"),
            "ASKED": str(tmp_path / "asked"),
            "HOME": str(tmp_path),
            "PATH": f"{path}:/usr/bin:/bin" if go is not None else str(path),
        }
        return subprocess.run(
            [sys.executable, TOOL, *programs], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_prints_the_folder_and_nothing_else(tool: Tool, tmp_path: Path) -> None:
    done = tool("etcd", "kubectl")

    folder = Path(done.stdout.strip())
    assert folder.is_relative_to(tmp_path / "cache" / "kubernetes")
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == ["etcd", "kubectl"]
    assert os.access(folder / "kubectl", os.X_OK)


def test_what_is_there_is_neither_built_again_nor_needs_go(tool: Tool, tmp_path: Path) -> None:
    tool("etcd")
    (tmp_path / "path" / "go").unlink()

    assert tool("etcd", go=None).returncode == 0


def test_without_go_it_says_so_and_has_its_own_exit_code(tool: Tool) -> None:
    done = tool("etcd", go=None)

    assert done.returncode == 3
    assert "Go is not installed" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("go", "code", "said"),
    [
        pytest.param("echo undefined: x; exit 1", 1, "undefined: x", id="a failed build shows what Go said"),
        pytest.param("echo go: x requires 'go >= 1.26'; exit 1", 3, "too old", id="an old Go is like none"),
        pytest.param("kill -9 $$", 1, "failed", id="a build that is killed leaves nothing under the name"),
    ],
)
def test_a_half_built_program_never_has_its_name(tool: Tool, tmp_path: Path, go: str, code: int, said: str) -> None:
    done = tool("etcd", go=go)

    assert done.returncode == code
    assert said in done.stderr
    assert not list(tmp_path.glob("cache/kubernetes/*/etcd"))


def test_published_parts_are_taken_at_their_own_release(tool: Tool, tmp_path: Path) -> None:
    tool("kube-apiserver")

    asked = (tmp_path / "asked").read_text()
    assert "replace k8s.io/api => k8s.io/api v0.36." in asked
    assert "elsewhere" not in asked


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param("kube-apiserver", "build -mod=mod -trimpath", id="a command is built"),
        pytest.param("e2e.test", "test -c -mod=mod -trimpath", id="the conformance suite is a compiled test"),
        pytest.param("kubectl", "-X k8s.io/component-base/version.gitVersion=v1.", id="Kubernetes learns its version"),
        pytest.param("etcd", "-ldflags -s -w -o", id="programs are stripped"),
        pytest.param("etcd", "cgo=0", id="programs do not depend on the C library"),
    ],
)
def test_how_programs_are_compiled(tool: Tool, tmp_path: Path, program: str, expected: str) -> None:
    tool(program)

    assert expected in (tmp_path / "asked").read_text()


def test_two_builds_into_one_cache_take_turns(tool: Tool, tmp_path: Path) -> None:
    folder = Path(tool("etcd").stdout.strip())
    environment = {"TRAINMASTER_TEST_CACHE": str(tmp_path / "cache"), "ASKED": str(tmp_path / "asked")}
    environment["PATH"] = f"{tmp_path / 'path'}:/usr/bin:/bin"
    command, pipe = [sys.executable, str(TOOL), "kubectl"], subprocess.PIPE
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(command, env=environment, text=True, stderr=pipe, stdout=pipe)
        assert second.stderr is not None
        assert "waiting for it" in second.stderr.readline()
        assert not (folder / "kubectl").exists()
    second.communicate(timeout=60)

    assert second.returncode == 0
    assert (folder / "kubectl").exists()


def test_remains_of_a_killed_build_are_removed(tool: Tool) -> None:
    folder = Path(tool("etcd").stdout.strip())
    (folder / ".build-left").mkdir()

    tool("kubectl")

    assert not (folder / ".build-left").exists()


def test_an_unknown_program_is_a_wrong_argument(tool: Tool) -> None:
    done = tool("kubelet")

    assert done.returncode == 2
    assert "kube-apiserver" in done.stderr
