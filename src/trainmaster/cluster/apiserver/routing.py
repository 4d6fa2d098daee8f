"""A method and a path become a verb on a place. Pure; what exists at that place is for the catalog to say."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from trainmaster.cluster.apiserver import failures

LONGEST_PATH = 4096
PROXY = "proxy"
LONGEST_QUERY = 32 * 1024

_ON_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_OBJECT = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_PROXIES = {"HEAD": "get", "OPTIONS": ""}      # the second is none, and so only for those who may do everything
# The only two parts of a namespace; everything else below one is a kind that lives in it.
_PROXY = re.compile(r"/api/v1/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<plural>pods|services|nodes)/(?P<name>[^/]+)"
                    r"/proxy(?P<rest>/.*)?")
_OF_NAMESPACES = frozenset({"status", "finalize"})
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request points below /api or /apis."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""               # of what is passed on: the path over there, as it came
    watch: bool = False          # asked for by the path, as it was done before there were parameters


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A path that names no resource: discovery, health, OpenAPI. Its parts, without empty ones at the end."""

    parts: tuple[str, ...]


def place(path: str) -> Place | Elsewhere:
    """Raises Failure 404 for what can never be a place: empty or absurd parts."""
    if len(path) > LONGEST_PATH:
        raise failures.Failure(414, "", f"the path is longer than {LONGEST_PATH} bytes")
    if "/proxy" in path and (found := _PROXY.fullmatch(path)) is not None:
        namespace, plural, name, rest = (unquote(found["namespace"] or ""), found["plural"], unquote(found["name"]),
                                         found["rest"] or "")
        if not any("/" in part or part in {".", ".."} or "\x00" in part for part in (namespace, name)):
            return Place("", "v1", plural, namespace, name, PROXY, rest)
    parts = tuple(path.strip("/").split("/"))
    if "%" in path:
        parts = tuple(map(unquote, parts))
    if parts[0] == "api" and len(parts) > 2:
        return _below(parts, "", parts[1], parts[2:])
    if parts[0] == "apis" and len(parts) > 3:
        return _below(parts, parts[1], parts[2], parts[3:])
    return Elsewhere(tuple(part for part in parts if part))


def verb(method: str, where: Place, *, watch: bool) -> str:
    """What is asked for. Raises Failure 405.

    `watch`: the query says so, which is listened to only about a collection; one object is watched by its old path, or
    by a selector of its name.
    """
    if where.subresource == PROXY and method in _OF_PROXIES:
        return _OF_PROXIES[method]
    if where.watch and method != "GET":
        raise failures.method_not_allowed()
    found = (_ON_OBJECT if where.name else _ON_COLLECTION).get(method)
    if found is None:
        raise failures.method_not_allowed()
    if (found == "list" and watch) or (where.watch and not where.subresource):
        return "watch"
    return found


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a request: the first value of a name counts."""

    pairs: Sequence[tuple[str, str]]

    def text(self, name: str) -> str:
        return next((value for key, value in self.pairs if key == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def flag(self, name: str) -> bool:
        """What is there means yes, unless it says `false` or `0`: that is how Kubernetes reads it."""
        given = next((value for key, value in self.pairs if key == name), "0")
        return given != "0" and given.lower() != "false"

    def number(self, name: str) -> int | None:
        """A whole number, or None if it is not given. Raises Failure 400."""
        given = self.text(name)
        if not given:
            return None
        if why := _unread(given, _NUMBER):
            raise failures.bad_request(f"strconv.ParseInt: {why}")
        return int(given)

    def revision(self) -> int:
        """That of the state that is asked about, or 0. Raises Unnumbered."""
        given = self.text("resourceVersion")
        if not given:
            return 0
        if why := _unread(given, _DIGITS):
            raise Unnumbered(f"resourceVersion: Invalid value: {failures.quoted(given)}: strconv.ParseUint: {why}")
        return int(given)


class Unnumbered(failures.Failure):
    """A resourceVersion that is none: 500, as Kubernetes has it, but for lists."""

    def __init__(self, why: str) -> None:
        super().__init__(500, "", why)


def _unread(given: str, pattern: re.Pattern[str]) -> str:
    """Why a number cannot be read, in the words of Go."""
    if pattern.fullmatch(given) is None:
        return f"parsing {failures.quoted(given[:100])}: invalid syntax"
    if len(given) > 20 or abs(int(given)) > _LARGEST:
        return f"parsing {failures.quoted(given[:100])}: value out of range"
    return ""


def _below(parts: tuple[str, ...], group: str, version: str, rest: tuple[str, ...]) -> Place:
    if any(not part or part in {".", ".."} or "/" in part or "\x00" in part for part in parts):
        raise failures.unknown_resource()
    if rest[0] == "watch" and len(rest) > 1:
        return replace(_below(parts, group, version, rest[1:]), watch=True)
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _OF_NAMESPACES):
        return _at(group, version, rest[1], rest[2:])
    return _at(group, version, "", rest)


def _at(group: str, version: str, namespace: str, rest: tuple[str, ...]) -> Place:
    if len(rest) > 3:
        raise failures.unknown_resource()
    plural, name, subresource = (*rest, "", "")[:3]
    return Place(group, version, plural, namespace, name, subresource)
