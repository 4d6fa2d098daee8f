"""Roles that gather their rules from others, with the rights that the controller has."""

from tests.unit.cluster.controllers.stage import at_work

from trainmaster.api.core import CLUSTER_ROLES
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.auth import account
from trainmaster.cluster.controllers import aggregation
from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster

RULE = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get"]}


def role(name: str, *rules: Object, to: str = "") -> Object:
    labels = {f"rbac.authorization.k8s.io/aggregate-to-{to}": "true"} if to else {}
    return {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}


async def rules(client: Client, name: str) -> list[Object]:
    return (await client.get(CLUSTER_ROLES, name)).get("rules") or []


async def test_what_is_labelled_for_viewers_goes_to_all_who_see_more_and_goes_again(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    me = cluster.client_as(account("kube-system", "clusterrole-aggregation-controller"))
    async with at_work(aggregation.run(me, clock)):
        await client.create(CLUSTER_ROLES, role("jobs", RULE, to="view"))
        await clock.advance(seconds=5)
        assert [True] * 3 == [RULE in await rules(client, name) for name in ("view", "edit", "admin")]

        await client.patch(CLUSTER_ROLES, "jobs", "", {"rules": [{**RULE, "verbs": ["list"]}]})
        await clock.advance(seconds=5)
        assert [False] * 3 == [RULE in await rules(client, name) for name in ("view", "edit", "admin")]
        assert {**RULE, "verbs": ["list"]} in await rules(client, "admin")

        await client.delete(CLUSTER_ROLES, "jobs")
        await clock.advance(seconds=5)
        assert not [rule for rule in await rules(client, "admin") if "kubeflow.org" in rule["apiGroups"]]


async def test_what_somebody_wrote_into_one_that_gathers_is_gone(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    before = await rules(client, "view")
    async with at_work(aggregation.run(cluster.client(), clock)):
        await client.patch(CLUSTER_ROLES, "view", "", {"rules": [RULE]})
        await clock.advance(seconds=5)

    assert before == await rules(client, "view")
