"""Who gets answers in lines."""

import pytest

from trainmaster.cluster.apiserver import layout
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.kube.transport import Response

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(("agent", "query", "expected"), [
    pytest.param("curl/8", [], True, id="curl"),
    pytest.param("Wget/1", [], True, id="wget"),
    pytest.param("Mozilla/5.0 (X11)", [], True, id="a browser"),
    pytest.param("kubectl/v1", [], False, id="kubectl"),
    pytest.param("", [], False, id="nobody"),
    pytest.param("kubectl/v1", [("pretty", "true")], True, id="kubectl, when it asks"),
    pytest.param("curl/8", [("pretty", "false")], False, id="not curl, when it does not want to"),
])
def test_who(agent: str, query: list[tuple[str, str]], expected: bool) -> None:
    assert expected == layout.in_lines({"user-agent": agent}, Query(query))


@pytest.mark.parametrize(("headers", "body", "expected"), [
    pytest.param(JSON, b'{"a":{"b":[1]}}\n', b'{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}', id="JSON"),
    pytest.param({"Content-Type": "text/plain"}, b"{}", b"{}", id="not what is something else"),
    pytest.param({}, b"", b"", id="nothing"),
])
def test_how(headers: dict[str, str], body: bytes, expected: bytes) -> None:
    assert expected == layout.laid_out(Response(200, headers, body)).body
