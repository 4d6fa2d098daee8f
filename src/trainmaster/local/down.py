"""Stop the embedded cluster in order, pods first, and leave nothing behind but the home's own records."""

import http.client
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trainmaster.cluster.kubelet import cgroups, holder
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.local import parts
from trainmaster.local.home import Home
from trainmaster.local.nodes import nodes
from trainmaster.local.up import alone

DRAIN_SECONDS = 60.0   # the default grace of a pod is 30; twice that for a busy machine
STOP_SECONDS = 15.0


def down(home: Home, *, keep_pods: bool = False, say: Callable[[str], None]) -> bool:
    """Stop what runs. Whether anything did."""
    if not home.run.exists():
        return False
    with alone(home):
        node, control_plane = parts.node(home), parts.control_plane(home)
        running = bool(node.facts()) or bool(control_plane.facts()) or holder.alive(home.run)
        if node.facts() and not keep_pods:
            say("stopping pods")
            drain(home.run / nodes(home)[0].socket_name)      # it ends those of the other nodes, too
        if node.facts():
            say("stopping the node")
            node.stop(STOP_SECONDS)
        if control_plane.facts():
            say("stopping the control plane")
            control_plane.stop(STOP_SECONDS)
        if keep_pods:
            return running
        holder.end(home.run)  # whatever still lives in the cluster's namespaces goes with it
        cgroups.end(home.run)
        remove(home.run)
        return running


def drain(kubelet: Path) -> None:
    """Ask the node to end its pods with their grace. A node that does not answer is stopped all the same."""
    with suppress(OSError, http.client.HTTPException):
        connection = _UnixConnection(kubelet, DRAIN_SECONDS)
        try:
            connection.request("POST", "/drain")
            connection.getresponse().read()
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket, whose path may be longer than the 107 bytes that an address can hold."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("kubelet", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)
