"""The cluster's namespaces as the agent needs them: there, and made again if they are lost."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

from trainmaster.cluster.kubelet import holder
from trainmaster.cluster.kubelet.launcher import Launcher, Process
from trainmaster.cluster.kubelet.records import HOLDER
from trainmaster.runtime.log import logger

log = logger("kubelet")

_LAST_WORDS = 1.0


class Namespaces:
    """Those of one runtime directory, however many nodes live in them."""

    def __init__(self, run: Path, launcher: Launcher) -> None:
        self.launcher = launcher
        self.rootless = False
        self.draining = False
        self.holder_pid = 0
        self.started = asyncio.Event()
        self._run = run
        self._holder: Process | None = None

    async def enter(self) -> None:
        """Have a holder and the helper inside it."""
        _forget_dead_holder(self._run)
        await self.launcher.start()
        found = holder.find(str(self._run))
        if found is None:
            raise RuntimeError("the holder of the cluster's namespaces ended as soon as it was started")
        self._holder = Process(found[0], lambda: None)
        self.holder_pid = int(str(found[1].get("pid")))
        self.rootless = bool(found[1].get("rootless"))

    async def hold(
        self, serve: Callable[[Launcher, Callable[[], None]], Coroutine[None, None, None]],
        begun_again: Callable[[], None],
    ) -> None:
        """Serve the cluster's network; if the holder is lost, begin again with another, and say so."""
        while True:
            assert self._holder is not None
            ended = asyncio.create_task(self._holder.end())
            serving = asyncio.create_task(serve(self.launcher, self.started.set))
            try:
                await asyncio.wait([ended, serving], return_when=asyncio.FIRST_COMPLETED)
                if serving.done() and not ended.done():
                    # What it lacks may be the network that ended a moment ago.
                    async with asyncio.timeout(_LAST_WORDS):
                        await ended
            except TimeoutError:
                serving.result()
                raise
            finally:
                for task in (ended, serving):
                    task.cancel()
                await asyncio.gather(ended, serving, return_exceptions=True)
            if self.draining:
                return
            log.error("the holder of the cluster's namespaces is gone, and with it every container; starting another")
            await self.launcher.close()
            await self.enter()
            begun_again()

    def leave(self) -> None:
        if self._holder is not None:
            self._holder.forget()


def _forget_dead_holder(run: Path) -> None:
    """A record whose process is gone would keep the next holder from claiming the name."""
    if not holder.alive(run):
        (run / HOLDER).unlink(missing_ok=True)
