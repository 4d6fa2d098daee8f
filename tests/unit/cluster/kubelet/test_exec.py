"""Another command in a running container: it is where and who the container's own command is, and leaves nothing."""

from typing import Any

import pytest
from tests.unit.cluster.kubelet.test_sandbox import Run, impossible_as, run, sh

__all__ = ["run"]

WAITS = "echo ready; exec sleep 1000"
SPACES = "readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/mnt"
ORDINARY = {"user": 1234, "group": 2345, "groups": [3456], "capabilities": [], "directory": "/tmp",
            "environment": {"PATH": "/usr/bin:/bin", "COLOUR": "green blue"}}


def sh_in(script: str, **more: Any) -> dict[str, Any]:
    return {"argv": ["sh", "-c", script], **more}


def execs(run: Run, *commands: dict[str, Any], script: str = WAITS, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(sh(script, execs=list(commands), signal="KILL_ALL", **more))["steps"][0]["execs"]
    return found


def test_it_says_how_it_ended_and_what_it_said(run: Run) -> None:
    found = execs(
        run, sh_in("echo out; echo err >&2; exit 7"), sh_in("kill -9 $$"), {"argv": ["no-such-program"]},
        {"argv": ["cat"], "stdin": "to and fro"}, sh_in("echo both; echo sides >&2; exit 3", timeout=60),
        sh_in("sleep 1000", timeout=0.3),
    )

    assert {"code": 7, "out": "out\n", "err": "err\n"} == found[0]
    assert 137 == found[1]["code"]
    assert 'exec: "no-such-program": executable file not found in $PATH' in found[2]["failed"]
    assert "to and fro" == found[3]["out"]
    assert {"code": 3, "out": "both\nsides\n"} == found[4]
    assert {"failed": "timeout"} == found[5]


def test_it_is_where_the_container_is(run: Run) -> None:
    """The same files, processes, network and host name; its own session; no descriptor of ours."""
    found = execs(
        run, sh_in("cat /tmp/mark; hostname; cat /proc/1/comm; ls /proc/self/fd | wc -l"),
        sh_in(f"{SPACES}; cat /tmp/spaces"), script=f"echo written > /tmp/mark; {SPACES} > /tmp/spaces; {WAITS}",
    )

    assert ["written", "one", "tm-shim", "4"] == found[0]["out"].split()
    spaces = found[1]["out"].split()
    assert spaces[:3] == spaces[3:]


def test_it_is_who_the_container_is(run: Run) -> None:
    """User, groups, capabilities, directory and environment, also those that only the shim still knows."""
    found = execs(
        run, sh_in("id -u; id -g; id -G; pwd; echo $COLOUR; grep -e CapEff -e NoNewPrivs /proc/self/status"),
        script=WAITS, plan=ORDINARY,
    )[0]["out"].splitlines()

    if not impossible_as("root") and found[0] != "0":
        assert ["1234", "2345", "2345 3456"] == found[:3]
    assert ["/tmp", "green blue", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] == found[3:]


def test_a_terminal_is_the_containers_own_and_has_a_size(run: Run) -> None:
    found = execs(
        run, sh_in("read go; tty; stty size; test -t 0 && test -t 2 && echo three; exit 5", tty=True, size=[123, 45],
                   stdin="go\n"),
        sh_in("read line; echo got $line", tty=True, stdin="typed\n"), script=WAITS, plan=ORDINARY,
    )

    said = found[0]["out"].split()
    assert said[1].startswith("/dev/pts/")
    assert (["45", "123", "three"], 5) == (said[2:], found[0]["code"])
    assert "got typed" in found[1]["out"]


@pytest.mark.parametrize("script", [
    pytest.param("(trap '' HUP TERM; sleep 1000) & echo left", id="a child that was left behind"),
    pytest.param("setsid sleep 1000 & echo left", id="a child that left the session"),
])
def test_what_it_leaves_behind_ends_with_the_container(run: Run, script: str) -> None:
    """The fixture counts the processes afterwards."""
    found = execs(run, sh_in(script, timeout=60))

    assert {"code": 0, "out": "left\n"} == found[0]


def test_a_container_that_ended_takes_no_command(run: Run) -> None:
    found = run(sh("echo ready; until [ -e /tmp/go ]; do sleep 0.05; done",
                   execs=[sh_in("touch /tmp/go; sleep 1000"), sh_in("echo never")]))["steps"][0]

    assert 137 == found["execs"][0]["code"]
    assert "failed" in found["execs"][1]
    assert 0 == found["exit"]["code"]
