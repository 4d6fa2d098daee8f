"""Connections to pods, in whose network this server is not: their node opens one and passes the bytes on.

For the proxies, which hand on what a client says, and for webhooks in pods, where the server itself has something to
ask.
"""

import asyncio
import contextlib
import ssl

from trainmaster.cluster.apiserver import rewriting
from trainmaster.cluster.apiserver.connecting import Reach, answer_of, complaint
from trainmaster.runtime.takeover import PIECE

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Refused(OSError):
    """The node could not open the connection; the message is what it says."""


async def dialled(reach: Reach, node: str, address: str, port: int) -> Connection:
    """A connection to an address that this node can reach. Raises OSError."""
    reader, writer = await reach(node)
    try:
        lines = (f"GET /dial/{address}/{port} HTTP/1.1", "Host: kubelet", "Connection: Upgrade", "Upgrade: tcp", "", "")
        writer.write("\r\n".join(lines).encode())
        status, headers = await answer_of(reader)
        if status != 101:
            raise Refused(str(await complaint(status, headers, reader)))
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def posted(
    connection: Connection, context: ssl.SSLContext, name: str, head: bytes, body: bytes, most: int
) -> tuple[int, bytes]:
    """Send one request by TLS to who must show a certificate for `name`; the code and the body of the answer.

    Raises OSError, EOFError and ValueError; the last for an answer of more than `most` bytes, too.
    """
    reader, writer = connection
    try:
        await writer.start_tls(context, server_hostname=name)
        writer.write(head + body)
        status, headers = await answer_of(reader)
        raw, length = bytearray(), int(headers.get("Content-Length") or -1)
        chunked = headers.get("Transfer-Encoding", "").lower() == "chunked"
        found = None if chunked or length else b""
        while found is None and (piece := await reader.read(PIECE)):
            raw += piece
            if len(raw) > most:
                raise ValueError(f"the answer is larger than {most} bytes")
            if chunked:
                found = rewriting.joined(bytes(raw))
            elif 0 <= length <= len(raw):
                found = bytes(raw[:length])
        if found is None and (chunked or length >= 0):
            raise EOFError
        return status, bytes(raw) if found is None else found
    except asyncio.LimitOverrunError as error:
        raise ValueError("the head of the answer is too large") from error
    finally:
        with contextlib.suppress(OSError):
            writer.close()
