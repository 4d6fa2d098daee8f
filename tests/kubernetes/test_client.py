"""Our client against a real kube-apiserver: what it sends is understood, and what comes back is read as meant.

The same tests run against the embedded server. Where the two disagree, one of these tests fails on one of them, and the
real one is right.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane

from trainmaster.api.core import CONFIG_MAPS, NAMESPACES, PODS, SERVICES
from trainmaster.api.meta import Object, name_of, revision_of, uid_of
from trainmaster.kube.client import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH, Client, WatchEvent
from trainmaster.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound

pytestmark = pytest.mark.kubernetes
PATIENCE = 60.0


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str) -> Object:
    spec = {"containers": [{"name": "main", "image": "example.com/program:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def client(server: Path) -> AsyncIterator[Client]:
    async with connected(server) as client:
        yield client


@pytest.fixture
async def place(client: Client) -> str:
    """A namespace that only this test uses."""
    made = await client.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "client-"}}
    )
    return name_of(made)


# Made by a controller, sooner or later, where controllers run.
OF_EVERY_NAMESPACE = "kube-root-ca.crt"


async def first(client: Client, count: int, place: str, revision: str, labels: str = "") -> list[WatchEvent]:
    """The first events of a watch after `revision`, bookmarks left out."""
    seen: list[WatchEvent] = []
    events = client.watch(CONFIG_MAPS, place, revision=revision, labels=labels, bookmarks=False, timeout=60)
    async with asyncio.timeout(PATIENCE), aclosing(events):
        async for event in events:
            if name_of(event.object) == OF_EVERY_NAMESPACE:
                continue
            seen.append(event)
            if len(seen) == count:
                break
    return seen


async def test_what_was_created_is_read_back(client: Client, place: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("one", a="1"), namespace=place)

    assert made == await client.get(CONFIG_MAPS, "one", place)
    assert made["data"] == {"a": "1"}
    assert uid_of(made)
    assert revision_of(made)


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        pytest.param(
            "application/merge-patch+json", {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}, id="merge patch"
        ),
        pytest.param(
            JSON_PATCH, [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}, id="JSON patch"
        ),
        pytest.param(STRATEGIC_PATCH, {"data": {"$patch": "replace", "z": "0"}}, {"z": "0"}, id="strategic patch"),
    ],
)
async def test_patches_change_what_they_name(
    client: Client, place: str, kind: str, patch: object, expected: dict[str, str]
) -> None:
    await client.create(CONFIG_MAPS, config_map("one", a="1", b="2"), namespace=place)

    patched = await client.patch(CONFIG_MAPS, "one", place, patch, kind=kind)

    assert patched["data"] == expected


async def test_server_side_apply_owns_and_gives_back(client: Client, place: str) -> None:
    async def apply(**data: str) -> Object:
        return await client.patch(
            CONFIG_MAPS, "one", place, config_map("one", **data), kind=APPLY_PATCH, manager="tests", force=True
        )

    assert (await apply(a="1", b="2"))["data"] == {"a": "1", "b": "2"}
    assert (await apply(a="1"))["data"] == {"a": "1"}


async def test_replace_needs_the_newest_revision(client: Client, place: str) -> None:
    old = await client.create(CONFIG_MAPS, config_map("one", a="1"), namespace=place)
    new = await client.replace(CONFIG_MAPS, {**old, "data": {"a": "2"}})

    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAPS, {**old, "data": {"a": "3"}})
    assert await client.get(CONFIG_MAPS, "one", place) == new


async def test_a_write_that_changes_nothing_makes_no_revision(client: Client, place: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("one", a="1"), namespace=place)

    assert revision_of(await client.patch(CONFIG_MAPS, "one", place, {"data": {"a": "1"}})) == revision_of(made)


async def test_delete_takes_only_the_object_that_was_meant(client: Client, place: str) -> None:
    first_life = await client.create(CONFIG_MAPS, config_map("one"), namespace=place)
    await client.delete(CONFIG_MAPS, "one", place, uid=uid_of(first_life))
    second_life = await client.create(CONFIG_MAPS, config_map("one"), namespace=place)

    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "one", place, uid=uid_of(first_life))
    assert await client.get(CONFIG_MAPS, "one", place) == second_life


@pytest.mark.parametrize(
    ("body", "error", "reason"),
    [
        pytest.param(config_map("taken"), AlreadyExists, "AlreadyExists", id="a name that is taken"),
        pytest.param(config_map("Not_A_Name"), Invalid, "Invalid", id="a name with capitals"),
        pytest.param({**config_map("x"), "data": {"not/a key": ""}}, Invalid, "Invalid", id="a key with a slash"),
        pytest.param({**config_map("x"), "kind": "Secret"}, Invalid, "BadRequest", id="another kind"),
        pytest.param({**config_map("x"), "data": 7}, Invalid, "BadRequest", id="a number where a map belongs"),
    ],
)
async def test_what_is_refused_is_told_apart(
    client: Client, place: str, body: Object, error: type[ApiError], reason: str
) -> None:
    await client.create(CONFIG_MAPS, config_map("taken"), namespace=place)

    with pytest.raises(error) as refused:
        await client.create(CONFIG_MAPS, body, namespace=place)
    assert refused.value.reason == reason


async def test_what_is_not_there_is_not_found(client: Client, place: str) -> None:
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "nothing", place)
    with pytest.raises(NotFound):
        await client.create(CONFIG_MAPS, config_map("x"), namespace="no-such-namespace")


async def test_a_wrong_token_is_refused(server: Path, place: str) -> None:
    async with connected(server, token="wrong") as stranger:
        with pytest.raises(Forbidden):
            await stranger.list(CONFIG_MAPS, place)


async def test_pages_together_are_the_whole_list(client: Client, place: str) -> None:
    names = [f"item-{number:02}" for number in range(10)]
    for name in names:
        await client.create(CONFIG_MAPS, config_map(name), namespace=place)
    found, revisions, more = [], set(), ""
    while True:
        page = await client.list(CONFIG_MAPS, place, fields="metadata.name!=kube-root-ca.crt", limit=4, more=more)
        found += [name_of(item) for item in page.items]
        revisions.add(page.revision)
        if not more:  # created after the first page: belongs to none
            await client.create(CONFIG_MAPS, config_map("item-99"), namespace=place)
        if not (more := page.more):
            break

    assert found == names
    assert len(revisions) == 1


async def test_selectors_choose(client: Client, place: str) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        thing = config_map(name)
        thing["metadata"]["labels"] = {"colour": colour}
        await client.create(CONFIG_MAPS, thing, namespace=place)

    async def chosen(labels: str = "", fields: str = "") -> list[str]:
        return [name_of(item) for item in (await client.list(CONFIG_MAPS, place, labels=labels, fields=fields)).items]

    assert await chosen("colour=red") == ["a", "c"]
    assert await chosen("colour in (blue,green)") == ["b"]
    assert await chosen("colour", "metadata.name=c") == ["c"]


async def test_a_watch_tells_every_change_in_order(client: Client, place: str) -> None:
    start = (await client.list(CONFIG_MAPS, place)).revision
    made = await client.create(CONFIG_MAPS, config_map("one", a="1"), namespace=place)
    changed = await client.patch(CONFIG_MAPS, "one", place, {"data": {"a": "2"}})
    await client.delete(CONFIG_MAPS, "one", place)

    seen = await first(client, 3, place, start)

    assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.object for event in seen[:2]] == [made, changed]
    assert int(revision_of(seen[2].object)) > int(revision_of(changed))
    assert seen[2].object["data"] == {"a": "2"}


async def test_a_watch_resumes_after_what_was_seen(client: Client, place: str) -> None:
    start = (await client.list(CONFIG_MAPS, place)).revision
    for name in ("a", "b", "c"):
        await client.create(CONFIG_MAPS, config_map(name), namespace=place)
    (seen,) = await first(client, 1, place, start)

    rest = await first(client, 2, place, revision_of(seen.object))

    assert [name_of(event.object) for event in rest] == ["b", "c"]


async def test_leaving_the_selector_is_a_deletion(client: Client, place: str) -> None:
    thing = config_map("one")
    thing["metadata"]["labels"] = {"colour": "red"}
    start = (await client.list(CONFIG_MAPS, place)).revision
    await client.create(CONFIG_MAPS, thing, namespace=place)
    for colour in ("blue", "red"):
        await client.patch(CONFIG_MAPS, "one", place, {"metadata": {"labels": {"colour": colour}}})

    seen = await first(client, 3, place, start, labels="colour=red")

    assert [event.type for event in seen] == ["ADDED", "DELETED", "ADDED"]


async def test_a_bookmark_tells_of_progress_elsewhere_before_the_time_is_up(client: Client, place: str) -> None:
    start = (await client.list(CONFIG_MAPS, place)).revision
    await client.create(CONFIG_MAPS, config_map("ours"), namespace=place)
    elsewhere = {**config_map(""), "metadata": {"generateName": "elsewhere-"}}
    seen, other = [], ""
    async with asyncio.timeout(PATIENCE):
        async for event in client.watch(CONFIG_MAPS, place, revision=start, timeout=8):
            if name_of(event.object) == OF_EVERY_NAMESPACE:
                continue
            seen.append(event)
            if not other:  # only now is the watch certain to be there
                other = revision_of(await client.create(CONFIG_MAPS, elsewhere, namespace="default"))

    assert [event.type for event in seen][:2] == ["ADDED", "BOOKMARK"]  # a real server may send a second bookmark
    assert int(revision_of(seen[-1].object)) >= int(other)


async def test_status_is_written_apart_from_the_rest(client: Client, place: str) -> None:
    await client.create(PODS, pod("one"), namespace=place)

    running = await client.patch(
        PODS, "one", place, {"status": {"phase": "Running"}, "spec": {"priority": 5}}, subresource="status"
    )
    relabelled = await client.patch(
        PODS, "one", place, {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}}
    )

    assert running["status"]["phase"] == relabelled["status"]["phase"] == "Running"
    assert running["spec"].get("priority") != 5


async def test_binding_gives_a_pod_its_node(client: Client, place: str) -> None:
    await client.create(PODS, pod("one"), namespace=place)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "one"}, "target": {"name": "somewhere"}}

    await client.create(PODS, binding, namespace=place, name="one", subresource="binding")

    bound = await client.get(PODS, "one", place)
    assert bound["spec"]["nodeName"] == "somewhere"
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_binding_is_no_new_generation_of_a_pod(client: Client, place: str) -> None:
    await client.create(PODS, pod("one"), namespace=place)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "one"}, "target": {"name": "somewhere"}}

    await client.create(PODS, binding, namespace=place, name="one", subresource="binding")

    assert (await client.get(PODS, "one", place))["metadata"]["generation"] == 1


@pytest.mark.parametrize("nothing", [pytest.param(0, id="zero"), pytest.param("", id="an empty word")])
async def test_a_target_port_of_nothing_is_the_port(client: Client, place: str, nothing: int | str) -> None:
    """Programs in Go send the zero value where a person leaves a field out."""
    spec = {"ports": [{"port": 80, "targetPort": nothing}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}, "spec": spec}

    made = await client.create(SERVICES, service, namespace=place)

    assert made["spec"]["ports"] == [{"port": 80, "targetPort": 80, "protocol": "TCP"}]


async def test_a_bound_pod_is_deleted_in_two_steps(client: Client, place: str) -> None:
    await client.create(PODS, {**pod("one"), "spec": {**pod("one")["spec"], "nodeName": "somewhere"}}, namespace=place)
    await client.delete(PODS, "one", place)
    ending = await client.get(PODS, "one", place)
    assert ending["metadata"]["deletionTimestamp"]
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 30

    await client.delete(PODS, "one", place, grace=0, uid=uid_of(ending))

    with pytest.raises(NotFound):
        await client.get(PODS, "one", place)


async def test_a_client_certificate_is_as_good_as_a_token(control_plane: ControlPlane) -> None:
    async with connected(control_plane.kubeconfig_with_certificate()) as certified:
        assert (await certified.get(NAMESPACES, "default"))["status"]["phase"] == "Active"
