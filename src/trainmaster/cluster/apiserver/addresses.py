"""IP addresses and networks as texts, and how Kubernetes refuses those that mean different things to different readers.

`010.0.0.1` is 10.0.0.1 to some and 8.0.0.1 to others, `::ffff:10.0.0.1` is IPv4 to some and IPv6 to others, and
`10.0.0.1/8` is a network or an address in one: such texts can be read, and are refused for what they are.
"""

import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeAlias

from trainmaster.cluster.apiserver import causes
from trainmaster.cluster.apiserver.causes import Cause

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING = re.compile(r"(^|[.:])0+(?=[0-9]+(\.|$))")
_DOTTED = re.compile(r"(.*:)?[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", re.ASCII)
_LONGEST = 64       # no address is longer; a text that is gets no closer look


def parsed(text: str) -> Address | None:
    """The address that a text means, with leading zeros ignored."""
    if len(text) > _LONGEST or "%" in text or not text.isascii():
        return None
    with suppress(ValueError):
        return ipaddress.ip_address(_plain(text))
    return None


def network(text: str) -> Network | None:
    """The network that `address/bits` means; bits beyond its prefix are ignored, as leading zeros are."""
    start, _, bits = text.partition("/")
    found = parsed(start)
    if found is None or not bits.isascii() or not bits.isdigit() or len(bits) > _LONGEST \
            or int(bits) > found.max_prefixlen:
        return None
    return ipaddress.ip_network(f"{found}/{int(bits)}", strict=False)


def is_inside(part: Network, whole: Network) -> bool:
    """Whether a network is a part of another one, and not all of it."""
    start = part.network_address
    plain = getattr(start, "ipv4_mapped", None) or start
    return plain in whole and part.prefixlen > whole.prefixlen


def rules(text: str, path: str) -> Iterator[Cause]:
    """The faults of an address; more than one way to write one is allowed."""
    found = parsed(text)
    if found is None:
        yield causes.invalid(path, text, NOT_AN_ADDRESS)
    elif _plain(text) != text:
        yield causes.invalid(path, text, "must not have leading 0s")
    elif _is_mapped(found):
        yield causes.invalid(path, text, "must not be an IPv4-mapped IPv6 address")


def strict_rules(text: str, path: str) -> Iterator[Cause]:
    """The faults of an address where there is only one way to write it."""
    faults = list(rules(text, path))
    yield from faults
    if not faults and (written := str(parsed(text))) != text:
        yield causes.invalid(path, text, f"must be in canonical form ({causes.quoted(written)})")


def network_rules(text: str, path: str) -> Iterator[Cause]:
    found = network(text)
    start, _, bits = text.partition("/")
    if found is None:
        yield causes.invalid(path, text, NOT_A_NETWORK)
    elif _plain(start) != start or str(int(bits)) != bits:
        yield causes.invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif _is_mapped(address := parsed(start)):
        yield causes.invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif address != found.network_address:
        yield causes.invalid(path, text, "must not have bits set beyond the prefix length")


def reach_rules(text: str, path: str) -> Iterator[Cause]:
    """The faults of an address that others are to reach."""
    found = parsed(text)
    if found is None:
        yield causes.invalid(path, text, "must be a valid IP address")
        return
    for is_so, said in (
        (found.is_unspecified, f"may not be unspecified ({text})"),
        (found.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (found.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (found in _LOCAL_GROUPS[found.version],
         "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ):
        if is_so:
            yield causes.invalid(path, text, said)


_LOCAL_GROUPS: dict[int, Network] = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _plain(text: str) -> str:
    return _LEADING.sub(r"\1", text) if _DOTTED.fullmatch(text) else text


def _is_mapped(address: Address | None) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
