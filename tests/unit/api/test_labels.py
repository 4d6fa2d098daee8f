"""Label selectors of objects: what they select."""

import pytest

from trainmaster.api.labels import holds
from trainmaster.api.meta import Object


def term(operator: str, *values: str) -> Object:
    found: Object = {"key": "k", "operator": operator}
    return {**found, "values": list(values)} if values else found


@pytest.mark.parametrize(("selector", "there", "expected"), [
    pytest.param({}, {}, True, id="an empty one selects everything"),
    pytest.param({"matchLabels": {"k": "v"}}, {"k": "v", "x": "y"}, True, id="a label that is there"),
    pytest.param({"matchLabels": {"k": "v"}}, {"k": "w"}, False, id="a label with another value"),
    pytest.param({"matchExpressions": [term("In", "a", "b")]}, {"k": "b"}, True, id="in"),
    pytest.param({"matchExpressions": [term("In", "a")]}, {}, False, id="in, and not there"),
    pytest.param({"matchExpressions": [term("NotIn", "a")]}, {}, True, id="not in, and not there"),
    pytest.param({"matchExpressions": [term("Exists")]}, {"k": ""}, True, id="exists"),
    pytest.param({"matchExpressions": [term("DoesNotExist")]}, {"k": ""}, False, id="does not exist"),
    pytest.param({"matchLabels": {"x": "y"}, "matchExpressions": [term("Exists")]}, {"k": ""}, False,
                 id="all must hold"),
])
def test_what_is_selected(selector: Object, there: dict[str, str], expected: bool) -> None:
    assert expected is holds(selector, there)
