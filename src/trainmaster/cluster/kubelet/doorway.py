"""The shim's door: a Unix socket in the attempt's directory, on which an agent asks what it can learn from nobody else.

An agent may be younger than the container, and what the container was started with has changed since, or was a secret
and never on disk. The shim keeps it in a memory file and hands that out to whoever can open its attempt's directory,
which is the owner of the cluster alone. Small standard modules only: the shims carry this one.
"""

import contextlib
import json
import os
import socket

from trainmaster.cluster.kubelet.command import Footing

NAME = "shim.sock"
# A question and its answer; nobody stays. An agent that says nothing for this long is not asked again.
_PATIENCE = 1.0


class Doorway:
    """Listens on the shim's socket. To be made in the cluster's mount namespace, before the root changes."""

    def __init__(self, directory: int, footing: Footing) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.fchdir(directory)               # an address holds no more than 107 bytes
        self._listener.bind(NAME)
        self._listener.listen(16)
        self._listener.setblocking(False)
        self._memory = os.memfd_create("footing", os.MFD_CLOEXEC)
        with open(self._memory, "wb", closefd=False) as file:
            file.write(json.dumps(footing).encode())

    def fileno(self) -> int:
        return self._listener.fileno()

    def answer(self) -> None:
        """Serve one caller."""
        with contextlib.suppress(OSError, ValueError):
            caller, _ = self._listener.accept()
            with caller:
                caller.settimeout(_PATIENCE)
                if json.loads(caller.recv(4096) or b"{}").get("do") == "footing":
                    socket.send_fds(caller, [b"{}"], [self._memory])
