"""Groups of pods: the reason that a scheduler leaves on one that waits."""

import pytest

from trainmaster.api.groups import WHY, why_waiting
from trainmaster.api.meta import Object


def saying(text: object) -> Object:
    return {"metadata": {"annotations": {WHY: text}}}


@pytest.mark.parametrize(("group", "expected"), [
    pytest.param(saying('{"why":"2 of 3 fit","code":"NoNodeFits"}'), "2 of 3 fit", id="the sentence among the figures"),
    pytest.param({}, "", id="a group that nobody knows"),
    pytest.param({"metadata": {}}, "", id="it does not wait"),
    pytest.param({"metadata": {"annotations": None}}, "", id="annotations that are null"),
    pytest.param(saying("for room"), "", id="words that are no JSON"),
    pytest.param(saying('["for room"]'), "", id="a list"),
    pytest.param(saying('{"code":"NoNodeFits"}'), "", id="figures without a sentence"),
    pytest.param(saying(3), "", id="a number, which no server lets through"),
])
def test_why_a_group_waits(group: Object, expected: str) -> None:
    assert expected == why_waiting(group)
