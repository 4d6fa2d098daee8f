"""Roles that gather their rules from others."""

import pytest

from trainmaster.api.meta import Object
from trainmaster.api.roles import gathered

READ, WRITE, LIST = ({"verbs": [verb], "resources": ["tfjobs"]} for verb in ("get", "update", "list"))


def role(name: str, *rules: Object, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}


def gathering(*selectors: Object, name: str = "edit", **labels: str) -> Object:
    return {**role(name, LIST, **labels), "aggregationRule": {"clusterRoleSelectors": list(selectors)}}


TO_EDIT = {"matchLabels": {"to": "edit"}}


@pytest.mark.parametrize(("expected", "who", "others"), [
    pytest.param([], role("edit", READ), [role("a", WRITE, to="edit")], id="one that gathers nothing"),
    pytest.param([READ], gathering(TO_EDIT), [role("a", READ, to="edit"), role("b", WRITE, to="view")],
                 id="from those that are selected, and nothing is kept of its own"),
    pytest.param([READ, WRITE], gathering(TO_EDIT), [role("b", WRITE, to="edit"), role("a", READ, to="edit")],
                 id="in the order of their names, so that the same roles always give the same rules"),
    pytest.param([READ], gathering(TO_EDIT), [role("a", READ, to="edit"), role("b", READ, to="edit")],
                 id="a rule that two have is there once"),
    pytest.param([], gathering(TO_EDIT, to="edit"), [gathering(TO_EDIT, to="edit")], id="not from itself"),
    pytest.param([WRITE, READ], gathering({"matchLabels": {"also": "yes"}}, TO_EDIT),
                 [role("a", READ, to="edit"), role("b", WRITE, also="yes")], id="one selector after the other"),
    pytest.param([], gathering(TO_EDIT), [{"metadata": {"name": "a", "labels": {"to": "edit"}}, "rules": None}],
                 id="from one without rules, none"),
])
def test_what_is_gathered(expected: list[Object], who: Object, others: list[Object]) -> None:
    assert expected == gathered(who, others)
