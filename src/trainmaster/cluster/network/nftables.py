"""Cluster addresses rewritten by the kernel: our nftables rules, by netlink, spoken directly.

The `nft` program is seldom installed and costs a process per change; a library that speaks this is a half-second import
or a C library. What is needed is small: a map from (address, protocol, port) to a chain per door, in which one of the
backends is chosen. A change touches the chains that changed and no connection that exists, and goes to the kernel in
one transaction per few doors. Clients' addresses are hidden (masquerade): pods share one bridge, and a backend that saw
the client's own address would answer it directly, past the rewriting.

The socket was opened in the cluster's network namespace and stays there; whoever writes to it needs CAP_NET_ADMIN in
the namespace's user namespace, which the user who made that one has from outside too.
"""

import hashlib
import os
import socket
import struct
from collections.abc import Iterable, Mapping

from trainmaster.cluster.network.forwarding import Door, Forward
from trainmaster.cluster.network.layout import BRIDGE, POD_NETWORK, SERVICE_NETWORK

TABLE = "trainmaster"
LINK_LOCAL = "169.254.0.0/16"
MAP = "doors"
NETLINK_NETFILTER = 12
_BATCH = 48_000              # bytes in one transaction: well below what a socket takes unasked
_PATIENCE = 10.0

_SUBSYSTEM = 10
_BEGIN, _END = 0x10, 0x11
_NEW_TABLE, _DEL_TABLE, _NEW_CHAIN, _DEL_CHAIN, _NEW_RULE, _DEL_RULE = 0, 2, 3, 5, 6, 8
_NEW_SET, _DEL_SET, _NEW_ELEMENT, _DEL_ELEMENT = 9, 11, 12, 14
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_ERROR = 2
_FLAGS = {**dict.fromkeys((_NEW_TABLE, _NEW_CHAIN, _NEW_SET, _NEW_ELEMENT), _CREATE), _NEW_RULE: _CREATE | _APPEND}

_PREROUTING, _FORWARD, _OUTPUT, _POSTROUTING = 0, 2, 3, 4
_VERDICT, _FIRST, _SECOND = 0, 1, 2          # registers of 16 bytes
_KEY = 8                                     # the first of the registers of 4 bytes
_JUMP, _GOTO = -3, -4
_VERDICT_TYPE = 0xFFFFFF00
_IPV4, _PROTOCOL, _SERVICE = 7, 12, 13       # nft's own numbers of types: what `nft list` shows
_MAP_FLAG, _TIMEOUT_FLAG, _DYNAMIC_FLAG = 0x8, 0x10, 0x20
_DNAT_STATUS = 0x20
_META_OIFNAME = 7
_NUMBERS = {"TCP": 6, "UDP": 17}


class Refused(Exception):
    """The kernel does not do this here; the message says what it said."""


