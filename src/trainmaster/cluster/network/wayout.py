"""The way out of the cluster's network, by slirp4netns where it is installed and works.

It needs no link on the host and no privilege beyond /dev/net/tun: it puts a link into the cluster's namespace and
speaks for it from the host as an ordinary program. What is on this machine's loopback stays out of reach. It ends with
us: the other end of its exit descriptor is ours, whatever becomes of us. Where it is not to be had, connections (TCP
only) are led out by a relay of our own, which takes nftables (`doors`). Rejected: pasta. For an ordinary user it does
the same with the same /dev/net/tun; as root it gives up the right to enter our namespaces, and it does not end with us.
"""

import asyncio
import os
import shutil
from contextlib import suppress

from trainmaster.cluster.network.layout import WAY_OUT_NETWORK
from trainmaster.runtime.log import logger

log = logger("network")

LINK = "out0"
_PATIENCE = 10.0


class Slirp:
    """One slirp4netns."""

    def __init__(self, process: asyncio.subprocess.Process, exit_fd: int) -> None:
        self._process = process
        self._exit_fd = exit_fd

    async def watch(self) -> None:
        """Say so if it ends by itself. Pods go on without a way out until the next agent."""
        code = await self._process.wait()
        log.error("slirp4netns ended by itself: pods have no way out", code=code)

    async def close(self) -> None:
        """End it; the link goes with it."""
        if self._exit_fd >= 0:
            os.close(self._exit_fd)
            self._exit_fd = -1
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def start(pid: int) -> Slirp | str:
    """Give the network of a process a way out; or why there is none."""
    program = shutil.which("slirp4netns")
    if program is None:
        return "slirp4netns is not installed"
    ready_read, ready_write = os.pipe()
    exit_read, exit_write = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            program, "--configure", "--mtu=65520", "--disable-host-loopback", "--disable-dns",
            f"--cidr={WAY_OUT_NETWORK}", f"--ready-fd={ready_write}", f"--exit-fd={exit_read}", str(pid), LINK,
            pass_fds=(ready_write, exit_read), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )
    except OSError as error:
        os.close(ready_read)
        os.close(exit_write)
        return f"slirp4netns cannot be started: {error.strerror}"
    finally:
        os.close(ready_write)
        os.close(exit_read)
    made = Slirp(process, exit_write)
    try:
        if await _said(ready_read):
            return made
        await made.close()
        assert process.stderr is not None
        words = (await process.stderr.read(4096)).decode(errors="replace").strip().splitlines()
        return f"slirp4netns does not work here: {words[-1] if words else 'it said nothing'}"
    finally:
        os.close(ready_read)


async def _said(fd: int) -> bool:
    """Whether a byte comes before the end, in good time."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await ready
                return bool(os.read(fd, 1))
        return False
    finally:
        loop.remove_reader(fd)
