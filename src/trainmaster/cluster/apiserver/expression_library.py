"""What Kubernetes adds to CEL: amounts, versions, addresses, URLs, finds in text. Access is in `expression_access`.

The library that evaluates expressions takes functions in Python but no types of ours, so a value of a type that
Kubernetes adds is a map with one entry, its type's name, and what it says is written in one way only: then `==` says
what it should. Functions are found by the name of the type in the map.

A pattern is looked for by the library's own engine, which is linear in the text; Python's would let whoever writes a
rule stop the server. What gives back an optional and what has the name of another function is called by the names that
`expression_text` writes.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from trainmaster.api import quantity
from trainmaster.cluster.apiserver import named_formats
from trainmaster.cluster.apiserver.expression_text import NAMED, RENAMED, SAID

Value: TypeAlias = Mapping[str, Any]
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Does: TypeAlias = Callable[..., Any]

LONGEST_RANGE = 10_000      # as many as a loop may have steps


@dataclass(frozen=True, slots=True)
class Function:
    """One way to call one. Types by name: those of CEL, and MAP for all that are ours."""

    name: str
    takes: tuple[str, ...]
    gives: str
    does: Does
    member: bool = True


def _of(values: Mapping[str, Does]) -> Does:
    """The function of several types: which one is in the value."""
    def does(value: Value, *more: Any) -> Any:
        found = next((each for name, each in values.items() if name in value), None)
        if found is None:
            raise ValueError("no such overload")
        return found(value, *more)
    return does


# Amounts

def _amount(text: str) -> Value:
    return {"quantity": str(quantity.parse(text))}


def _number(value: Value | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(value["quantity"])


def _whole(value: Value) -> int:
    amount = _number(value)
    if amount.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _sum(value: Value, other: Value | int) -> Value:
    return {"quantity": str(_number(value) + _number(other))}


def _difference(value: Value, other: Value | int) -> Value:
    return {"quantity": str(_number(value) - _number(other))}


def _sign(number: Fraction | int) -> int:
    return (number > 0) - (number < 0)


# Versions

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
                      r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
                      r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?", re.ASCII)


def _version(text: str, lenient: bool = False) -> Value:
    if lenient:
        numbers, _, rest = text.removeprefix("v").partition("-")
        parts = [each.lstrip("0") or "0" for each in numbers.split(".")]
        text = ".".join([*parts, *["0"] * (3 - len(parts))]) + (f"-{rest}" if rest else "")
    if _VERSION.fullmatch(text) is None:
        raise ValueError(f"{text[:100]!r} is not a semantic version")
    return {"semver": text.partition("+")[0]}


def _parts(value: Value) -> tuple[tuple[int, ...], tuple[tuple[int, int, str], ...]]:
    """To be compared: numbers, and words after them; numbers come before words."""
    numbers, _, words = str(value["semver"]).partition("-")
    return (tuple(map(int, numbers.split("."))),
            tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in words.split(".") if word))


def _later(value: Value, other: Value) -> int:
    (numbers, words), (others, theirs) = _parts(value), _parts(other)
    if numbers != others or not words or not theirs:      # without words comes after any with
        mine, them = (numbers, not words), (others, not theirs)
        return (mine > them) - (mine < them)
    return (words > theirs) - (words < theirs)


_COMPARED = _of({"quantity": lambda value, other: _sign(_number(value) - _number(other)), "semver": _later})


# Addresses

def _address(text: str) -> Address:
    found = ipaddress.ip_address(text)
    if "%" in text:
        raise ValueError(f"IP address {text[:60]!r} with zone value is not allowed")
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text[:60]!r} is not allowed")
    return found


def _range(text: str) -> Interface:
    address, slash, length = text.partition("/")
    if not slash or not length.isascii() or not length.isdigit() or (length != "0" and length.startswith("0")):
        raise ValueError(f"network address parse error during conversion from string: {text[:60]!r}")
    return ipaddress.ip_interface((_address(address), int(length)))


def _ip(value: Value | str) -> Address:
    return _address(value if isinstance(value, str) else value["ip"])


def _cidr(value: Value | str) -> Interface:
    return _range(value if isinstance(value, str) else value["cidr"])


def _link_local_group(address: Address) -> bool:
    return address in ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def _global(address: Address) -> bool:
    """As Go says it: private ones as well."""
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
                or str(address) == "255.255.255.255")


def _within(value: Value, other: Value | str) -> bool:
    mine, theirs = _cidr(value).network, _cidr(other).network
    return mine.version == theirs.version and theirs.subnet_of(mine)  # type: ignore[arg-type]  # of one version by then


# URLs

_HOST = re.compile(r"[^\s<>\"\\^`{|}\x00-\x1f\x7f]*")
_ESCAPES = re.compile(r"%(?![0-9a-fA-F]{2})")


def _url(text: str) -> Value:
    """As it would stand in a request: absolute, or a path from the root."""
    parts = urlsplit(text, allow_fragments=False)
    if not (parts.scheme or text.startswith("/")) or _HOST.fullmatch(parts.netloc) is None \
            or _ESCAPES.search(parts.path) or any(sign < " " or sign == "\x7f" for sign in text):
        raise ValueError(f"URL parse error during conversion from string: {text[:100]!r}")
    _ = parts.port       # raises what is no number
    return {"url": text}


def _query(value: Value) -> dict[str, list[str]]:
    return parse_qs(_split(value).query, keep_blank_values=True)


def _split(value: Value) -> Any:
    return urlsplit(value["url"], allow_fragments=False)


def _host(value: Value) -> str:
    return str(_split(value).netloc.rpartition("@")[2])


# Text

Found: TypeAlias = Callable[[str, str, int], list[str]]


def found_by(replaced: Callable[[str, str, str, int], str]) -> Found:
    """Finds with an engine that replaces: what it found is put between two signs that the text does not have."""
    def find(text: str, pattern: str, most: int) -> list[str]:
        if most == 0:
            return []
        one, two = (sign for sign, _ in zip((sign for sign in map(chr, range(0xE000, 0xF8FF)) if sign not in text),
                                            range(2), strict=False))
        marked = replaced(text, f"({pattern})", f"{one}\\1{two}", max(most, -1))
        return [part.partition(two)[0] for part in marked.split(one)[1:]]
    return find


def searching(find: Found) -> Iterator[Function]:
    yield Function("find", ("STRING", "STRING"), "STRING", lambda text, it: next(iter(find(text, it, 1)), ""))
    yield Function("findAll", ("STRING", "STRING"), "LIST", lambda text, it: find(text, it, -1))
    yield Function("findAll", ("STRING", "STRING", "INT"), "LIST", find)


# All of them

def _is(made: Does) -> Does:
    def does(*given: Any) -> bool:
        try:
            made(*given)
        except ValueError:
            return False
        return True
    return does


def _plain(name: str, made: Does, *takes: str, gives: str = "MAP") -> Function:
    return Function(name, takes or ("STRING",), gives, made, member=False)


def _on(name: str, gives: str, does: Does, *takes: str) -> Function:
    return Function(name, ("MAP", *takes), gives, does)


@cache
def functions() -> tuple[Function, ...]:
    """But for `searching`, which needs an engine."""
    return (
        *_lists(), *_places(), *_formats(), *_amounts(), *_versions(), *_addresses(), *_urls(),
        _on("compareTo", "INT", _COMPARED, "MAP"),
        _on("isGreaterThan", "BOOL", lambda value, other: _COMPARED(value, other) > 0, "MAP"),
        _on("isLessThan", "BOOL", lambda value, other: _COMPARED(value, other) < 0, "MAP"),
    )


def _lists() -> Iterable[Function]:
    yield Function("isSorted", ("LIST",), "BOOL", lambda items: items == sorted(items))
    yield Function("sum", ("LIST",), "DYN", lambda items: sum(items[1:], items[0]) if items else 0)
    yield _plain(RENAMED["lists.range"], _numbers, "INT", gives="LIST")
    yield Function("mapOfPairs", ("LIST",), "MAP", lambda pairs: _merged({key: value} for key, value in pairs))
    yield Function("mapOfMaps", ("LIST",), "MAP", _merged)
    for name, does in (("min", min), ("max", max)):
        yield Function(name, ("LIST",), "DYN", _of_some(name, does))


def _merged(maps: Iterable[Value]) -> Value:
    found: dict[str, Any] = {}
    for each in maps:
        for key, value in each.items():
            if key in found:
                raise ValueError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


def _numbers(count: int) -> list[int]:
    if count > LONGEST_RANGE:
        raise ValueError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _of_some(name: str, does: Does) -> Does:
    def found(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return does(items)
    return found


def _same(one: Any, other: Any) -> bool:
    """In the language a truth is no number, as it is in Python."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


