"""Who is asking."""

import pytest

from trainmaster.cluster.apiserver.auth import Authenticator, Identity

ADMIN, NODE = Identity("admin"), Identity("node")
TOKENS = Authenticator({"secret": ADMIN, "other": NODE, "": ADMIN})


@pytest.mark.parametrize(("header", "expected"), [
    ("Bearer secret", ADMIN), ("bearer secret", ADMIN), ("Bearer  secret ", ADMIN), ("Bearer other", NODE),
    ("", None), ("Bearer", None), ("Bearer ", None), ("Bearer secre", None), ("Bearer secrets", None),
    ("Basic secret", None), ("secret", None), ("Bearer sécret", None), ("Bearer \udcff", None),
])
def test_tokens(header: str, expected: Identity | None) -> None:
    assert expected == TOKENS.identify(header)
