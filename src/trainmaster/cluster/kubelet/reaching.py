"""The ways from the agent to a container that runs: commands in it, connections to its pod."""

import socket
from collections.abc import Callable, Sequence

from trainmaster.cluster.kubelet.environment import shares_network
from trainmaster.cluster.kubelet.exec import run_in
from trainmaster.cluster.kubelet.handlers import Target
from trainmaster.cluster.kubelet.launcher import Launcher
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.records import Failed

LOOPBACK = "127.0.0.1"
Reach = Callable[[Life, str, int], Target]


def reach_by(launcher: Launcher) -> Reach:
    """How this node reaches an attempt of a container."""
    def reach(life: Life, name: str, attempt: int) -> Target:
        async def run(argv: Sequence[str], timeout: float) -> tuple[int, bytes]:
            process = life.processes.get(name)
            if process is None or process.ended:
                raise Failed("run a command", 0, f"container {name} is not running")
            outcome = await run_in(launcher, life.places.attempt(name, attempt), process.pidfd, argv, timeout=timeout)
            return outcome.code, outcome.output

        if shares_network(life.pod):
            return Target(life.container(name), LOOPBACK, run, _stream)
        return Target(life.container(name), life.address, run, launcher.stream)

    return reach


async def _stream() -> socket.socket:
    """A TCP socket in the network that we are in, which such a pod shares."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    return made
