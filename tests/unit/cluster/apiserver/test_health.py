"""Whether the server is well, and by what that was found."""

import pytest

from trainmaster.cluster.apiserver import health
from trainmaster.cluster.apiserver.routing import Query

PARTS = "[+]ping ok\n[+]log ok\n[+]etcd ok\n"


@pytest.mark.parametrize(("name", "check", "query", "said"), [
    pytest.param("healthz", "", [], "ok", id="a word"),
    pytest.param("livez", "ping", [], "ok", id="one check"),
    pytest.param("livez", "etcd", [("verbose", "")], "ok", id="one check is short in any case"),
    pytest.param("livez", "nosuch", [], None, id="no such check"),
    pytest.param("livez", "", [("verbose", "")], f"{PARTS}livez check passed\n", id="all of it"),
    pytest.param("livez", "", [("verbose", ""), ("exclude", "log")],
                 "[+]ping ok\n[+]log excluded: ok\n[+]etcd ok\nlivez check passed\n", id="all but one"),
    pytest.param("readyz", "", [("verbose", "1")],
                 f"{PARTS}[+]informer-sync ok\n[+]shutdown ok\nreadyz check passed\n", id="whether it is ready"),
])
def test_what_is_said(name: str, check: str, query: list[tuple[str, str]], said: str | None) -> None:
    found = health.answer(name, check, Query(query))

    assert said == (None if found is None else found.body.decode())