class Nftables:
    """The rules of one cluster. Not for use by two at once."""

    def __init__(self, channel: socket.socket, network: str) -> None:
        self._channel = channel
        self._channel.settimeout(_PATIENCE)
        self._sequence = 0
        self._doors: dict[Door, Forward] = {}
        self._network = network

    def begin(self, way_out: int = 0) -> None:
        """Our table, empty: what an earlier agent left is forgotten. Raises Refused.

        `way_out`: the port of the gateway to which pods' connections to the outside are redirected; 0: they leave by
        whatever link leads there.
        """
        table = _text(1, TABLE)
        self._commit([
            (_NEW_TABLE, table), (_DEL_TABLE, table), (_NEW_TABLE, table), *_frame(self._network),
            *_leaving(), *([_redirected(way_out)] if way_out else []),
        ])
        self._doors = {}

    def update(self, doors: Mapping[Door, Forward]) -> int:
        """Have exactly these doors; the number that changed. Raises Refused."""
        changed = [door for door, forward in doors.items() if self._doors.get(door) != forward]
        gone = [door for door in self._doors if door not in doors]
        steps = [_changed(door, self._doors.get(door), doors[door]) for door in changed]
        steps += [_removed(door, self._doors[door]) for door in gone]
        for batch in _batches(steps):
            self._commit(batch)
        self._doors = dict(doors)
        return len(changed) + len(gone)

    def close(self) -> None:
        self._channel.close()

    def _commit(self, messages: list[tuple[int, bytes]]) -> None:
        data = self._message(_BEGIN, 0, b"", batch=True)
        for number, (kind, body) in enumerate(messages, 1):
            # What fails is told in any case; that all went well is told for the last one.
            flags = _FLAGS.get(kind, 0) | (_ACK if number == len(messages) else 0)
            data += self._message(_SUBSYSTEM << 8 | kind, flags, body)
        last = self._sequence
        data += self._message(_END, 0, b"", batch=True)
        try:
            self._channel.send(data)
            self._listen(last)
        except OSError as error:
            raise Refused(f"nftables: {error.strerror or error}") from error

    def _listen(self, last: int) -> None:
        problem = 0
        while True:
            answers = self._channel.recv(1 << 18)
            at = 0
            while at + 16 <= len(answers):
                length, kind, _, sequence, _ = struct.unpack_from("=IHHII", answers, at)
                if kind == _ERROR:
                    problem = problem or -struct.unpack_from("=i", answers, at + 16)[0]
                    if sequence >= last or sequence == 0:
                        if problem:
                            raise Refused(f"nftables: {os.strerror(problem)}")
                        return
                at += max(16, (length + 3) & ~3)

    def _message(self, kind: int, flags: int, body: bytes, *, batch: bool = False) -> bytes:
        self._sequence += 1
        family, resource = (0, _SUBSYSTEM) if batch else (socket.AF_INET, 0)
        whole = struct.pack("=BB", family, 0) + struct.pack("!H", resource) + body
        return struct.pack("=IHHII", 16 + len(whole), kind, _REQUEST | flags, self._sequence, 0) + whole


def _frame(network: str) -> list[tuple[int, bytes]]:
    """What is always there: the map, the hooks that ask it, and a refusal for addresses behind which nobody is."""
    key_type = _IPV4 << 12 | _PROTOCOL << 6 | _SERVICE
    made = [(_NEW_SET, _text(1, TABLE) + _text(2, MAP) + _number(3, _MAP_FLAG) + _number(4, key_type) + _number(5, 12)
             + _number(6, _VERDICT_TYPE) + _number(10, 1))]
    for name, hook, priority, kind in (
        ("before", _PREROUTING, -100, "nat"), ("own", _OUTPUT, -100, "nat"), ("after", _POSTROUTING, 100, "nat"),
        ("passing", _FORWARD, 0, "filter"), ("leaving", _OUTPUT, 0, "filter"),
    ):
        hooked = _nested(4, _number(1, hook) + _number(2, priority & 0xFFFFFFFF))
        made.append((_NEW_CHAIN, _text(1, TABLE) + _text(3, name) + hooked + _number(5, 1) + _text(7, kind)))
    ask = (
        _payload(_KEY, 1, 16, 4), _expression("meta", _number(1, _KEY + 1) + _number(2, 16)),
        _payload(_KEY + 2, 2, 2, 2), _expression("lookup", _text(1, MAP) + _number(2, _KEY) + _number(3, _VERDICT)),
    )
    made += [_rule("before", *ask), _rule("own", *ask)]
    rewritten = (
        _expression("ct", _number(1, _FIRST) + _number(2, 2)),
        _expression("bitwise", _number(1, _FIRST) + _number(2, _FIRST) + _number(3, 4)
                    + _nested(4, _attribute(1, struct.pack("=I", _DNAT_STATUS)))
                    + _nested(5, _attribute(1, struct.pack("=I", 0)))),
        _compare(_FIRST, struct.pack("=I", 0), equal=False),
        _expression("masq", b""),
    )
    made.append(_rule("after", *rewritten))
    for chain in ("passing", "leaving"):
        to_us = _within(16, network)
        tcp = (_expression("meta", _number(1, _SECOND) + _number(2, 16)), _compare(_SECOND, bytes((_NUMBERS["TCP"],))))
        made.append(_rule(chain, *to_us, *tcp, _expression("reject", _number(1, 1) + _attribute(2, b"\0"))))
        made.append(_rule(chain, *to_us, _expression("reject", _number(1, 0) + _attribute(2, b"\x03"))))
    return made


