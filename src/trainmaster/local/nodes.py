"""Which nodes this machine is: one, or as many as `trainmaster up --nodes` split it into.

The first has the machine's own name, whatever their number, so that what it ran is still there when the number changes;
the others are numbered from two. Who they are is written down where the cluster lives and stays until it is taken down:
running pods belong to nodes by their name, and neither another name of the machine nor another number may orphan them.
"""

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.local import files
from trainmaster.local.home import Home

RECORD = "nodes.json"
MOST = 64


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One of them."""

    name: str
    number: int        # from one

    @property
    def user(self) -> str:
        """Who it is among the keys of the home."""
        return "node" if self.number == 1 else f"node-{self.number}"

    @property
    def kubeconfig(self) -> str:
        return f"{self.user}.kubeconfig"

    @property
    def socket_name(self) -> str:
        """Of its own API, in the runtime directory."""
        return "kubelet.sock" if self.number == 1 else f"kubelet-{self.number}.sock"


def named(names: Sequence[str]) -> tuple[LocalNode, ...]:
    return tuple(LocalNode(name, number) for number, name in enumerate(names, start=1))


def settled(home: Home) -> tuple[LocalNode, ...] | None:
    """The nodes of a cluster that was not taken down; None if nobody said."""
    try:
        names = json.loads((home.run / RECORD).read_text())["names"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return named(names) or None


def nodes(home: Home) -> tuple[LocalNode, ...]:
    return settled(home) or named(names(socket.gethostname(), 1))


def settle(home: Home, count: int) -> tuple[LocalNode, ...]:
    """From now on there are so many."""
    chosen = names(socket.gethostname(), count)
    files.write(home.run / RECORD, json.dumps({"names": chosen}).encode())
    return named(chosen)


def names(hostname: str, count: int) -> list[str]:
    """A node is named after its machine, in the letters that Kubernetes allows. Pure."""
    letters = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "-" for c in hostname.lower())
    longest = 63 - len(f"-{count}") if count > 1 else 63
    name = letters.strip("-.")[:longest].strip("-.") or "local"
    return [name, *(f"{name}-{number}" for number in range(2, count + 1))]
