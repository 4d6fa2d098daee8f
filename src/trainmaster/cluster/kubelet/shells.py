"""A /bin/sh that is what images have there: a POSIX shell, and not bash under another name.

Manifests are written for images whose `sh` is dash or BusyBox. Where the machine's is bash (Fedora, RHEL, openEuler,
Arch), an unquoted `export TF_CONFIG={…,…}` would be split at its commas, also in POSIX mode. Then containers that show
the machine's programs get dash in its place if the machine has it, else a line that calls bash without that expansion.
It is put into the container's layer: a mount on /bin/sh would follow that link and change bash itself.
"""

import os
from collections.abc import Callable

from trainmaster.cluster.kubelet.rootfs import Shell

SHELL = "/bin/sh"
_CANDIDATES = ("/usr/bin/dash", "/bin/dash")


def stand_in(
    real: Callable[[str], str] = os.path.realpath, there: Callable[[str], bool] = os.path.exists
) -> Shell | None:
    """What to put in place of the machine's /bin/sh; None where that is a POSIX shell."""
    bash = real(SHELL)
    if os.path.basename(bash) != "bash":  # noqa: PTH119  nothing is looked up
        return None
    folder, name = os.path.split(SHELL)
    at = os.path.join(real(folder), name).lstrip("/")  # noqa: PTH118  nor here
    for path in _CANDIDATES:
        if there(path):
            return {"at": at, "link": real(path), "script": ""}
    return {"at": at, "link": "", "script": f'#!{bash}\nexec -a "$0" {bash} +B "$@"\n'}
