"""Seven hundred stories of writers who share an object: every answer is the one that a real kube-apiserver gave."""

from collections.abc import Sequence
from itertools import islice

import pytest
from tests.unit.cluster.apiserver import patch_cases
from tests.unit.cluster.apiserver.api import Api, serving
from tests.unit.cluster.apiserver.patch_cases import Case, Send, Step

from trainmaster.api.meta import Object

BATCH = 50
CASES = list(patch_cases.cases())


def sender(api: Api) -> Send:
    async def send(step: Step) -> tuple[int, Object]:
        answer = await api.send(step.method, step.path, step.body, query=step.query, media=step.media)
        return answer.code, answer.json

    return send


@pytest.mark.parametrize("cases", [
    pytest.param(CASES[start:start + BATCH], id=f"{start} to {start + BATCH - 1}")
    for start in range(0, len(CASES), BATCH)])
async def test_the_answers_are_those_of_the_real_server(cases: Sequence[Case]) -> None:
    expected = patch_cases.recorded()
    async with serving() as api:
        send = sender(api)
        await patch_cases.prepare(send)
        found = {case.number: await patch_cases.told(case, send) for case in cases}

    assert {case.number: expected[case.number] for case in cases} == found


def test_the_cases_are_many_and_meet_what_they_are_about() -> None:
    answers = patch_cases.recorded()
    codes = [step[0] for answer in answers.values() for step in answer["steps"]]
    media = [step.media for case in CASES for step in case.steps]

    assert len(answers) >= 500
    assert codes.count(409) > 200, "conflicts between appliers"
    assert media.count(patch_cases.STRATEGIC) > 200
    assert media.count(patch_cases.APPLY) > 1000
    assert {case.number: case.digest for case in CASES} == {number: answers[number]["digest"] for number in answers}, (
        "the cases were changed: record the answers again")
    assert [case.digest for case in islice(patch_cases.cases(), 3)] == [case.digest for case in CASES[:3]]
