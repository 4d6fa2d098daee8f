"""A stream of bytes cut into lines, whatever pieces it comes in."""

from collections.abc import AsyncIterator

from trainmaster.kube.errors import Unreachable

# Far above the largest object that any API server stores (about 3 MB), far below what would hurt.
LONGEST = 64 << 20


async def lines(chunks: AsyncIterator[bytes], longest: int = LONGEST) -> AsyncIterator[bytes]:
    """Every whole line that is not empty. What follows the last line end was cut off, and is dropped."""
    rest: list[bytes] = []   # pieces of the line that is not whole yet; joined once, so a long line costs no copies
    size = 0
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > longest:
            raise Unreachable(f"a line of the stream is longer than {longest} bytes")
        if not more:
            continue
        *whole, last = (b"".join(rest), *more)
        rest, size = [last], len(last)
        for line in whole:
            if line.strip():
                yield line
