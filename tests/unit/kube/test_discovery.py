"""What a server serves: in either of the two ways it can be asked, and also when it cannot say everything."""

from collections.abc import AsyncIterator

import pytest

from trainmaster.api.meta import Object
from trainmaster.kube.discovery import survey
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Answer, Fault, Plan, Refuse, nothing, on

LEASES = "/apis/coordination.k8s.io/v1"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with embedded(VirtualClock()) as made:
        yield made


def old(then: Plan = nothing) -> Plan:
    """A server that knows no aggregated discovery."""

    def plan(request: Request, number: int) -> Fault | None:
        aggregated = "APIGroupDiscoveryList" in request.headers.get("accept", "")
        return Answer(406) if aggregated else then(request, number)

    return plan


async def plurals(cluster: Cluster, plan: Plan = nothing) -> set[str]:
    return {kind.resource.plural for kind in (await survey(cluster.client(plan=plan))).kinds}


def definition(plural: str, *versions: str) -> Object:
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": version, "served": True, "storage": number == 0,
                 "schema": {"openAPIV3Schema": {"type": "object"}}}
                for number, version in enumerate(versions)
            ],
        },
    }


@pytest.mark.parametrize("plan", [pytest.param(nothing, id="at once"), pytest.param(old(), id="one by one")])
async def test_every_kind_is_told_once_with_its_verbs(plan: Plan, cluster: Cluster) -> None:
    await cluster.install([definition("gears", "v1", "v1beta1"), definition("wheels", "v1beta1")])
    found = (await survey(cluster.client(plan=plan))).kinds

    assert len(found) == len({(kind.resource.group, kind.resource.plural) for kind in found})
    assert [True] == [kind.can("list", "watch", "delete") for kind in found if kind.resource.plural == "pods"]
    assert not [kind for kind in found if "/" in kind.resource.plural]
    ours = {kind.resource.plural: kind.resource.version for kind in found if kind.resource.group == "example.com"}
    assert {"gears": "v1", "wheels": "v1beta1"} == ours, "a kind that the preferred version lacks is there too"


async def test_both_ways_to_ask_tell_the_same(cluster: Cluster) -> None:
    both = [await survey(cluster.client(plan=plan)) for plan in (nothing, old())]
    creatable_only = {"bindings"}    # aggregated discovery of the embedded server leaves out what can only be created

    assert [{kind for kind in found.kinds if kind.resource.plural not in creatable_only} for found in both[:1]] == [
        {kind for kind in found.kinds if kind.resource.plural not in creatable_only} for found in both[1:]
    ]


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        pytest.param(Answer(503), {"coordination.k8s.io/v1"}, id="one group is out of order: it is named"),
        pytest.param(Answer(404), set(), id="one group went away between the questions: it is not there"),
    ],
)
async def test_a_group_that_fails_hides_no_other(answer: Answer, failed: set[str], cluster: Cluster) -> None:
    found = await survey(cluster.client(plan=old(on("GET", LEASES, answer))))
    whole = await plurals(cluster, old())

    assert failed == set(found.failed)
    assert {"leases"} == whole - {kind.resource.plural for kind in found.kinds}


async def test_a_server_that_says_nothing_is_no_empty_server(cluster: Cluster) -> None:
    with pytest.raises(Unreachable):
        await survey(cluster.client(plan=on("GET", "/apis", Refuse())))
