"""What of the machine pods cannot read or write, found out by trying. The last test tries it as an ordinary user."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cluster.kubelet.node import SYSTEM_PYTHON, Node, as_an_ordinary_user

from trainmaster.api.core import PODS
from trainmaster.cluster.kubelet.privacy import private
from trainmaster.testing.builders import pod as built

SECRET, PLAIN = "the secret\n", "for everybody\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where every user may have files, and pods see them."""
    made = Path(tempfile.mkdtemp(prefix="tm-private-", dir="/var/tmp"))
    made.chmod(0o755)
    (made / "open").write_text(PLAIN)
    (made / "open").chmod(0o666)
    (made / "closed").write_text(SECRET)
    (made / "closed").chmod(0o600)
    (made / "keys").mkdir(mode=0o700)
    (made / "keys" / "key").write_text(SECRET)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(made / "door"))
    (made / "door").chmod(0o777)
    listener.listen()
    yield made
    listener.close()
    shutil.rmtree(made)


def test_what_is_private(folder: Path) -> None:
    found = set(private(str(folder.parent), os.geteuid()))

    assert {str(folder / name) for name in ("closed", "keys", "door")} <= found
    assert not {str(folder), str(folder / "open"), str(folder / "keys" / "key")} & found
    assert not any(path.startswith(str(folder)) for path in private(str(folder.parent), 4321) if "door" not in path)


ATTEMPTS = """
import ctypes, os, socket, sys
folder = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, what):
    try: print(name, what())
    except OSError as error: print(name, "refused")
attempt("open", lambda: open(f"{folder}/open").read().strip())
attempt("closed", lambda: repr(open(f"{folder}/closed").read()))
attempt("keys", lambda: os.listdir(f"{folder}/keys"))
attempt("shadow", lambda: len(open("/etc/shadow").read().splitlines()))
attempt("homes", lambda: os.listdir("/home") + [name for name in os.listdir("/root") if name.startswith(".")])
attempt("door", lambda: socket.socket(socket.AF_UNIX).connect(f"{folder}/door"))
attempt("write", lambda: open(f"{folder}/open", "w").write("mine"))
attempt("create", lambda: open(f"{folder}/new", "w").write("mine"))
attempt("remove", lambda: os.remove(f"{folder}/open"))
attempt("program", lambda: open("/usr/bin/env", "ab").write(b"x") and None)
attempt("disk", lambda: (os.mknod("/d", 0o60600, os.makedev(254, 0)), open("/d", "rb").read(1)))
attempt("memory", lambda: open("/dev/mem", "rb"))
attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w").write("h"))
attempt("pattern", lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/x"))
attempt("group", lambda: open("/sys/fs/cgroup/release_agent", "w").write("/x"))
attempt("mount", lambda: libc.mount(b"x", b"/mnt", b"tmpfs", 0, None) and (_ for _ in ()).throw(OSError()))
attempt("root", lambda: os.chroot("/proc/1/root") or os.path.exists(f"{folder}/keys/key"))
"""


async def test_attempts(folder: Path, node: Node) -> None:
    command = (SYSTEM_PYTHON, "-c", ATTEMPTS, str(folder))
    await node.client.create(PODS, built("a", node="here", command=command))
    await node.phase("a", "Succeeded", "Failed")

    _, said = await node.log("a")
    found = dict(line.split(" ", 1) for line in said.splitlines())
    expected = {
        "open": PLAIN.strip(), "closed": "''", "keys": "[]", "homes": "[]", "door": "refused", "disk": "refused",
        "memory": "refused", "sysrq": "refused", "pattern": "refused", "group": "refused", "mount": "refused",
    }
    assert expected == {name: found.get(name) for name in expected}, said
    assert found["shadow"] in ("1", "refused")
    assert found["root"] in ("False", "refused")
    assert (PLAIN, SECRET) == ((folder / "open").read_text(), (folder / "closed").read_text())
    assert not (folder / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
def test_all_of_this_as_an_ordinary_user() -> None:
    as_an_ordinary_user(__file__)
