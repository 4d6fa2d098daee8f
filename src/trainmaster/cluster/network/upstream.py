"""Names of the outside world, asked of the resolvers that this machine uses.

Queries are passed on as they are, under a number and from a port of our own, and the answer comes back as it is: what
pods ask is between them and the resolver. A few answers are kept for a short time. A library would parse and build
whole messages; here a message is read only as far as it must be to keep an answer no longer than it is good.
"""

import asyncio
import secrets
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress

from trainmaster.cluster.network.names import A, encoded

SECONDS = 2.0              # for one resolver
ROUNDS = 2
AT_ONCE = 256              # questions under way; the next ones are told that it does not work
KEPT = 2048                # answers
LONGEST = 30.0             # seconds that an answer is kept, as CoreDNS does
_FAILURE = 2


class Upstream:
    """Asks the resolvers that a function names: they change when a laptop moves."""

    def __init__(self, servers: Callable[[], Sequence[str]], now: Callable[[], float], *, port: int = 53) -> None:
        self._servers = servers
        self._now = now
        self._port = port
        self._kept: OrderedDict[tuple[bytes, bool], tuple[bytes, float]] = OrderedDict()
        self._under_way = 0

    async def ask(self, query: bytes, *, stream: bool) -> bytes:
        """The answer to a query; one that says that there is none, when nobody answers."""
        key = (query[2:].lower(), stream)
        kept = self._kept.get(key)
        if kept is not None and self._now() < kept[1]:
            return query[:2] + kept[0][2:]
        if self._under_way >= AT_ONCE:
            return failure(query)
        self._under_way += 1
        try:
            answer = await self._asked(query, stream=stream)
        finally:
            self._under_way -= 1
        if answer is None:
            return failure(query)
        if seconds := lifetime(answer):
            self._kept[key] = answer, self._now() + seconds
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return query[:2] + answer[2:]

    async def addresses(self, name: str) -> list[bytes]:
        """The addresses of a name, as records under that name."""
        query = struct.pack("!HHHHHH", 0, 0x0100, 1, 0, 0, 0) + encoded(name) + struct.pack("!HH", A, 1)
        return [encoded(name) + struct.pack("!HHIH", A, 1, ttl, len(data)) + data
                for kind, ttl, data in records(await self.ask(query, stream=False)) if kind == A]

    async def _asked(self, query: bytes, *, stream: bool) -> bytes | None:
        number = secrets.token_bytes(2)
        question = number + query[2:]
        for server in [server for _ in range(ROUNDS) for server in self._servers()]:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(SECONDS):
                    answer = await (self._by_stream(server, question) if stream else self._by_packet(server, question))
                if answer[:2] == number and len(answer) >= 12 and answer[2] & 0x80:
                    return answer
        return None

    async def _by_packet(self, server: str, question: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in server else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.setblocking(False)
            await loop.sock_connect(asker, (server, self._port))     # so that nobody else's packets are taken
            await loop.sock_sendall(asker, question)
            while True:
                answer = await loop.sock_recv(asker, 65535)
                if answer[:2] == question[:2]:
                    return answer

    async def _by_stream(self, server: str, question: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(server, self._port)
        try:
            writer.write(struct.pack("!H", len(question)) + question)
            await writer.drain()
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            return await reader.readexactly(length)
        finally:
            writer.close()


def failure(query: bytes) -> bytes:
    """An answer that says that the server could not find out."""
    flags = struct.unpack_from("!H", query, 2)[0]
    end = _past_name(query, 12) + 4
    return query[:2] + struct.pack("!HHHHH", 0x8080 | flags & 0x7900 | _FAILURE, 1, 0, 0, 0) + query[12:end]


def lifetime(answer: bytes) -> float:
    """For how many seconds an answer may be kept; 0 for one that says nothing certain."""
    code, cut = answer[3] & 0xF, answer[2] & 0x02
    if code not in (0, 3) or cut:
        return 0.0
    times = [ttl for _, ttl, _ in records(answer)]
    # That something is not there is kept shortly: when it is, nobody wants to wait.
    return min(LONGEST, *times) if times else 5.0


def records(answer: bytes) -> list[tuple[int, int, bytes]]:
    """Type, time to live and data of the answers; none of a message that cannot be read."""
    found: list[tuple[int, int, bytes]] = []
    try:
        questions, count = struct.unpack_from("!HH", answer, 4)
        at = 12
        for _ in range(questions):
            at = _past_name(answer, at) + 4
        for _ in range(count):
            at = _past_name(answer, at)
            kind, _, ttl, length = struct.unpack_from("!HHIH", answer, at)
            found.append((kind, ttl, answer[at + 10:at + 10 + length]))
            at += 10 + length
    except (struct.error, IndexError):
        return []
    return found


def resolvers(text: str) -> list[str]:
    """The servers that a resolv.conf names."""
    words = [line.split() for line in text.splitlines()]
    return [line[1].partition("%")[0] for line in words if len(line) > 1 and line[0] == "nameserver"][:3]


def _past_name(message: bytes, at: int) -> int:
    while True:
        length = message[at]
        if length >= 0xC0:
            return at + 2
        at += 1 + length
        if not length:
            return at