_KINDS = ("BOOL", "INT", "UINT", "DOUBLE", "STRING", "BYTES", "LIST", "MAP", "NULL", "TIMESTAMP", "DURATION")


def _places() -> Iterable[Function]:
    """Of lists as of texts, where places are counted in signs. What an item is has to be said: DYN is not anything."""
    first, last = (RENAMED[name] for name in ("indexOf", "lastIndexOf"))
    for kind in _KINDS:
        yield Function(first, ("LIST", kind), "INT", lambda items, item: _at(items, item, 1))
        yield Function(last, ("LIST", kind), "INT", lambda items, item: _at(items, item, -1))
    yield Function(first, ("STRING", "STRING"), "INT", lambda text, part: text.find(part))
    yield Function(last, ("STRING", "STRING"), "INT", lambda text, part: text.rfind(part))
    yield Function(first, ("STRING", "STRING", "INT"), "INT", _from(lambda text, part, at: text.find(part, at)))
    yield Function(last, ("STRING", "STRING", "INT"), "INT",
                   _from(lambda text, part, at: text.rfind(part, 0, at + len(part))))


def _at(items: list[Any], item: Any, turn: int) -> int:
    return next((at for at in range(len(items))[::turn] if _same(items[at], item)), -1)


def _from(find: Callable[[str, str, int], int]) -> Does:
    def found(text: str, part: str, at: int) -> int:
        if not part:
            return at
        if at < 0:
            raise ValueError(f"index out of range: {at}")
        return find(text, part, at) if at < len(text) else -1
    return found