def _leaving() -> list[tuple[int, bytes]]:
    """Packets of pods that leave by another link than theirs take the node's address there; none leave to link-local
    addresses, at which clouds give a machine its credentials."""
    elsewhere = (_expression("meta", _number(1, _SECOND) + _number(2, _META_OIFNAME)),
                 _compare(_SECOND, _name(BRIDGE), equal=False))
    return [
        _rule("after", *_within(12, POD_NETWORK), *elsewhere, _expression("masq", b"")),
        _rule("passing", *_within(16, LINK_LOCAL), _expression("reject", _number(1, 0) + _attribute(2, b"\x03"))),
    ]


def _redirected(port: int) -> tuple[int, bytes]:
    tcp = (_expression("meta", _number(1, _SECOND) + _number(2, 16)), _compare(_SECOND, bytes((_NUMBERS["TCP"],))))
    return _rule(
        "before", *_within(12, POD_NETWORK), *_within(16, POD_NETWORK, equal=False),
        *_within(16, SERVICE_NETWORK, equal=False), *tcp,
        _immediate(_FIRST, struct.pack("!H", port)), _expression("redir", _number(1, _FIRST)),
    )


def _within(offset: int, network: str, *, equal: bool = True) -> tuple[bytes, ...]:
    """Whether the address at an offset of the header is one of a network."""
    address, _, bits = network.partition("/")
    mask = struct.pack("!I", 0xFFFFFFFF << (32 - int(bits)) & 0xFFFFFFFF)
    return (
        _payload(_FIRST, 1, offset, 4),
        _expression("bitwise", _number(1, _FIRST) + _number(2, _FIRST) + _number(3, 4)
                    + _nested(4, _attribute(1, mask)) + _nested(5, _attribute(1, bytes(4)))),
        _compare(_FIRST, socket.inet_aton(address), equal=equal),
    )


def _name(link: str) -> bytes:
    return link.encode().ljust(16, b"\0")


def _changed(door: Door, before: Forward | None, after: Forward) -> list[tuple[int, bytes]]:
    """From one state of a door to another, without a moment in which it is closed."""
    chain = _text(1, TABLE) + _text(2, _chain(door))
    made = [(_NEW_CHAIN, _text(1, TABLE) + _text(3, _chain(door)))] if before is None else [(_DEL_RULE, chain)]
    kept = _sets(door, after)
    made += [
        (_NEW_SET, _text(1, TABLE) + _text(2, name) + _number(3, _TIMEOUT_FLAG | _DYNAMIC_FLAG) + _number(4, _IPV4)
         + _number(5, 4) + _number(10, number + 2) + _large(11, after.affinity * 1000))
        for number, name in enumerate(kept)
    ]
    made += list(_choices(door, after))
    if before is None:
        made.append((_NEW_ELEMENT, _element(door, _goto(_chain(door)))))
    else:
        made += [(_DEL_SET, _text(1, TABLE) + _text(2, name)) for name in _sets(door, before) if name not in kept]
    return made


def _removed(door: Door, before: Forward) -> list[tuple[int, bytes]]:
    chain = _text(1, TABLE)
    return [
        (_DEL_ELEMENT, _element(door)), (_DEL_RULE, chain + _text(2, _chain(door))),
        (_DEL_CHAIN, chain + _text(3, _chain(door))),
        *((_DEL_SET, chain + _text(2, name)) for name in _sets(door, before)),
    ]


