"""Who is asking. Bearer tokens only, for now; what each identity may do is decided elsewhere (today: everything)."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

ANONYMOUS_GROUP = "system:unauthenticated"
AUTHENTICATED_GROUP = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and the groups it is in."""

    user: str
    groups: tuple[str, ...] = (AUTHENTICATED_GROUP,)


class Authenticator:
    """Knows the tokens. A lookup takes the same time whether a token is nearly right or not at all."""

    def __init__(self, tokens: Mapping[str, Identity]) -> None:
        self._tokens = [(token.encode(), who) for token, who in tokens.items() if token]

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
