"""Answers of any length, sent as they are read: logs, and archives of files."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from aiohttp import web


async def streamed(request: web.Request, content: AsyncGenerator[bytes, None], kind: str) -> web.StreamResponse:
    """Send it all, of the content type `kind`. Whoever goes away is sent no more, and the reading ends with him."""
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    async with aclosing(content) as pieces:
        with suppress(ConnectionResetError):
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
    return response
