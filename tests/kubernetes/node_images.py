"""The images that Kubernetes' tests of a node name, as entries of the embedded cluster's catalog.

Nearly all of them are agnhost, one Go program with many subcommands, built from the Kubernetes module. Where others
only have to stay alive or to serve a page, agnhost stands in for them. busybox is the machine's own programs, with
bash for a shell: dash knows no `[[` and drops variables whose names are no identifiers. A `dig` and an `nc` that the
machine may lack are ours.
"""

import shutil
from pathlib import Path
from typing import Any

import yaml
from tests.kubernetes.control_plane import write_keys

PROGRAMS = ("agnhost", "nonewprivs")        # to be built
REGISTRY = "registry.k8s.io"
TESTS = f"{REGISTRY}/e2e-test-images"
OURS = Path(__file__).parent


def write(catalog: Path, binaries: Path, folder: Path) -> None:
    """Into the catalog file of a home; `folder` gets what must be a file of its own."""
    catalog.write_text(yaml.safe_dump({"images": entries(binaries, folder)}))


def entries(binaries: Path, folder: Path) -> list[dict[str, Any]]:
    agnhost = str(binaries / "agnhost")
    shell = {f"/bin/{name}": place for name, program in (("sh", "bash"), ("sysctl", "sysctl"))
             if (place := shutil.which(program))}
    write_keys(folder)
    programs = {
        **shell,
        "/agnhost": agnhost,
        "/agnhost-2": agnhost,
        "/localhost.crt": str(folder / "tls.crt"),
        "/localhost.key": str(folder / "tls.key"),
        "/usr/bin/dig": str(shown(OURS / "dig.py", folder / "dig", 0o755)),
        "/usr/bin/nc": str(shown(OURS / "netcat.py", folder / "nc", 0o755)),
    }
    return [
        {"names": [f"{TESTS}/agnhost"], "entrypoint": ["/agnhost"], "command": ["pause"], "files": programs},
        {"names": [f"{TESTS}/glibc-dns-testing"], "command": ["sh"], "files": programs},
        {"names": [f"{TESTS}/busybox"], "command": ["sh"], "files": shell},
        {"names": [f"{REGISTRY}/pause"], "entrypoint": ["/agnhost", "pause"], "files": programs},
        {"names": [f"{TESTS}/nginx"], "command": ["/agnhost", "test-webserver"], "files": programs},
        {"names": [f"{TESTS}/nonewprivs"], "command": ["/bin/nnp"], "rootfs": str(root_that_raises(binaries, folder))},
    ]


def root_that_raises(binaries: Path, folder: Path) -> Path:
    """A root file system whose only program makes its caller root, where that is allowed."""
    root = folder / "nonewprivs"
    for name in ("bin", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shown(binaries / "nonewprivs", root / "bin" / "nnp", 0o4755)
    return root


def shown(source: Path, target: Path, mode: int) -> Path:
    """A copy that everybody in a pod may read, with the mode that it has there."""
    shutil.copy(source, target)
    target.chmod(mode)
    return target
