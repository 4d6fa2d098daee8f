"""Reading many objects: selectors, pages over one snapshot, and what a resourceVersion in a list means.

What a list is made of is taken from the store at one moment; a selector is then asked about it a few objects at a time,
so that others have their turns.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from trainmaster.cluster.apiserver import causes, failures
from trainmaster.cluster.apiserver.forms import Listing
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.routing import Query, Unnumbered
from trainmaster.cluster.apiserver.selectors import Selector
from trainmaster.cluster.store import Ahead, Compacted, Record, Store

# Objects that a selector is asked about before others have a turn.
STEP = 50
LONGEST_TOKEN = 4096
_VERSION = "meta.k8s.io/v1"
MATCH, NOT_OLDER = "resourceVersionMatch", "NotOlderThan"
NOT_WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"
_SIGNS = re.compile("[-_A-Za-z0-9]*")

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list.")


@dataclass(frozen=True, slots=True)
class Token:
    """Where the next page begins. At revision -1 it goes on in whatever is there now."""

    revision: int
    after: str

    def __str__(self) -> str:
        told = orjson.dumps({"v": _VERSION, "rv": self.revision, "start": self.after})
        return base64.urlsafe_b64encode(told).decode().rstrip("=")


def token(text: str) -> Token:
    """Raises Failure 400."""
    if len(text) > LONGEST_TOKEN:
        raise _unread("it is too long")
    if (at := _SIGNS.match(text).end()) < len(text) or len(text) % 4 == 1:  # type: ignore[union-attr]  # fits nothing
        raise _unread(f"illegal base64 data at input byte {at if at < len(text) else len(text) - 1}")
    try:
        told = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error) as error:
        raise _unread("unexpected end of JSON input") from error
    told = told if isinstance(told, dict) else {}
    if told.get("v") != _VERSION:
        raise _unread(f"server does not recognize this encoded version {str(told.get('v', ''))[:100]}")
    revision, after = told.get("rv"), told.get("start")
    if not isinstance(revision, int) or isinstance(revision, bool) or not revision:
        raise _unread(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not after or not isinstance(after, str):
        raise _unread(f"encoded start key empty (version {_VERSION})")
    return Token(revision, after)


def _unread(why: str) -> failures.Failure:
    return failures.bad_request(f"invalid continue token: continue key is not valid: {why}")


async def read(store: Store, kind: Kind, namespace: str, selector: Selector, query: Query) -> Listing:
    """One page. Raises Failure 400, 410, 422 or 504."""
    limit = max(0, query.number("limit") or 0)
    _check(query)
    going_on = token(query.text("continue")) if query.text("continue") else None
    at = _moment(store, query, going_on, limit)
    name, rest = selector.without_name()
    if name and not at and going_on is None and (namespace or not kind.resource.namespaced):
        record = store.get(kind.key(namespace, name))
        found = [record.value] if record is not None and rest.selects(record.value) else []
        return Listing(found, store.revision)
    prefix = kind.under(namespace)
    revision = at or store.revision
    try:
        return await _page(store, prefix, selector, limit, revision, at, prefix + going_on.after if going_on else "")
    except Compacted as error:
        if going_on is not None:
            raise failures.expired(_TOO_OLD, more=str(Token(-1, going_on.after))) from error
        raise failures.expired("The resourceVersion for the provided list is too old.") from error
    except Ahead as error:
        raise failures.ahead_of_time(at, store.revision) from error


async def _page(store: Store, prefix: str, selector: Selector, limit: int, revision: int, at: int,
                after: str) -> Listing:
    # One more than wanted says whether there is a next page. A selector may have to look at everything.
    there = store.scan(prefix, after=after, at=at, limit=0 if selector or not limit else limit + 1)
    left = None if selector or not limit else store.count(prefix, after=after, at=at) - limit
    found = await _selected(there, selector, limit) if selector else there
    if not limit or len(found) <= limit:
        return Listing([each.value for each in found], revision)
    kept = found[:limit]
    more = str(Token(revision, kept[-1].key.removeprefix(prefix)))
    return Listing([each.value for each in kept], revision, more, left)


async def _selected(there: Sequence[Record], selector: Selector, limit: int) -> list[Record]:
    """Those that the selector holds for; one more than the limit, if there are so many."""
    found: list[Record] = []
    for start in range(0, len(there), STEP):
        if start:
            await asyncio.sleep(0)
        found += [each for each in there[start:start + STEP] if selector.selects(each.value)]
        if limit and len(found) > limit:
            return found[:limit + 1]
    return found


def _moment(store: Store, query: Query, going_on: Token | None, limit: int) -> int:
    """The revision to read at; 0 is now."""
    match = query.text("resourceVersionMatch")
    try:
        revision = query.revision()
    except Unnumbered as error:
        raise failures.bad_request(f"invalid resource version: {error.message}") from error
    if going_on is not None:
        if revision:
            raise failures.bad_request("specifying resource version is not allowed when using continue")
        return max(0, going_on.revision)
    if revision > store.revision:
        raise failures.ahead_of_time(revision, store.revision)
    # Without a match, a page of a revision means exactly that revision, as it did before there were matches.
    return revision if match == "Exact" or (limit and not match) else 0


def _check(query: Query) -> None:
    """Raises Failure 422."""
    given, match, faults = query.text("resourceVersion"), query.text(MATCH), []
    if match and not given:
        faults.append(causes.forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and query.text("continue"):
        faults.append(causes.forbidden(MATCH, NOT_WITH_CONTINUE))
    if match not in {"", "Exact", NOT_OLDER}:
        faults.append(causes.unsupported(MATCH, match, ("Exact", NOT_OLDER, "")))
    if match == "Exact" and given == "0":
        faults.append(causes.forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if query.all("sendInitialEvents"):
        faults.append(causes.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if faults:
        raise refused(*faults)


def refused(*faults: causes.Cause) -> failures.Failure:
    return failures.invalid_kind("ListOptions", "meta.k8s.io", "", faults)
