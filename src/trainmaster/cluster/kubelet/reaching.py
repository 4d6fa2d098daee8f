"""The ways from the agent to a container that runs: commands in it, connections to its pod."""

from collections.abc import Callable, Sequence

from trainmaster.cluster.kubelet.exec import run_in
from trainmaster.cluster.kubelet.handlers import Target
from trainmaster.cluster.kubelet.launcher import Launcher
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.records import Failed

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

        return Target(life.container(name), life.address, run, launcher.stream)

    return reach
