"""The control plane's ways to the nodes of this machine, by their names."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from trainmaster.kube.errors import Unreachable
from trainmaster.kube.http import HttpTransport
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.local.nodes import LocalNode


class Ways:
    """A Unix socket for each; nothing leads to others, which are simulated or were here once."""

    def __init__(self, run: Path, nodes: Sequence[LocalNode]) -> None:
        self._ways = {node.name: HttpTransport("http://kubelet", unix_socket=run / node.socket_name) for node in nodes}

    def to(self, name: str) -> Transport:
        return self._ways.get(name) or _Nowhere(name)

    async def connected(self, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of its own. Raises OSError."""
        if name not in self._ways:
            raise OSError(_why(name))
        return await self._ways[name].plain()

    async def close(self) -> None:
        for way in self._ways.values():
            await way.close()


class _Nowhere:
    """A transport to a node that is not here."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def send(self, request: Request) -> Response:  # noqa: ARG002  whatever it is
        raise Unreachable(_why(self._name))

    async def open(self, request: Request) -> Stream:  # noqa: ARG002
        raise Unreachable(_why(self._name))

    async def close(self) -> None:
        return


def _why(name: str) -> str:
    return f"the cluster has no node {name} on this machine now"
