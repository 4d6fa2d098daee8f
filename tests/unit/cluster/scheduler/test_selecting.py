"""Label selectors and node selector terms: what they mean."""

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.selecting import label_selector, node_term

LABELS = {"zone": "a", "cores": "8"}


def term(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def node(*labels: Object, fields: tuple[Object, ...] = ()) -> Object:
    return {"matchExpressions": list(labels), "matchFields": list(fields)}


@pytest.mark.parametrize(("spec", "expected"), [
    pytest.param({}, True, id="an empty one means everything"),
    pytest.param({"matchLabels": {"zone": "a"}}, True, id="a label that is there"),
    pytest.param({"matchLabels": {"zone": "a"}, "matchExpressions": [term("zone", "In", "b")]}, False,
                 id="all must be met"),
    pytest.param({"matchExpressions": [term("rack", "NotIn", "1")]}, True, id="what is not there is not in a list"),
    pytest.param({"matchExpressions": [term("rack", "In", "")]}, False, id="nor in any"),
    pytest.param({"matchExpressions": [term("rack", "Exists")]}, False, id="exists"),
    pytest.param({"matchExpressions": [term("rack", "DoesNotExist")]}, True, id="does not exist"),
    pytest.param({"matchExpressions": [term("zone", "Near", "a")]}, False, id="an operator that nobody knows"),
])
def test_what_a_label_selector_means(spec: Object, expected: bool) -> None:
    selector = label_selector(spec)

    assert selector is not None
    assert expected is selector.matches(LABELS)


def test_no_selector_is_not_an_empty_one() -> None:
    assert label_selector(None) is None


@pytest.mark.parametrize(("spec", "expected"), [
    pytest.param({}, False, id="an empty term selects no node"),
    pytest.param(node(term("zone", "In", "a", "b")), True, id="one of several values"),
    pytest.param(node(term("cores", "Gt", "7")), True, id="more than"),
    pytest.param(node(term("cores", "Gt", "8")), False, id="more than as many"),
    pytest.param(node(term("cores", "Lt", "16")), True, id="less than, by number and not by letter"),
    pytest.param(node(term("zone", "Gt", "7")), False, id="a word is not more than a number"),
    pytest.param(node(term("rack", "Lt", "7")), False, id="nothing is not less than a number"),
    pytest.param(node(term("cores", "Gt")), False, id="nothing to compare with"),
    pytest.param(node(fields=(term("metadata.name", "In", "n"),)), True, id="the node by its name"),
    pytest.param(node(term("zone", "In", "a"), fields=(term("metadata.name", "In", "m"),)), False,
                 id="labels and fields must both be met"),
    pytest.param(node(fields=(term("metadata.uid", "Exists"),)), False, id="there is no other field than the name"),
])
def test_which_nodes_a_term_selects(spec: Object, expected: bool) -> None:
    assert expected is node_term(spec).matches("n", LABELS)