def _formats() -> Iterable[Function]:
    for name in named_formats.FORMATS:
        yield Function(f"format.{name}", (), "MAP", lambda name=name: {"format": name}, member=False)
    yield _plain("format.named", lambda name: {NAMED: {"format": name}} if name in named_formats.FORMATS else {})
    yield _on("validate", "MAP", _faults, "STRING")


def _faults(value: Value, text: str) -> Value:
    found = named_formats.FORMATS[value["format"]](text)
    return {SAID: found} if found else {}


def _amounts() -> Iterable[Function]:
    yield _plain("quantity", _amount)
    yield _plain("isQuantity", _is(_amount), gives="BOOL")
    yield _plain("sign", lambda value: _sign(_number(value)), "MAP", gives="INT")
    yield _on("isInteger", "BOOL", lambda value: _number(value).denominator == 1)
    yield _on("asInteger", "INT", _whole)
    yield _on("asApproximateFloat", "DOUBLE", lambda value: float(_number(value)))
    for other in ("MAP", "INT"):
        yield _on("add", "MAP", _sum, other)
        yield _on("sub", "MAP", _difference, other)


def _versions() -> Iterable[Function]:
    for takes in (("STRING",), ("STRING", "BOOL")):
        yield _plain("semver", _version, *takes)
        yield _plain("isSemver", _is(_version), *takes, gives="BOOL")
    for at, name in enumerate(("major", "minor", "patch")):
        yield _on(name, "INT", lambda value, at=at: _parts(value)[0][at])


def _addresses() -> Iterable[Function]:
    yield _plain("ip", lambda text: {"ip": str(_address(text))})
    yield _plain("isIP", _is(_address), gives="BOOL")
    yield _plain("ip.isCanonical", lambda text: str(_address(text)) == text, gives="BOOL")
    yield _on("family", "INT", lambda value: _ip(value).version)
    for name, holds in (("isUnspecified", lambda ip: ip.is_unspecified), ("isLoopback", lambda ip: ip.is_loopback),
                        ("isLinkLocalMulticast", _link_local_group),
                        ("isLinkLocalUnicast", lambda ip: ip.is_link_local), ("isGlobalUnicast", _global)):
        yield _on(name, "BOOL", lambda value, holds=holds: holds(_ip(value)))
    yield _plain("cidr", lambda text: {"cidr": str(_range(text))})
    yield _plain("isCIDR", _is(_range), gives="BOOL")
    for other in ("MAP", "STRING"):
        yield _on("containsIP", "BOOL", lambda value, it: _ip(it) in _cidr(value).network, other)
        yield _on("containsCIDR", "BOOL", _within, other)
    yield _on("ip", "MAP", lambda value: {"ip": str(_cidr(value).ip)})
    yield _plain("textOf", _of({"ip": lambda value: value["ip"], "cidr": lambda value: value["cidr"]}), "MAP",
                 gives="STRING")
    yield _on("masked", "MAP", lambda value: {"cidr": str(_cidr(value).network)})
    yield _on("prefixLength", "INT", lambda value: _cidr(value).network.prefixlen)


def _urls() -> Iterable[Function]:
    yield _plain("url", _url)
    yield _plain("isURL", _is(_url), gives="BOOL")
    yield _on("getScheme", "STRING", lambda value: _split(value).scheme)
    yield _on("getHost", "STRING", _host)
    yield _on("getHostname", "STRING", lambda value: _split(value).hostname or "")
    yield _on("getPort", "STRING", lambda value: str(_split(value).port or ""))
    yield _on("getEscapedPath", "STRING", lambda value: _split(value).path)
    yield _on("getQuery", "MAP", _query)
