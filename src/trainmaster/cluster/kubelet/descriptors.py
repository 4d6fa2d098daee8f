"""Reading and writing pipes and terminals from the agent's loop, one piece at a time.

asyncio's pipe transports read ahead on their own and must be told to stop; here nothing is read that nobody asked for,
so a slow reader slows down its writer through the kernel's buffer and nothing else.
"""

import asyncio
import errno
import os

PIECE = 1 << 16


async def read(fd: int, size: int = PIECE) -> bytes:
    """The next bytes of a non-blocking descriptor; none at its end."""
    while True:
        try:
            return os.read(fd, size)
        except BlockingIOError:
            await _ready(fd, write=False)
        except OSError as error:
            if error.errno == errno.EIO:       # what a terminal says when nobody has its other side open any more
                return b""
            raise


async def write(fd: int, data: bytes) -> None:
    """All of these bytes. Raises BrokenPipeError when nobody will read them."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view):]
        except BlockingIOError:
            await _ready(fd, write=True)
        except OSError as error:
            if error.errno == errno.EIO:
                raise BrokenPipeError(error.errno, "the terminal was closed") from error
            raise


async def _ready(fd: int, *, write: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def told() -> None:
        if not ready.done():
            ready.set_result(None)

    if write:
        loop.add_writer(fd, told)
    else:
        loop.add_reader(fd, told)
    try:
        await ready
    finally:
        if write:
            loop.remove_writer(fd)
        else:
            loop.remove_reader(fd)
