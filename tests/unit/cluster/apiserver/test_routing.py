"""Paths, verbs and queries."""

import pytest

from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.routing import Elsewhere, Place, Query, place, verb


@pytest.mark.parametrize(("path", "expected"), [
    pytest.param("/api/v1/pods", Place("", "v1", "pods"), id="all pods"),
    pytest.param("/api/v1/namespaces/ns/pods", Place("", "v1", "pods", "ns"), id="pods of a namespace"),
    pytest.param("/api/v1/namespaces/ns/pods/", Place("", "v1", "pods", "ns"), id="with a slash at the end"),
    pytest.param("/api/v1/namespaces/ns/pods/p", Place("", "v1", "pods", "ns", "p"), id="one pod"),
    pytest.param("/api/v1/namespaces/ns/pods/p/log", Place("", "v1", "pods", "ns", "p", "log"), id="a part of it"),
    pytest.param("/api/v1/namespaces/ns", Place("", "v1", "namespaces", "", "ns"), id="a namespace"),
    pytest.param("/api/v1/namespaces/ns/status", Place("", "v1", "namespaces", "", "ns", "status"), id="its status"),
    pytest.param("/api/v1/namespaces/ns/finalize", Place("", "v1", "namespaces", "", "ns", "finalize"), id="its end"),
    pytest.param("/api/v1/namespaces/status/pods", Place("", "v1", "pods", "status"), id="a namespace called status"),
    pytest.param("/apis/g.org/v1/things/x", Place("g.org", "v1", "things", "", "x"), id="a kind without namespaces"),
    pytest.param("/api/v1/namespaces/ns/roles/system%3Aadmin", Place("", "v1", "roles", "ns", "system:admin"),
                 id="an encoded name"),
    pytest.param("/api/v1/namespaces/ns/pods/p:80/proxy/a//b%2Fc/",
                 Place("", "v1", "pods", "ns", "p:80", "proxy", "/a//b%2Fc/"), id="what is passed on stays as it is"),
    pytest.param("/api/v1/nodes/n/proxy", Place("", "v1", "nodes", "", "n", "proxy"), id="its root"),
    pytest.param("/", Elsewhere(()), id="the root"),
    pytest.param("/apis/", Elsewhere(("apis",)), id="discovery with a slash"),
    pytest.param("/apis/g.org/v1", Elsewhere(("apis", "g.org", "v1")), id="a group and version"),
    pytest.param("/healthz", Elsewhere(("healthz",)), id="health"),
])
def test_places(path: str, expected: Place | Elsewhere) -> None:
    assert expected == place(path)


@pytest.mark.parametrize(("path", "code"), [
    pytest.param("/api/v1/namespaces//pods", 404, id="an empty namespace"),
    pytest.param("/api/v1/namespaces/ns/pods/..%2F..%2Fsecrets", 404, id="a name with slashes"),
    pytest.param("/api/v1/namespaces/ns/pods/..", 404, id="a name that climbs"),
    pytest.param("/api/v1/namespaces/ns/pods/p%00", 404, id="a name with a zero byte"),
    pytest.param("/api/v1/namespaces/ns/pods/p/log/a/b", 404, id="too many parts"),
    pytest.param("/api/v1/namespaces/ns/pods/..%2Fp/proxy/a", 404, id="a proxy to a name that climbs"),
    pytest.param("/" + "x" * 5000, 414, id="too long"),
])
def test_paths_that_lead_nowhere(path: str, code: int) -> None:
    with pytest.raises(Failure) as raised:
        place(path)

    assert code == raised.value.code


@pytest.mark.parametrize(("method", "path", "watch", "expected"), [
    ("GET", "/api/v1/pods", False, "list"), ("GET", "/api/v1/pods", True, "watch"),
    ("GET", "/api/v1/nodes/n", False, "get"), ("GET", "/api/v1/nodes/n", True, "get"),
    ("POST", "/api/v1/nodes", False, "create"), ("PUT", "/api/v1/nodes/n", False, "update"),
    ("PATCH", "/api/v1/nodes/n", False, "patch"), ("DELETE", "/api/v1/nodes/n", False, "delete"),
    ("DELETE", "/api/v1/nodes", False, "deletecollection"), ("PUT", "/api/v1/nodes", False, 405),
    ("OPTIONS", "/api/v1/nodes", False, 405), ("TRACE", "/api/v1/nodes/n", False, 405),
])
def test_verbs(method: str, path: str, watch: bool, expected: str | int) -> None:
    where = place(path)
    assert isinstance(where, Place)
    try:
        found: str | int = verb(method, where, watch=watch)
    except Failure as failure:
        found = failure.code

    assert expected == found


@pytest.mark.parametrize(("text", "expected"), [
    ("true", True), ("True", True), ("1", True), ("false", False), ("0", False), ("", True), ("maybe", True),
])
def test_flags(text: str, expected: bool) -> None:
    """As Kubernetes reads them: what is there and does not say no means yes."""
    assert expected is Query([("x", text)]).flag("x")
    assert Query([("y", text)]).flag("x") is False


@pytest.mark.parametrize(("text", "expected"), [
    ("", None), ("0", 0), ("500", 500), ("-1", -1), ("1e3", "refused"), ("٣", "refused"), ("9" * 30, "refused"),
])
def test_numbers(text: str, expected: int | str | None) -> None:
    try:
        found: int | str | None = Query([("x", text)]).number("x")
    except Failure:
        found = "refused"

    assert expected == found