def _choices(door: Door, forward: Forward) -> Iterable[tuple[int, bytes]]:
    """The rules of a door: where a client has been, if it is to stay; else any of them."""
    chain, count = _chain(door), len(forward.backends)
    source = _payload(_FIRST, 1, 12, 4)
    sets = _sets(door, forward)
    remember = [
        _expression("dynset", _text(1, name) + _number(3, 1) + _number(4, _FIRST)
                    + _large(6, forward.affinity * 1000))
        for name in sets
    ]
    for name, again, backend in zip(sets, remember, forward.backends, strict=False):
        known = _expression("lookup", _text(1, name) + _number(2, _FIRST))
        yield _rule(chain, source, known, again, *_rewrite(backend))
    for number, backend in enumerate(forward.backends):
        left = count - number
        turn = () if left == 1 else (
            _expression("numgen", _number(1, _FIRST) + _number(2, left) + _number(3, 1) + _number(4, 0)),
            _compare(_FIRST, struct.pack("=I", 0)),
        )
        noted = (source, remember[number]) if remember else ()
        yield _rule(chain, *turn, *noted, *_rewrite(backend))


def _rewrite(backend: tuple[str, int]) -> tuple[bytes, ...]:
    return (
        _immediate(_FIRST, socket.inet_aton(backend[0])), _immediate(_SECOND, struct.pack("!H", backend[1])),
        _expression("nat", _number(1, 1) + _number(2, socket.AF_INET) + _number(3, _FIRST) + _number(5, _SECOND)),
    )


def _chain(door: Door) -> str:
    return f"{door.protocol.lower()}-{door.address}-{door.port}"


def _sets(door: Door, forward: Forward) -> list[str]:
    """One set of clients per backend, if they are to stay. A name in the kernel has at most 31 letters on old ones."""
    if not forward.affinity:
        return []
    names = (f"{_chain(door)}|{address}|{port}|{forward.affinity}" for address, port in forward.backends)
    return [f"stay-{hashlib.sha256(name.encode()).hexdigest()[:16]}" for name in names]


def _batches(steps: Iterable[list[tuple[int, bytes]]]) -> Iterable[list[tuple[int, bytes]]]:
    """In order, each of about a bounded size; what belongs to one door stays together."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    for step in steps:
        length = sum(len(body) + 20 for _, body in step)
        if batch and size + length > _BATCH:
            yield batch
            batch, size = [], 0
        batch += step
        size += length
    if batch:
        yield batch


def _element(door: Door, data: bytes = b"") -> bytes:
    key = socket.inet_aton(door.address) + bytes((_NUMBERS[door.protocol], 0, 0, 0)) + struct.pack("!HH", door.port, 0)
    one = _nested(1, _nested(1, _attribute(1, key)) + (_nested(2, data) if data else b""))
    return _text(1, TABLE) + _text(2, MAP) + _nested(3, one)


def _goto(chain: str) -> bytes:
    return _nested(2, _number(1, _GOTO & 0xFFFFFFFF) + _text(2, chain))


def _rule(chain: str, *expressions: bytes) -> tuple[int, bytes]:
    listed = b"".join(_nested(1, one) for one in expressions)
    return _NEW_RULE, _text(1, TABLE) + _text(2, chain) + _nested(4, listed)


def _expression(name: str, data: bytes) -> bytes:
    return _text(1, name) + _nested(2, data)


def _payload(register: int, base: int, offset: int, length: int) -> bytes:
    return _expression("payload", _number(1, register) + _number(2, base) + _number(3, offset) + _number(4, length))


def _compare(register: int, value: bytes, *, equal: bool = True) -> bytes:
    return _expression("cmp", _number(1, register) + _number(2, 0 if equal else 1) + _nested(3, _attribute(1, value)))


def _immediate(register: int, value: bytes) -> bytes:
    return _expression("immediate", _number(1, register) + _nested(2, _attribute(1, value)))


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("!I", value))


def _large(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("!Q", value))


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | 0x8000, value)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)
