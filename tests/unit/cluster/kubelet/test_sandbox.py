"""Real sandboxes, as root and as an ordinary user: what a container sees, may do, and leaves behind (nothing)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from trainmaster.cluster.kubelet.confinement import counts_processes
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.shells import stand_in

PROGRAM = Path(__file__).with_name("pods_on_this_machine.py")
ROOT = Path(__file__).parents[4]
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = 54321      # an ordinary user that the machine does not know, as in many containers

Step: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[..., dict[str, Any]]


def impossible_as(user: str) -> str:
    """Why the tests cannot be run as that user here; "" if they can."""
    if user == "root":
        return "" if os.geteuid() == 0 else "not root"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if os.geteuid() == 0 and not shutil.which(f"python{version}", path="/usr/bin"):
        return f"no {version} outside of root's home for an ordinary user"
    return ""


def host() -> tuple[frozenset[str], frozenset[str]]:
    """Links and mounts of the host, which must not change."""
    links = frozenset(entry.name for entry in Path("/sys/class/net").iterdir())
    return links, frozenset(Path("/proc/self/mountinfo").read_text().splitlines())


def living(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":        # a zombie is its parent's business, not a running process
            found.append(pid)
    return found


@pytest.fixture(params=["root", "user"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs containers as root or as an ordinary user, with the umask of a careful one; afterwards nothing of them may
    be left on the machine."""
    if why := impossible_as(request.param):
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="tm-test-"))
    as_user = request.param == "user" and os.geteuid() == 0
    if as_user:
        os.chown(folder, NOBODY, NOBODY)
    elsewhere: Any = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_user else {}
    before = host()
    told: list[dict[str, Any]] = []

    def started(*steps: Step) -> dict[str, Any]:
        packages = [path for path in sys.path if path.endswith("site-packages")]
        done = subprocess.run(
            [SYSTEM_PYTHON if as_user else sys.executable, str(PROGRAM), str(folder)], input=json.dumps(steps).encode(),
            stdout=subprocess.PIPE, timeout=100, check=False, umask=0o077, **elsewhere,
            env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join([f"{ROOT}/src", *packages])},
        )
        found: dict[str, Any] = json.loads(done.stdout)
        if "impossible" in found:
            pytest.skip(f"this machine cannot: {found['impossible']}")
        told.append(found)
        return found

    yield started
    remove(folder)
    for found in told:
        assert found["ended"], "the holder did not end"
        assert [] == living(found["processes"])
    assert before == host()
    assert not folder.exists()


def sh(script: str, pod: str = "one", **more: Any) -> Step:
    return {"pod": pod, "argv": ["/bin/sh", "-c", script], **more}


def test_ends_are_told(run: Run) -> None:
    """Exit codes, signals, and a command that does not exist, each as a container runtime reports them."""
    ready = "echo ready; exec sleep 1000"
    found = run(
        sh("exit 0"), sh("exit 7"), sh("kill -SEGV $$"), {"pod": "one", "argv": ["no-such-program"]},
        sh(ready, signal="TERM"), sh("trap 'exit 3' TERM; echo ready; sleep 1000 & wait", signal="TERM"),
        sh("trap '' TERM; echo ready; sleep 1000", signal="KILL_ALL"),
    )["steps"]

    ends = [(step["exit"]["code"], step["exit"]["signal"], step["exit"]["reason"]) for step in found]
    assert ends == [
        (0, 0, ""), (7, 0, ""), (139, 11, ""), (128, 0, "StartError"), (143, 15, ""), (3, 0, ""), (137, 9, ""),
    ]
    assert 'exec: "no-such-program": executable file not found in $PATH' in found[3]["exit"]["message"]


def test_output_is_complete_and_told_apart(run: Run) -> None:
    """Also what a process left behind says, and what has no newline at its end."""
    found = run(
        sh("echo out; echo err >&2; printf tail"),
        sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"),
        sh("exec 1>&- 2>&-; sleep 0.2; exit 5"),
    )["steps"]

    assert (["out", "tail"], ["err"]) == (found[0]["out"], found[0]["err"])
    assert [f"line {n}" for n in range(20000)] == found[1]["out"]
    assert 5 == found[2]["exit"]["code"]


