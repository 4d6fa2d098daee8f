"""What rules in CEL may cost is known before they run, to the unit as on a real server; too much is refused."""

import pytest
from tests.unit.cluster.apiserver.api import DEFINITIONS, Api
from tests.unit.cluster.apiserver.cost_cases import COSTS, HERE, definition, often, refusal

from trainmaster.cluster.apiserver.definition_rules import rules


@pytest.mark.parametrize(("where", "rule", "cost"), [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in COSTS])
async def test_a_rule_that_may_cost_too_much_is_refused(api: Api, where: str, rule: str, cost: int) -> None:
    most = often(cost)
    answer = await api.post(DEFINITIONS, definition(where, rule, most), query="dryRun=All")

    assert (422, refusal(where, cost, most)) == (answer.code, answer.message)


async def test_a_rule_that_costs_just_enough_is_taken(api: Api) -> None:
    answer = await api.post(DEFINITIONS, definition(HERE, "self.min <= self.max", often(5) // 2))

    assert 201 == answer.code


def test_what_was_taken_once_may_be_written_again() -> None:
    dear = definition(HERE, "self.objs.all(p, self.objs.exists(q, q.name == p.name))", None)
    cheap = definition(HERE, "self.min <= self.max", 10)

    assert [3, 3, 0] == [sum(each.reason == "FieldValueForbidden" for each in rules(dear, old))
                         for old in (None, cheap, dear)]
