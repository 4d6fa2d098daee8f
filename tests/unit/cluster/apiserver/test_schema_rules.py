"""Rules in CEL hold for custom resources, in the words of a real server; what cannot be evaluated is told."""

from collections.abc import Sequence

import pytest
from tests.unit.cluster.apiserver.api import DEFINITIONS, Api
from tests.unit.cluster.apiserver.literal_cases import LITERALS
from tests.unit.cluster.apiserver.rule_cases import CASES, FIELDS, GROUP, WRITTEN, Case, refusal

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.rule_values import escaped
from trainmaster.cluster.apiserver.schema_rules import EXHAUSTED, Budget, broken, rules_of

SPEC: Object = {"type": "object", "properties": FIELDS}
RULES = f"/apis/{GROUP}/v1/namespaces/default/rules"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.when) for case in CASES])
async def test_a_rule_is_enforced_as_on_a_real_server(api: Api, case: Case) -> None:
    await api.made(DEFINITIONS, case.definition())
    answer = await api.post(RULES, case.made())
    if case.second is not None:
        answer = await api.patch(f"{RULES}/r", case.change())

    said = answer.message.partition("is invalid: ")[2] if answer.code >= 400 else ""
    assert (case.said if case.ours is None else case.ours) == said


def ruled(rule: str) -> Object:
    return Case("", "spec", [{"rule": rule}], {}).definition()


@pytest.mark.parametrize(("rule", "code", "told"), [
    pytest.param("self.min <=", 422, "compilation failed: ERROR: <input>:1:12: Syntax error", id="no expression"),
    pytest.param("self.min <= self.max", 201, "", id="a rule that is understood"),
])
async def test_what_whoever_writes_a_definition_is_told(api: Api, rule: str, code: int, told: str) -> None:
    answer = await api.post(DEFINITIONS, ruled(rule))

    assert code == answer.code
    assert told in (answer.message if code >= 400 else "".join(answer.warnings))
    assert bool(told) == bool(answer.warnings or code >= 400)


@pytest.mark.parametrize(("at", "rule", "said"), [pytest.param(*row, id=when) for when, *row in (*WRITTEN, *LITERALS)])
async def test_types_are_checked_when_a_rule_is_written(api: Api, at: str, rule: str, said: str) -> None:
    answer = await api.post(DEFINITIONS, Case("", at, [{"rule": rule}], {}).definition())

    assert (422 if said else 201) == answer.code
    if said:
        assert refusal(rule, said) == answer.json["details"]["causes"][0]["message"].partition("null}: ")[2]


async def test_a_message_is_text(api: Api) -> None:
    rule = {"rule": "self.min < 1", "messageExpression": "self.min"}
    answer = await api.post(DEFINITIONS, Case("", "spec", [rule], {}).definition())

    assert (422, True) == (answer.code, answer.message.endswith("messageExpression must evaluate to a string"))


def test_a_rule_that_takes_too_long_is_ended_and_refuses() -> None:
    """Nobody may write this one any more; it may be in a definition from before."""
    schema = {**SPEC, "x-kubernetes-validations": [{
        "rule": "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, a != b + c + d))))"}]}
    words = [str(number) for number in range(200)]
    [found] = broken(rules_of(schema), schema, {"list": words}, None, "spec", Budget())

    assert "actual cost limit exceeded" in found.message


@pytest.mark.parametrize(("at", "rule", "where"), [
    pytest.param("items", "self.port == oldSelf.port", "", id="items with a key are found again"),
    pytest.param("list", "self == oldSelf", "", id="a list is found again"),
    pytest.param("words", "self == oldSelf", ".properties[list]", id="items of a list without keys are not"),
])
async def test_old_values_are_asked_for_only_where_they_are_found(api: Api, at: str, rule: str, where: str) -> None:
    definition = Case("", at if at != "words" else "spec", [{"rule": rule}], {}).definition()
    if at == "words":
        spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["list"]["items"] = {"type": "string", "maxLength": 5,
                                               "x-kubernetes-validations": spec.pop("x-kubernetes-validations")}
    answer = await api.post(DEFINITIONS, definition)

    assert (422 if where else 201) == answer.code
    if where:
        assert answer.message.endswith(
            f"{where}.items.x-kubernetes-validations[0].rule: Invalid value: \"{rule}\": oldSelf cannot be used on the "
            f"uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec]{where}")


def test_all_rules_of_an_object_share_a_budget() -> None:
    ticks = iter(range(100))
    schema = Case("", "items", [{"rule": "self.port > 0"}], {}).definition()["spec"]["versions"][0]["schema"]
    ports = schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["ports"]["items"]
    budget = Budget(2.5, clock=lambda: float(next(ticks)))      # each look takes a second
    found = [list(broken(rules_of(ports), ports, {"port": -1}, None, f"p[{at}]", budget)) for at in range(5)]

    assert [1, 1, 2, 0, 0] == [len(each) for each in found]
    assert EXHAUSTED in str(found[2][-1])


@pytest.mark.parametrize(("name", "expected"), [
    pytest.param("plain", "plain", id="as it is"),
    pytest.param("a-b.c/d", "a__dash__b__dot__c__slash__d", id="signs"),
    pytest.param("a__b", "a__underscores__b", id="two underscores"),
    pytest.param("in", "__in__", id="a word of the language"),
])
def test_names_of_fields(name: str, expected: str) -> None:
    assert expected == escaped(name)


async def test_what_did_not_change_is_not_judged_again(api: Api) -> None:
    """A rule that came later does not stand in the way of other changes."""
    rules: Sequence[Object] = [{"rule": "self.min <= self.max", "message": "no"}]
    definition = Case("", "spec", rules, {}).definition()
    without = Case("", "spec", [], {}).definition()
    await api.made(DEFINITIONS, without)
    await api.made(RULES, Case("", "spec", [], {"min": 3, "max": 1}).made())
    await api.patch(f"{DEFINITIONS}/{definition['metadata']['name']}", {"spec": definition["spec"]})
    labelled = await api.patch(f"{RULES}/r", {"metadata": {"labels": {"a": "b"}}})
    worse = await api.patch(f"{RULES}/r", {"spec": {"min": 4}})

    assert (200, 422) == (labelled.code, worse.code)
