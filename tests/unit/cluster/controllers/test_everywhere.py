"""What stands in every namespace, on the embedded server."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.unit.cluster.controllers.stage import at_work, namespace

from trainmaster.api.core import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object, name_of, uid_of
from trainmaster.cluster.controllers import everywhere
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.kube.transport import Request
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import EVERYTHING, Answer, Old, Write, crash_points, seeded

AUTHORITY = b"-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
CERTIFICATE = "kube-root-ca.crt"


async def furnished(client: Client, place: str) -> tuple[bool, Object]:
    """Whether the account is there, and what the certificate's ConfigMap holds."""
    accounts = [name_of(each) for each in (await client.list(SERVICE_ACCOUNTS, place)).items]
    maps = [each for each in (await client.list(CONFIG_MAPS, place)).items if name_of(each) == CERTIFICATE]
    found = maps[0] if maps else {}
    return "default" in accounts, {**(found.get("data") or {}), **(found.get("binaryData") or {})}


WHOLE = (True, {"ca.crt": AUTHORITY.decode()})


async def test_every_namespace_has_them_old_ones_and_new_ones(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    async with at_work(everywhere.run(cluster.client(), clock, AUTHORITY)):
        await clock.settle()
        await client.create(NAMESPACES, namespace("new"))
        await clock.settle()

        assert [WHOLE, WHOLE, WHOLE] == [await furnished(client, place) for place in ("default", "kube-system", "new")]


async def delete_the_account(client: Client) -> None:
    await client.delete(SERVICE_ACCOUNTS, "default", "default")


async def delete_the_certificate(client: Client) -> None:
    await client.delete(CONFIG_MAPS, CERTIFICATE, "default")


def change(**fields: object) -> Callable[[Client], Awaitable[None]]:
    async def deed(client: Client) -> None:
        await client.patch(CONFIG_MAPS, CERTIFICATE, "default", fields)

    return deed


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param(delete_the_account, id="the account is deleted"),
        pytest.param(delete_the_certificate, id="the certificate is deleted"),
        pytest.param(change(data={"ca.crt": "another"}), id="the certificate is changed"),
        pytest.param(change(data={"more": "x"}), id="something is added to it"),
        pytest.param(change(binaryData={"more": "eA=="}), id="something binary is added to it"),
        pytest.param(change(data=None), id="it is emptied"),
        pytest.param(change(data={"ca.crt": "another"}, immutable=True), id="it is changed for good"),
    ],
)
async def test_they_are_put_right(
    deed: Callable[[Client], Awaitable[None]], cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    async with at_work(everywhere.run(cluster.client(), clock, AUTHORITY)):
        await clock.settle()
        await deed(client)
        await clock.advance(seconds=1)

        assert WHOLE == await furnished(client, "default")


async def test_what_is_right_is_not_written(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    async with at_work(everywhere.run(cluster.client(), clock, AUTHORITY)):
        await clock.settle()
    account = await client.get(SERVICE_ACCOUNTS, "default", "default")
    await client.patch(SERVICE_ACCOUNTS, "default", "default", {"metadata": {"labels": {"mine": "yes"}}})
    wire = cluster.transport("second life")
    async with at_work(everywhere.run(Client(wire), clock, AUTHORITY)):
        await clock.advance(hours=1)

    assert [] == wire.writes
    assert uid_of(account) == uid_of(await client.get(SERVICE_ACCOUNTS, "default", "default"))


async def test_another_authority_reaches_every_namespace(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    for authority in (b"old", AUTHORITY):
        async with at_work(everywhere.run(cluster.client(), clock, authority)):
            await clock.settle()

    assert [WHOLE, WHOLE] == [await furnished(client, place) for place in ("default", "kube-public")]


async def test_a_namespace_that_ends_gets_nothing_back(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(NAMESPACES, namespace("ending"))
    wire = cluster.transport("furnisher")
    async with at_work(everywhere.run(Client(wire), clock, AUTHORITY)):
        await clock.settle()
        await client.delete(NAMESPACES, "ending")
        await client.delete(SERVICE_ACCOUNTS, "default", "ending")
        await clock.settle()
        before = len(wire.writes)
        await clock.advance(hours=1)

        assert before == len(wire.writes)
        with pytest.raises(NotFound):
            await client.get(SERVICE_ACCOUNTS, "default", "ending")


async def test_one_namespace_in_trouble_does_not_stop_the_others(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    def broken(request: Request, _number: int) -> Answer | None:
        return Answer(500) if request.method == "POST" and "/kube-public/" in request.path else None

    async with at_work(everywhere.run(cluster.client(plan=broken), clock, AUTHORITY)):
        await clock.advance(seconds=10)

        assert [WHOLE, (True, {})] == [await furnished(client, place) for place in ("default", "kube-public")]


async def story(dies_after: int | None) -> tuple[Sequence[Write], list[tuple[bool, Object]]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(everywhere.run(Client(life), clock, AUTHORITY)) as tasks:
            await clock.settle()
            if tasks[0].done():
                async with at_work(everywhere.run(cluster.client(), clock, AUTHORITY)):
                    await clock.settle()
        spaces = [name_of(each) for each in (await client.list(NAMESPACES)).items]
        return list(life.writes), [await furnished(client, place) for place in spaces]


async def test_dying_after_any_write_changes_nothing_in_the_end() -> None:
    async for where, clean, end in crash_points(story):
        assert [WHOLE] * len(clean) == clean == end, where


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_goes_wrong_on_the_way_they_are_there(
    seed: int, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]
    async with at_work(everywhere.run(cluster.client(plan=seeded(seed, faults=faults, until=100)), clock, AUTHORITY)):
        await client.create(NAMESPACES, namespace("new"))
        await clock.advance(hours=1)

        assert [WHOLE, WHOLE] == [await furnished(client, place) for place in ("default", "new")]
