"""Acting as somebody else: whoever may do so names them in headers, and is them for one request.

Every part of the other identity needs a right of its own: the user or account, each group, each extra value, the UID.
"""

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.auth import (
    ACCOUNT_PREFIX,
    ANONYMOUS,
    ANONYMOUS_GROUP,
    AUTHENTICATED_GROUP,
    Identity,
    account,
)
from trainmaster.cluster.apiserver.failures import quoted
from trainmaster.cluster.apiserver.rbac import Attributes

PREFIX = "impersonate-"
_USER, _GROUP, _UID, _EXTRA = f"{PREFIX}user", f"{PREFIX}group", f"{PREFIX}uid", f"{PREFIX}extra-"
# A header that came several times is handed over as one value with these between; no header can contain one.
SEPARATOR = "\n"


def acting(who: Identity, headers: Mapping[str, str], check: Callable[[Identity, Attributes], None]) -> Identity:
    """Whom a request is from: `who` sent it, and may say to be another. `check` raises Failure 403."""
    for name in headers:      # nearly always there is none, and that must cost next to nothing
        if name.startswith(PREFIX):
            break
    else:
        return who
    given = {name: value for name, value in headers.items() if name.startswith(PREFIX)}
    wanted = _wanted(given)
    if wanted is None:
        return who
    for right in _rights(wanted):
        check(who, right)
    return _completed(wanted)


def _wanted(given: Mapping[str, str]) -> Identity | None:
    groups = tuple(value for value in given.get(_GROUP, "").split(SEPARATOR) if value)
    extra = tuple(sorted(
        (unquote(name.removeprefix(_EXTRA)), tuple(value.split(SEPARATOR)))
        for name, value in given.items() if name.startswith(_EXTRA)
    ))
    wanted = Identity(given.get(_USER, ""), groups, given.get(_UID, ""), extra)
    if not wanted.user:
        if not (groups or extra or wanted.uid):
            return None
        raise failures.bad_request(f"requested {_as_go_prints(wanted)} without impersonating a user name")
    return wanted


def _rights(wanted: Identity) -> Iterator[Attributes]:
    if (place := _account(wanted.user)) is not None:
        yield Attributes("impersonate", "", "serviceaccounts", "", *place)
    else:
        yield Attributes("impersonate", "", "users", name=wanted.user)
    for group in wanted.groups:
        yield Attributes("impersonate", "", "groups", name=group)
    for key, values in wanted.extra:
        for value in values:
            yield Attributes("impersonate", "authentication.k8s.io", "userextras", key, name=value)
    if wanted.uid:
        yield Attributes("impersonate", "authentication.k8s.io", "uids", name=wanted.uid)


def _completed(wanted: Identity) -> Identity:
    groups = wanted.groups
    if not groups and (place := _account(wanted.user)) is not None:
        groups = account(*place).groups
    if wanted.user == ANONYMOUS.user:
        groups = groups if ANONYMOUS_GROUP in groups else (*groups, ANONYMOUS_GROUP)
    elif AUTHENTICATED_GROUP not in groups and ANONYMOUS_GROUP not in groups:
        groups = (*groups, AUTHENTICATED_GROUP)
    return Identity(wanted.user, groups, wanted.uid, wanted.extra)


def _account(user: str) -> tuple[str, str] | None:
    """The namespace and name of a service account, or None."""
    namespace, colon, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    return (namespace, name) if user.startswith(ACCOUNT_PREFIX) and colon and name and ":" not in name else None


def _as_go_prints(who: Identity) -> str:
    groups = "{" + ", ".join(map(quoted, who.groups)) + "}" if who.groups else "(nil)"
    pairs = (f'{quoted(key)}:[]string{{{", ".join(map(quoted, values))}}}' for key, values in who.extra)
    extra = "{" + ", ".join(pairs) + "}" if who.extra else "(nil)"
    return (f'&user.DefaultInfo{{Name:"", UID:{quoted(who.uid)}, Groups:[]string{groups}, '
            f"Extra:map[string][]string{extra}}}")
