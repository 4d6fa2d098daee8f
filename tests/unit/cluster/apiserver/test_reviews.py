"""What a webhook is told of a request."""

from typing import Any

import pytest

from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver import reviews
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.reviews import Asked
from trainmaster.cluster.apiserver.routing import Query

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def told(operation: str = "CREATE", query: tuple[tuple[str, str], ...] = (), who: Identity | None = None,
         **more: Any) -> Object:
    asked = Asked(operation, MAPS, "", "default", "", who or Identity("u"), Query(query), **more)
    return reviews.request("id", asked, MAPS, {"metadata": {"name": "m"}}, None)


@pytest.mark.parametrize(("who", "expected"), [
    pytest.param(Identity("u", ("g",)), {"username": "u", "groups": ["g"]}, id="name and groups"),
    pytest.param(Identity("u", ("g",), "7", (("k", ("v", "w")),)),
                 {"username": "u", "uid": "7", "groups": ["g"], "extra": {"k": ["v", "w"]}}, id="all that is known"),
])
def test_who_asks(who: Identity, expected: Object) -> None:
    assert expected == told(who=who)["userInfo"]


@pytest.mark.parametrize(("operation", "query", "given", "expected"), [
    pytest.param("CREATE", (), {}, {"kind": "CreateOptions"}, id="nothing in particular"),
    pytest.param("UPDATE", (("fieldManager", "me"), ("dryRun", "All")), {},
                 {"kind": "UpdateOptions", "dryRun": ["All"], "fieldManager": "me"}, id="what the query says"),
    pytest.param("DELETE", (("gracePeriodSeconds", "0"),), {}, {"kind": "DeleteOptions", "gracePeriodSeconds": 0},
                 id="of a deletion in the query"),
    pytest.param("DELETE", (("gracePeriodSeconds", "0"),), {"gracePeriodSeconds": 5, "dryRun": ["All"]},
                 {"kind": "DeleteOptions", "gracePeriodSeconds": 5, "dryRun": ["All"]}, id="the body wins"),
])
def test_how_it_is_to_be_done(operation: str, query: tuple[tuple[str, str], ...], given: Object,
                              expected: Object) -> None:
    found = told(operation, query, given=given)

    assert {"apiVersion": "meta.k8s.io/v1", **expected} == found["options"]
    assert ("dryRun" in expected) is found["dryRun"]


def test_a_stream_has_no_options() -> None:
    assert None is told("CONNECT")["options"]
