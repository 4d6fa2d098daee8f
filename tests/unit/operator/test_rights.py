"""The rights that are shipped: the file, and those that only a collision needs."""

import re
from pathlib import Path

import pytest
import yaml
from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import stage

from trainmaster.kube.transport import Request
from trainmaster.operator import rights
from trainmaster.testing.faults import Answer, Fault, Plan, on

SHIPPED = Path(__file__).parents[3] / "deploy" / "operator" / "rbac.yaml"


def test_the_file_is_what_the_table_says() -> None:
    assert SHIPPED.read_text() == rights.text()


def test_nothing_is_granted_twice() -> None:
    granted = [(group, plural, verb) for group, plural, verb, _ in rights.granted()]

    assert len(granted) == len(set(granted))


def test_no_rule_grants_everything() -> None:
    assert "*" not in {part for group, plural, verb, _ in rights.granted() for part in (group, plural, verb)}


@pytest.mark.parametrize(("plural", "verbs"), [
    pytest.param("leases", {"get", "create", "update"}, id="leases: without them --leader-elect fails"),
    pytest.param("priorityclasses", {"list", "watch"}, id="priority classes: whose resources a gang needs first"),
])
def test_the_rights_that_upstream_lacks(plural: str, verbs: set[str]) -> None:
    """§8.5."""
    assert verbs == {verb for _, name, verb, _ in rights.granted() if name == plural}


def test_one_namespace_needs_no_right_in_the_others() -> None:
    kinds = {wanted["kind"] for wanted in rights.documents(only="team")}

    assert {"ServiceAccount", "Role", "RoleBinding"} == kinds


class Reading:
    """A plan of faults that notes the kinds of which single objects are read."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kinds: set[str] = set()

    def __call__(self, request: Request, number: int) -> Fault | None:
        found = re.search(r"/namespaces/[^/]+/(\w+)/[^/]+$", request.path)
        if request.method == "GET" and found:
            self.kinds.add(found[1])
        return self.plan(request, number)


@pytest.mark.parametrize("plural", ["pods", "services"])
async def test_a_name_that_is_taken_is_looked_at(plural: str) -> None:
    async with stage() as it:
        reading = Reading(on("POST", f"/{plural}", Answer(409, "AlreadyExists")))
        it.begin(plan=reading)
        await it.apply(tfjob())
        await it.settle()

        assert {plural} == reading.kinds


async def test_a_job_that_is_another_by_now_is_looked_at() -> None:
    async with stage() as it:
        reading = Reading(on("DELETE", "/tfjobs/mnist", Answer(409, "Conflict")))
        it.begin(plan=reading)
        await it.apply(tfjob(policy={"ttlSecondsAfterFinished": 0}))
        await it.settle()
        await it.run()
        await it.settle()
        await it.succeed()
        await it.clock.advance(30)

        assert {"tfjobs"} == reading.kinds


def test_the_rights_for_collisions_are_the_reading_of_what_we_write() -> None:
    reading = {plural for _, plural, verb, right in rights.granted() if right.when == rights.COLLISION}
    written = {plural for _, plural, verb, _ in rights.granted() if verb in ("create", "delete")}

    assert reading <= written
    assert {"get"} == {verb for _, _, verb, right in rights.granted() if right.when == rights.COLLISION}


def test_the_file_can_be_applied() -> None:
    kinds = [found["kind"] for found in yaml.safe_load_all(SHIPPED.read_text())]

    assert ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] == kinds
