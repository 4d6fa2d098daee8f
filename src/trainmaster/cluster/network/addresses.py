"""An address for every pod, inside the cluster's own network.

In order and round, not the lowest free one: a name that a program has resolved keeps pointing at nobody for as long as
possible after its pod is gone, instead of at the next pod.
"""

import ipaddress
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
