"""Who is asking: what an identity is, and the tokens that were given out when the cluster was made."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

ANONYMOUS_GROUP = "system:unauthenticated"
AUTHENTICATED_GROUP = "system:authenticated"
ACCOUNTS_GROUP, ACCOUNT_PREFIX = "system:serviceaccounts", "system:serviceaccount:"
# May do everything, whatever roles and bindings say: otherwise a mistake in them could lock everybody out.
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and the groups it is in; what else is known of it stands in `extra`."""

    user: str
    groups: tuple[str, ...] = (AUTHENTICATED_GROUP,)
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def account(namespace: str, name: str, uid: str = "", extra: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Identity:
    """The identity of a service account."""
    groups = (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{namespace}", AUTHENTICATED_GROUP)
    return Identity(f"{ACCOUNT_PREFIX}{namespace}:{name}", groups, uid, extra)


ANONYMOUS = Identity("system:anonymous", (ANONYMOUS_GROUP,))


def authenticated(who: Identity) -> Identity:
    """The identity with the group of all who have proven who they are."""
    if AUTHENTICATED_GROUP in who.groups or ANONYMOUS_GROUP in who.groups:
        return who
    return replace(who, groups=(*who.groups, AUTHENTICATED_GROUP))


def certified(certificate: Mapping[str, Any]) -> Identity | None:
    """Whom a verified client certificate is of: the common name is the user, the organizations are the groups."""
    found: dict[str, list[str]] = {}
    for pairs in certificate.get("subject", ()):
        for key, value in pairs:
            found.setdefault(key, []).append(value)
    users = found.get("commonName") or [""]
    return authenticated(Identity(users[-1], tuple(found.get("organizationName", ())))) if users[-1] else None


class Authenticator:
    """Knows the tokens. A lookup takes the same time whether a token is nearly right or not at all."""

    def __init__(self, tokens: Mapping[str, Identity]) -> None:
        self._tokens = [(token.encode(), authenticated(who)) for token, who in tokens.items() if token]

    def identify(self, authorization: str) -> Identity | None:
        """The identity for an `Authorization` header, or None."""
        scheme, _, given = authorization.partition(" ")
        presented = given.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() != "bearer" or not presented:
            return None
        found = None
        # Every token is compared, also after a hit: the time says nothing about which one matched.
        for token, who in self._tokens:
            if hmac.compare_digest(token, presented):
                found = who
        return found
