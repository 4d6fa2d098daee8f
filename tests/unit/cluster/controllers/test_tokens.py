"""Secrets that hold a token of their account, on the embedded server."""

import base64
from typing import Any

import pytest
from tests.unit.cluster.controllers.stage import at_work

from trainmaster.api.core import SECRETS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object, Resource, uid_of
from trainmaster.cluster.controllers import tokens
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster

AUTHORITY = b"a certificate"
REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)


def secret(**annotations: str) -> Object:
    about = {"name": "s", "namespace": "default",
             "annotations": {f"kubernetes.io/service-account.{key}": value for key, value in annotations.items()}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": tokens.TYPE}


async def account(client: Client) -> Object:
    about = {"name": "robot", "namespace": "default"}
    return await client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})


async def whose(client: Client, token: str) -> Any:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return (await client.create(REVIEWS, review))["status"].get("user", {}).get("username")


def filling(cluster: Cluster, clock: VirtualClock, inventory: Inventory) -> Any:
    return at_work(inventory.run(), tokens.run(cluster.client(), clock, inventory, AUTHORITY))


async def test_a_secret_is_filled_and_its_token_ends_with_it(
        cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    robot = await account(client)
    async with filling(cluster, clock, Inventory(cluster.client(), clock)):
        await client.create(SECRETS, secret(name="robot"))
        await clock.settle()
        found = await client.get(SECRETS, "s", "default")
        data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

        assert uid_of(robot) == found["metadata"]["annotations"][tokens.UID]
        assert ("a certificate", "default") == (data["ca.crt"], data["namespace"])
        assert "system:serviceaccount:default:robot" == await whose(client, data["token"])

        await client.delete(SECRETS, "s", "default")
        assert None is await whose(client, data["token"])


async def test_what_is_taken_out_comes_back(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await account(client)
    async with filling(cluster, clock, Inventory(cluster.client(), clock)):
        await client.create(SECRETS, secret(name="robot"))
        await clock.settle()
        before = await client.get(SECRETS, "s", "default")
        await client.patch(SECRETS, "s", "default", {"data": {"ca.crt": None}})
        await clock.settle()

        assert before["data"] == (await client.get(SECRETS, "s", "default"))["data"]


@pytest.mark.parametrize("annotations", [
    pytest.param({"name": "nobody"}, id="an account that is not there"),
    pytest.param({"name": "robot", "uid": "of-before"}, id="an account of before"),
])
async def test_a_secret_of_nobody_is_removed(
        cluster: Cluster, client: Client, clock: VirtualClock, annotations: dict[str, str]) -> None:
    await account(client)
    async with filling(cluster, clock, Inventory(cluster.client(), clock)):
        await client.create(SECRETS, secret(**annotations))
        await clock.settle()

        with pytest.raises(NotFound):
            await client.get(SECRETS, "s", "default")


async def test_a_secret_goes_with_its_account(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await account(client)
    async with filling(cluster, clock, Inventory(cluster.client(), clock)):
        await client.create(SECRETS, secret(name="robot"))
        await clock.settle()
        await client.delete(SERVICE_ACCOUNTS, "robot", "default")
        await clock.advance(seconds=2)

        with pytest.raises(NotFound):
            await client.get(SECRETS, "s", "default")
