"""An address for every pod, inside the cluster's own network.

In order and round, not the lowest free one: a name that a program has resolved keeps pointing at nobody for as long as
possible after its pod is gone, instead of at the next pod.
"""

import ipaddress
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

NETWORK = ipaddress.IPv4Network("10.88.0.0/16")
_FIRST = 2                              # .0 is the network, .1 the bridge
_LAST = NETWORK.num_addresses - 2       # the last one is for broadcasts


class Exhausted(Exception):
    """All addresses are in use."""


def next_address(taken: AbstractSet[str], last: str | None) -> str:
    """The first free address after `last`, beginning again at the start of the network."""
    size = _LAST - _FIRST + 1
    start = int(ipaddress.IPv4Address(last)) - int(NETWORK.network_address) - _FIRST + 1 if last else 0
    for step in range(size):
        address = str(NETWORK[_FIRST + (start + step) % size])
        if address not in taken:
            return address
    raise Exhausted(f"all {size} pod addresses of {NETWORK} are in use")


class Addresses:
    """Who has which address, by the pod's UID, from before its sandbox is made until it is gone."""

    def __init__(self, in_use: Mapping[str, str]) -> None:
        self._held = dict(in_use)
        self._last: str | None = None

    def of(self, uid: str) -> str:
        return self._held[uid]

    def keep(self, uid: str, address: str) -> None:
        """It has this one already."""
        self._held[uid] = address

    def reserve(self, uid: str) -> str:
        """The address that it has, or one for it. Raises Exhausted."""
        if uid not in self._held:
            self._held[uid] = self._last = next_address(set(self._held.values()), self._last)
        return self._held[uid]

    def free(self, uid: str) -> None:
        self._held.pop(uid, None)