def test_a_container_ends_with_its_command(run: Run) -> None:
    """Whatever it forked away, in whatever session; the log is not held open by it."""
    found = run(sh("setsid sleep 1000 & sleep 1000 & echo over"), sh("ps -eo args | grep -c '[s]leep 1000'"))["steps"]

    assert (["over"], ["0"]) == (found[0]["out"], found[1]["out"])
    assert found[0]["ms"] < 20_000


def test_zombies_are_reaped(run: Run) -> None:
    """Soon: whoever looks at once may see one that is just being reaped."""
    found = run(sh("for i in 1 2 3; do (sleep 0.01 & ) ; done; sleep 0.3; "
                   "until [ $(ps -eo stat | grep -c Z) = 0 ]; do sleep 0.05; done; echo none"))["steps"]

    assert ["none"] == found[0]["out"]


@pytest.mark.skipif(not counts_processes(os.uname().release),
                    reason="what this kernel hands out: control groups count processes, its PID namespaces do not")
def test_who_forks_without_end_is_stopped_by_its_own_namespace(run: Run) -> None:
    """Where no control group counts; and the machine's own limit stays what it is."""
    limits = {"limits": {"groups": [], "watch": 0, "score": 0, "processes": 400}}
    machine = Path("/proc/sys/kernel/pid_max").read_text()
    bomb = "i=0; while [ $i -lt 600 ]; do sleep 1000 & i=$((i+1)); done; echo all"
    found = run(sh(bomb, plan=limits))["steps"][0]

    assert ([], True) == (found["out"], "fork" in found["err"][0])
    assert machine == Path("/proc/sys/kernel/pid_max").read_text()


def test_two_pods_talk_by_name(run: Run) -> None:
    """Each has its own address, port and host name; the same port in both."""
    serve = (
        "import socket; s = socket.create_server(('', 9000)); print('ready', flush=True); c = s.accept()[0]; "
        "c.sendall(c.recv(9)[::-1]); print(socket.gethostname())"
    )
    ask = (
        "import socket, struct; s = socket.create_server(('', 9000)); c = socket.create_connection(('one', 9000), 60); "
        "about = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104); c.sendall(b'abc'); print(c.recv(9).decode()); "
        "print(struct.unpack_from('I', about, 68)[0], struct.unpack_from('I', about, 100)[0])"
    )
    found = run(
        {"pod": "one", "argv": [SYSTEM_PYTHON, "-c", serve], "wait": False, "execs": []},      # until it is ready
        {"pod": "two", "argv": [SYSTEM_PYTHON, "-c", ask]},
    )["steps"]

    assert "cba" == found[1]["out"][0]
    # By the kernel's own measure, in which no process has to get its turn: microseconds to the answer, and repetitions.
    there_and_back, again = map(int, found[1]["out"][1].split())
    assert (True, 0) == (there_and_back < 900_000, again), "the first connection waited for a lost ARP request"


def test_what_a_container_sees(run: Run) -> None:
    """Its own processes, network, host name, devices and files; not the host's homes, secrets and our own state."""
    found = run(sh("""
        echo $$ $(hostname) $(id -u)
        ls /root /home /etc/ssh /tmp 2>&1 | grep -v : | grep -c .
        cat /etc/shadow | cut -d: -f1-2
        ls /dev | sort | tr '\\n' ' '; echo
        ls /sys/class/net | tr '\\n' ' '; echo
        cat /proc/1/environ 2>/dev/null | wc -c
        grep -c . /proc/1/root/etc/hostname /proc/1/cwd 2>/dev/null
        wc -c < /proc/keys
        cat /proc/self/status | grep -E 'CapEff|NoNewPrivs' | tr -d '\\t' | tr '\\n' ' '; echo
    """))
    out = found["steps"][0]["out"]

    assert ["2 one 0", "0", "root:*"] == out[:3]
    assert "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero " == out[3]
    assert "eth0 lo " == out[4]
    assert ["0", "0"] == out[5:7]
    assert "CapEff:00000000a80425fb NoNewPrivs:1 " == out[7]


