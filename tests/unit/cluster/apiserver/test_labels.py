"""Label selectors of objects: how they read."""

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import labels


def term(operator: str, *values: str) -> Object:
    found: Object = {"key": "k", "operator": operator}
    return {**found, "values": list(values)} if values else found


@pytest.mark.parametrize(("selector", "expected"), [
    pytest.param({"b": "2", "a": "1"}, "a=1,b=2", id="a plain map"),
    pytest.param({"matchLabels": {"b": "2"}, "matchExpressions": [term("In", "y", "x")]}, "b=2,k in (x,y)",
                 id="both parts"),
    pytest.param({"matchExpressions": [term("Exists")]}, "k", id="exists"),
    pytest.param({"matchExpressions": [term("DoesNotExist")]}, "!k", id="does not exist"),
    pytest.param({"matchExpressions": [term("NotIn", "a")]}, "k notin (a)", id="not in"),
    pytest.param(None, "", id="none"),
    pytest.param({}, "", id="an empty one"),
])
def test_as_text(selector: Object | None, expected: str) -> None:
    assert expected == labels.text(selector)
