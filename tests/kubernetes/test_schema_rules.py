"""The table of rules in CEL says what a real kube-apiserver says."""

from collections.abc import AsyncIterator

import pytest
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.waiting import until
from tests.unit.cluster.apiserver.cost_cases import COSTS, definition, often
from tests.unit.cluster.apiserver.cost_cases import refusal as cost_refusal
from tests.unit.cluster.apiserver.literal_cases import LITERALS
from tests.unit.cluster.apiserver.rule_cases import CASES, GROUP, NAME, WRITTEN, Case, refusal

from trainmaster.api.core import DEFINITIONS
from trainmaster.api.meta import Resource
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Invalid, NotFound

pytestmark = pytest.mark.kubernetes

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULES = Resource(GROUP, "v1", "rules", "Rule")
SLICE = 6


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with connected(control_plane.kubeconfig()) as found:
        yield found


@pytest.mark.parametrize("case", [
    pytest.param(case, id=case.when, marks=() if at < SLICE else pytest.mark.full) for at, case in enumerate(CASES)])
async def test_a_real_server_says_the_same(client: Client, case: Case) -> None:
    await client.create(DEFINITIONS, case.definition())
    try:
        assert case.said == await said(client, case)
    finally:
        await client.delete(DEFINITIONS, NAME)
        await until(lambda: gone(client), "the definition is gone")


@pytest.mark.parametrize(("at", "rule", "why"), [pytest.param(*row, id=when) for when, *row in (*WRITTEN, *LITERALS)])
async def test_a_real_server_checks_the_same_types(client: Client, at: str, rule: str, why: str) -> None:
    written = Case("", at, [{"rule": rule}], {}).definition()
    asked = client.request("POST", PATH, query=[("dryRun", "All")], body=written)
    if not why:
        await asked
        return
    with pytest.raises(Invalid) as refused:
        await asked
    told = refused.value.status["details"]["causes"][0]["message"]
    assert refusal(rule, why) == told.partition("null}: ")[2]


@pytest.mark.parametrize(("where", "rule", "cost"), [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in COSTS])
async def test_a_real_server_expects_the_same_costs(client: Client, where: str, rule: str, cost: int) -> None:
    most = often(cost)
    with pytest.raises(Invalid) as refused:
        await client.request("POST", PATH, query=[("dryRun", "All")],
                             body=definition(where, rule, most))
    assert cost_refusal(where, cost, most) == str(refused.value)


async def said(client: Client, case: Case) -> str:
    try:
        await until(lambda: created(client, case), "the kind is served")
        if case.second is not None:
            await client.patch(RULES, "r", "default", case.change())
    except Invalid as refusal:
        return str(refusal).partition("is invalid: ")[2]
    return ""


async def created(client: Client, case: Case) -> bool:
    """Not yet, while the kind is not served."""
    try:
        await client.create(RULES, case.made(), namespace="default")
    except NotFound:
        return False
    return True


async def gone(client: Client) -> bool:
    try:
        await client.get(DEFINITIONS, NAME)
    except NotFound:
        return True
    return False