def test_what_a_container_may_write(run: Run) -> None:
    """Its own layer, /tmp, /run, home; nothing of the host; and the host's disk is no device to it."""
    found = run(
        sh("for file in /etc/tm-test /root/a /tmp/a /run/a /dev/shm/a; do echo x > $file || exit 1; done; echo ok"),
        sh("cat /etc/tm-test /root/a /tmp/a; cat /dev/shm/a"),
        sh("echo x > /sys/kernel/mm/a; echo 1 > /proc/sys/kernel/domainname; echo b > /proc/sysrq-trigger"),
        sh("mknod /d b 254 0 && head -c1 /d"), sh("mount -t tmpfs none /mnt; umount /proc; hostname other; hostname"),
    )["steps"]

    assert ["ok"] == found[0]["out"]
    assert ["x"] == found[1]["out"], "a second container of the pod shares memory only"
    assert 3 == len(found[2]["err"])
    assert 0 != found[3]["exit"]["code"]
    assert ["one"] == found[4]["out"]
    assert not Path("/etc/tm-test").exists()


def test_volumes_and_files_of_the_host(run: Run) -> None:
    """At their own paths, also below hidden homes and through the container's own links; read-only where said."""
    shown = Path(tempfile.mkdtemp(prefix="tm-shown-"))
    try:
        shown.chmod(0o755)
        (shown / "file").write_text("hello\n")
        binds = [
            {"source": str(shown), "target": "/root/.pyenv/x", "readonly": True},
            {"source": str(shown / "file"), "target": "/opt/new/place.txt", "readonly": True},
            {"source": str(shown), "target": "/var/run/linked", "readonly": True},
        ]
        script = "cat /root/.pyenv/x/file /opt/new/place.txt /run/linked/file; touch /root/.pyenv/x/y"
        found = run(sh(script, root={"binds": binds}))["steps"][0]

        assert ["hello"] * 3 == found["out"]
        assert "Read-only file system" in found["err"][0]
        assert not Path("/run/linked").exists()
    finally:
        remove(shown)


def test_a_read_only_root(run: Run) -> None:
    found = run(sh("echo x > /etc/x; echo x > /tmp/x && echo ok", root={"readonly": True}))["steps"][0]

    assert (["ok"], 1) == (found["out"], len(found["err"]))


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("dash") is None, reason="takes bash and dash")
@pytest.mark.parametrize("dash", [pytest.param(True, id="dash"), pytest.param(False, id="or bash without its braces")])
def test_a_shell_in_place_of_the_machines(run: Run, dash: bool) -> None:
    """Whatever /bin/sh is on the machine: texts in braces stay whole, in every way to call it, and bash is bash."""
    there, links = (lambda path: dash and Path(path).exists()), {"/bin/sh": os.path.realpath("/bin/bash")}
    shell = stand_in(lambda path: links.get(path) or os.path.realpath(path), there)
    found = run(sh("""
        export X={"a":1,"b":2}; echo $X; set -- one; echo $0 $1
        sh -c 'echo {c,d} $0 $1' zero first; printf 'echo {e,f} $1' > /tmp/s; sh /tmp/s arg
        printf '#!/bin/sh\necho {g,h}; exit 7' > /tmp/t; chmod +x /tmp/t; /tmp/t; echo $?; echo 'echo {i,j}' | sh
        bash -c 'echo {k,l}'
    """, root={"shell": shell}))["steps"][0]

    assert ['{a:1,b:2}', "/bin/sh one", "{c,d} zero first", "{e,f} arg", "{g,h}", "7", "{i,j}", "k l"] == found["out"]


def test_a_working_directory_is_made_and_a_user_is_become(run: Run) -> None:
    """As an ordinary user there is nobody else to become: the container stays what it is."""
    found = run(sh("pwd; id -u; grep CapEff /proc/self/status | tr -d '\\t'",
                   plan={"directory": "/work/made/here", "user": 1234, "group": 99}))
    out = found["steps"][0]["out"]

    who = ["0", "CapEff:00000000a80425fb"] if found["rootless"] else ["1234", "CapEff:0000000000000000"]
    assert ["/work/made/here", *who] == out


@pytest.mark.parametrize("argv", [["tr\0ue"], ["/etc"], ["/etc/passwd"]])
def test_a_command_that_cannot_be_started_is_told(run: Run, argv: list[str]) -> None:
    found = run({"pod": "one", "argv": argv})["steps"][0]

    assert (128, "StartError") == (found["exit"]["code"], found["exit"]["reason"])
