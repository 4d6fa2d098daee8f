"""Links, addresses and routes by rtnetlink, spoken directly.

The `ip` program costs a process per step and pyroute2 half a second of import; a pod needs six messages. A socket stays
in the network namespace in which it was opened, so whoever makes a pod's link keeps one from before it left.
Only the standard library's small modules are imported, because the helper that forks pods carries this module.
"""

import os
import select
import socket
import struct
import time

FORWARDING = 3   # the bridge port state in which frames pass

_RTM_NEWLINK, _RTM_GETLINK, _RTM_NEWADDR, _RTM_NEWROUTE = 16, 18, 20, 24
_NLMSG_ERROR = 2
_REQUEST, _ACK, _CREATE, _EXCL = 0x1, 0x4, 0x400, 0x200
_IFF_UP = 0x1
_LINK_NEWS = 0x1            # RTMGRP_LINK

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_NET_NS_PID = 1, 3, 10, 18, 19
_INFO_KIND, _INFO_DATA, _INFO_SLAVE_DATA = 1, 2, 5
_VETH_PEER = 1
_BRPORT_STATE = 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY = 1, 4, 5

_LOOPBACK_INDEX = 1         # the kernel makes lo first in every network namespace


class Netlink:
    """One conversation with the kernel about the links of the network namespace in which it was begun."""

    def __init__(self, *, news: bool = False, channel: socket.socket | None = None) -> None:
        """`channel` is a socket that somebody else opened, perhaps in another namespace."""
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        self._socket = channel or socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)
        if channel is None:
            self._socket.bind((0, _LINK_NEWS if news else 0))
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def make_bridge(self, name: str, mac: bytes) -> int:
        """A bridge with a fixed address; without one it would change with the ports."""
        info = _nested(_IFLA_LINKINFO, _attribute(_INFO_KIND, b"bridge\0"))
        named = _text(_IFLA_IFNAME, name) + _attribute(_IFLA_ADDRESS, mac)
        self._ask(_RTM_NEWLINK, _CREATE | _EXCL, _link_head(0, up=True) + named + info)
        return socket.if_nametoindex(name)

    def make_pair(self, name: str, bridge: int, peer: str, peer_mac: bytes, peer_pid: int) -> None:
        """A veth pair in one message: our end up on the bridge, the other end in the namespace of `peer_pid`."""
        far = (
            _link_head(0, up=False) + _text(_IFLA_IFNAME, peer) + _attribute(_IFLA_ADDRESS, peer_mac)
            + _attribute(_IFLA_NET_NS_PID, struct.pack("=I", peer_pid))
        )
        info = _nested(
            _IFLA_LINKINFO, _attribute(_INFO_KIND, b"veth\0") + _nested(_INFO_DATA, _attribute(_VETH_PEER, far))
        )
        near = _text(_IFLA_IFNAME, name) + _attribute(_IFLA_MASTER, struct.pack("=I", bridge))
        self._ask(_RTM_NEWLINK, _CREATE | _EXCL, _link_head(0, up=True) + near + info)

    def raise_link(self, index: int) -> None:
        self._ask(_RTM_NEWLINK, 0, _link_head(index, up=True))

    def raise_loopback(self) -> None:
        self.raise_link(_LOOPBACK_INDEX)

    def add_address(self, index: int, address: str, prefix: int) -> None:
        raw = socket.inet_aton(address)
        head = struct.pack("=BBBBi", socket.AF_INET, prefix, 0, 0, index)
        self._ask(_RTM_NEWADDR, _CREATE | _EXCL, head + _attribute(_IFA_LOCAL, raw) + _attribute(_IFA_ADDRESS, raw))

    def add_default_route(self, index: int, gateway: str) -> None:
        # family, dst_len, src_len, tos, table main, protocol boot, scope universe, type unicast, flags
        head = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0)
        via = _attribute(_RTA_GATEWAY, socket.inet_aton(gateway)) + _attribute(_RTA_OIF, struct.pack("=i", index))
        self._ask(_RTM_NEWROUTE, _CREATE | _EXCL, head + via)

    def add_route(self, network: str, index: int) -> None:
        """Packets for `network` leave by a link; there they may still be rewritten."""
        address, _, bits = network.partition("/")
        head = struct.pack("=BBBBBBBBI", socket.AF_INET, int(bits), 0, 0, 254, 3, 253, 1, 0)     # 253: scope link
        to = _attribute(_RTA_DST, socket.inet_aton(address)) + _attribute(_RTA_OIF, struct.pack("=i", index))
        self._ask(_RTM_NEWROUTE, _CREATE | _EXCL, head + to)

    def own_network(self, network: str) -> None:
        """Every address of `network` is one of this namespace's own, without being listed."""
        address, _, bits = network.partition("/")
        # table local, scope host, type local
        head = struct.pack("=BBBBBBBBI", socket.AF_INET, int(bits), 0, 0, 255, 3, 254, 2, 0)
        to = _attribute(_RTA_DST, socket.inet_aton(address)) + _attribute(_RTA_OIF, struct.pack("=i", _LOOPBACK_INDEX))
        self._ask(_RTM_NEWROUTE, _CREATE, head + to)

    def port_state(self, name: str) -> int:
        """The state of the bridge port of that name; 0 when it is not a port."""
        reply = self._ask(_RTM_GETLINK, 0, _link_head(0, up=False) + _text(_IFLA_IFNAME, name))
        info = _attributes(_attributes(reply[16:]).get(_IFLA_LINKINFO, b""))
        state = _attributes(info.get(_INFO_SLAVE_DATA, b"")).get(_BRPORT_STATE, b"\0")
        return state[0]

    def next_news(self, timeout: float) -> bool:
        """Wait until some link changes (for a Netlink with news); False when nothing did in time."""
        readable, _, _ = select.select([self._socket], [], [], max(0.0, timeout))
        if readable:
            self._socket.recv(1 << 16)
        return bool(readable)

    def _ask(self, kind: int, flags: int, body: bytes) -> bytes:
        self._sequence += 1
        flags |= _REQUEST | (0 if kind == _RTM_GETLINK else _ACK)
        self._socket.send(struct.pack("=IHHII", 16 + len(body), kind, flags, self._sequence, 0) + body)
        while True:
            data = self._socket.recv(1 << 16)
            length, answer, _, sequence, _ = struct.unpack_from("=IHHII", data)
            if sequence != self._sequence:
                continue
            if answer == _NLMSG_ERROR:
                number = -struct.unpack_from("=i", data, 16)[0]
                if number:
                    raise OSError(number, f"netlink {_WORDS[kind]}: {os.strerror(number)}")
            return data[16:length]


def wait_until_forwarding(port: str, ask: Netlink, news: Netlink, timeout: float = 3.0) -> bool:
    """Wait until frames pass a bridge port. Without this the first connection of a pod now and then takes a second,
    because its first ARP request is lost and only repeated then."""
    until = time.monotonic() + timeout
    while ask.port_state(port) != FORWARDING:
        if not news.next_news(until - time.monotonic()):
            return False
    return True


def mac_of(address: str) -> bytes:
    """A hardware address made from the IPv4 address: who gets a freed address gets its MAC too, so that no
    neighbour's ARP entry is ever stale."""
    return b"\x02\x54" + socket.inet_aton(address)


def _link_head(index: int, *, up: bool) -> bytes:
    flags = _IFF_UP if up else 0
    return struct.pack("=BBHiII", 0, 0, 0, index, flags, flags)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | 0x8000, value)


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4:at + length]
        at += (length + 3) & ~3
    return found


_WORDS = {_RTM_NEWLINK: "link", _RTM_GETLINK: "look at link", _RTM_NEWADDR: "address", _RTM_NEWROUTE: "route"}
