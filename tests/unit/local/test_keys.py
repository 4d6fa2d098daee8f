"""Keys are made once, for their owner only, and hold."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainmaster.local import keys

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_keys_are_made_once(tmp_path: Path) -> None:
    assert keys.ensure(tmp_path, NOON) == keys.ensure(tmp_path, NOON)


def test_nobody_else_may_read_them(tmp_path: Path) -> None:
    keys.ensure(tmp_path, NOON)

    assert {0o600} == {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}


def test_half_made_keys_are_made_anew(tmp_path: Path) -> None:
    keys.ensure(tmp_path, NOON)
    (tmp_path / "tokens.json").unlink()
    (tmp_path / "server.key").unlink()

    assert isinstance(keys.ensure(tmp_path, NOON).server_context(), ssl.SSLContext)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
def test_the_server_is_trusted_under_every_name_it_is_called_by(name: str, tmp_path: Path) -> None:
    """A handshake in memory: the certificate, the authority and the name must fit together."""
    made = keys.ensure(tmp_path, datetime.now(UTC))
    trusting = ssl.create_default_context(cadata=made.authority.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    server = made.server_context().wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue

    assert client.getpeercert()


def test_a_further_user_gets_a_token_and_the_others_keep_theirs(tmp_path: Path) -> None:
    before = keys.ensure(tmp_path, NOON).tokens
    after = keys.ensure(tmp_path, NOON, ("admin", "node", "node-2")).tokens

    assert before == {user: after[user] for user in before}
    assert 3 == len(set(after.values()))
    assert after == keys.ensure(tmp_path, NOON).tokens
