"""What the functions of CEL on Kubernetes take and give, for the check of a rule before it ever runs.

A rule is checked in an environment that only declares: no function there can be called, so that it may have what the
library lets nobody add to one that runs (types of Kubernetes' own, functions that give back an optional, a further
`indexOf` beside that of strings), and has no more than Kubernetes has (no `math`, no `cel.bind`). How such a rule is
run is `expression_text`'s business.

A declaration is written `takes.name(takes, …) gives`, or without the first for a function of no value, whose name may
have a dot as well (`strings.quote`).
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

from trainmaster.cluster.apiserver import named_formats

_EXTENSIONS = ("optional", "sets", "lists", "two-var-comprehensions")
_TYPES = {"Quantity": "kubernetes.Quantity", "Semver": "kubernetes.Semver", "URL": "kubernetes.URL",
          "Format": "kubernetes.NamedFormat", "IP": "net.IP", "CIDR": "net.CIDR", "optional": "optional_type"}
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE = ("int", "uint", "double", "duration")
_DECLARED = """
string.charAt(int) string
string.indexOf(string) int
string.indexOf(string, int) int
string.lastIndexOf(string) int
string.lastIndexOf(string, int) int
string.lowerAscii() string
string.upperAscii() string
string.replace(string, string) string
string.replace(string, string, int) string
string.split(string) list<string>
string.split(string, int) list<string>
string.substring(int) string
string.substring(int, int) string
string.trim() string
string.format(list<dyn>) string
strings.quote(string) string
list<string>.join() string
list<string>.join(string) string
list<A>.indexOf(A) int
list<A>.lastIndexOf(A) int
string.find(string) string
string.findAll(string) list<string>
string.findAll(string, int) list<string>
url(string) URL
isURL(string) bool
URL.getScheme() string
URL.getHost() string
URL.getHostname() string
URL.getPort() string
URL.getEscapedPath() string
URL.getQuery() map<string, list<string>>
quantity(string) Quantity
isQuantity(string) bool
sign(Quantity) int
Quantity.isGreaterThan(Quantity) bool
Quantity.isLessThan(Quantity) bool
Quantity.compareTo(Quantity) int
Quantity.asApproximateFloat() double
Quantity.asInteger() int
Quantity.isInteger() bool
Quantity.add(Quantity) Quantity
Quantity.add(int) Quantity
Quantity.sub(Quantity) Quantity
Quantity.sub(int) Quantity
semver(string) Semver
semver(string, bool) Semver
isSemver(string) bool
isSemver(string, bool) bool
Semver.isGreaterThan(Semver) bool
Semver.isLessThan(Semver) bool
Semver.compareTo(Semver) int
Semver.major() int
Semver.minor() int
Semver.patch() int
ip(string) IP
ip.isCanonical(string) bool
isIP(string) bool
IP.family() int
IP.isUnspecified() bool
IP.isLoopback() bool
IP.isLinkLocalMulticast() bool
IP.isLinkLocalUnicast() bool
IP.isGlobalUnicast() bool
cidr(string) CIDR
isCIDR(string) bool
CIDR.containsIP(string) bool
CIDR.containsIP(IP) bool
CIDR.containsCIDR(string) bool
CIDR.containsCIDR(CIDR) bool
CIDR.ip() IP
CIDR.masked() CIDR
CIDR.prefixLength() int
string(bool) string
string(bytes) string
string(double) string
string(duration) string
string(int) string
string(string) string
string(timestamp) string
string(uint) string
string(IP) string
string(CIDR) string
Format.validate(string) optional<list<string>>
format.named(string) optional<Format>
"""
_FORM = re.compile(r"(?:(?P<target>(?:string|list<\w+>|[A-Z]\w*))\.)?(?P<name>[\w.]+)\((?P<takes>.*)\) (?P<gives>.+)")
_PART = re.compile(r"[\w.]+|[<>,]")


@cache
def declared() -> str:
    """The environment, as the library reads it: YAML, of which JSON is one form."""
    ways = sorted(((found["name"], found) for found in map(_FORM.fullmatch, _lines()) if found), key=lambda way: way[0])
    functions = [{"name": name, "overloads": [_overload(found) for _, found in same]}
                 for name, same in groupby(ways, key=lambda way: way[0])]
    return json.dumps({"extensions": [{"name": name} for name in _EXTENSIONS],
                       "stdlib": {"exclude_functions": [{"name": "string"}]}, "functions": functions})


def _lines() -> Iterator[str]:
    yield from _DECLARED.split("\n")
    yield from (f"list<{each}>.isSorted() bool" for each in _COMPARABLE)
    yield from (f"list<{each}>.{name}() {each}" for name in ("min", "max") for each in _COMPARABLE)
    yield from (f"list<{each}>.sum() {each}" for each in _SUMMABLE)
    yield from (f"format.{name}() Format" for name in named_formats.FORMATS)


def _overload(found: re.Match[str]) -> Any:
    takes = _types(found["takes"])
    made = {"id": found[0], "args": takes, "return": _types(found["gives"])[0]}
    return {**made, "target": _types(found["target"])[0]} if found["target"] else made


def _types(text: str) -> list[Any]:
    """Of a list of types, each of which may have parameters."""
    open_lists: list[list[Any]] = [[]]
    for part in _PART.findall(text):
        match part:
            case "<":
                open_lists.append(open_lists[-1][-1].setdefault("params", []))
            case ">":
                open_lists.pop()
            case ",":
                continue
            case "A":
                open_lists[-1].append({"type_name": "A", "is_type_param": True})
            case _:
                open_lists[-1].append({"type_name": _TYPES.get(part, part)})
    return open_lists[0]
