"""Which objects go when their owners do."""

import pytest

from trainmaster.api.core import CONFIG_MAPS, NODES, PODS
from trainmaster.api.meta import Key, Resource
from trainmaster.cluster.controllers.graph import (
    FOREGROUND,
    ORPHAN,
    Absent,
    Graph,
    Item,
    Owner,
    Verdict,
    item_of,
    superfluous,
    verdict,
)
from trainmaster.testing.builders import pod

KEEP, DELETE, CUT, ASK, RELEASE = Verdict.KEEP, Verdict.DELETE, Verdict.CUT, Verdict.ASK, Verdict.RELEASE


def owner(uid: str, blocks: bool = True, *, kind: str = "Pod", name: str = "") -> Owner:
    return Owner(uid, blocks, "v1", kind, name or uid)


def item(
    uid: str, *owners: Owner | str, deleting: bool = False, finalizers: tuple[str, ...] = (),
    namespace: str = "default", resource: Resource = PODS,
) -> Item:
    given = tuple(owner(one) if isinstance(one, str) else one for one in owners)
    return Item(resource, Key(namespace, uid), uid, given, finalizers, deleting)


def waits(uid: str, *owners: Owner | str) -> Item:
    return item(uid, *owners, deleting=True, finalizers=(FOREGROUND,))


def judge(judged: Item, others: list[Item], gone: tuple[str, ...] = ()) -> Verdict:
    graph, absent = Graph(), Absent()
    for one in (judged, *others):
        graph.put(one)
    for uid in gone:
        absent.gone(uid)
    return verdict(judged, graph, absent)


@pytest.mark.parametrize(
    ("judged", "others", "gone", "expected"),
    [
        pytest.param(item("x"), [], (), KEEP, id="nobody's property is kept"),
        pytest.param(item("x", "boss"), [item("boss")], (), KEEP, id="its owner lives: kept"),
        pytest.param(item("x", "boss"), [], ("boss",), DELETE, id="its owner is known to be gone: deleted"),
        pytest.param(item("x", "boss"), [], (), ASK, id="its owner was never seen: the server is asked first"),
        pytest.param(item("x", "boss", "other"), [item("other")], ("boss",), CUT,
                     id="one of two owners is gone: only the reference is cut"),
        pytest.param(item("x", "boss", "other"), [], ("boss", "other"), DELETE, id="both owners are gone: deleted"),
        pytest.param(item("x", "boss", "other"), [item("other")], (), ASK, id="one lives, one is unknown: asked"),
        pytest.param(item("x", "boss"), [item("boss", deleting=True)], (), KEEP,
                     id="its owner is on its way out in the background: it waits for the end"),
        pytest.param(item("x", "boss", deleting=True), [], ("boss",), KEEP, id="it goes already: nothing to do"),
        pytest.param(item("x", owner("boss", kind="Node")), [item("boss", namespace="", resource=NODES)], (), KEEP,
                     id="an owner without a namespace may have dependents anywhere"),
    ],
)
def test_in_the_background(judged: Item, others: list[Item], gone: tuple[str, ...], expected: Verdict) -> None:
    assert expected == judge(judged, others, gone)


@pytest.mark.parametrize(
    ("judged", "others"),
    [
        pytest.param(item("x", "boss"), [item("boss", namespace="elsewhere")], id="in another namespace"),
        pytest.param(item("x", owner("boss", name="chief")), [item("boss")], id="of another name"),
        pytest.param(item("x", "boss"), [item("boss", resource=CONFIG_MAPS)], id="of another kind"),
        pytest.param(item("x", owner("boss", kind="Node"), namespace="", resource=NODES), [item("boss")],
                     id="in a namespace, of something that has none"),
    ],
)
def test_a_reference_that_is_wrong_about_its_owner_does_not_count(judged: Item, others: list[Item]) -> None:
    """There is an object with that UID, but not where the reference says: the server is asked at that place."""
    assert ASK == judge(judged, others)


@pytest.mark.parametrize(
    ("judged", "others", "gone", "expected"),
    [
        pytest.param(item("x", "boss"), [waits("boss")], (), DELETE, id="its owner waits for it: it goes first"),
        pytest.param(item("x", owner("boss", blocks=False)), [waits("boss")], (), DELETE,
                     id="... even if it does not hold the owner back"),
        pytest.param(item("x", "boss"), [waits("boss"), item("child", "x")], (), Verdict.DELETE_FOREGROUND,
                     id="... and its own dependents before it"),
        pytest.param(item("x", "boss", "other"), [waits("boss"), item("other")], (), CUT,
                     id="... but not if another owner lives: that one is not kept waiting"),
        pytest.param(item("x", "boss", "other"), [waits("boss")], ("other",), DELETE, id="one waits, one is gone"),
        pytest.param(waits("boss"), [item("x", "boss")], (), KEEP, id="an owner waits for its dependents"),
        pytest.param(waits("boss"), [item("x", owner("boss", blocks=False))], (), RELEASE,
                     id="... except those that do not block it"),
        pytest.param(waits("boss"), [], (), RELEASE, id="without dependents it is let go"),
        pytest.param(waits("boss"), [item("x", "boss", deleting=True)], (), KEEP,
                     id="a dependent that is on its way out is still there"),
        pytest.param(waits("boss"), [waits("x", "boss")], (), KEEP, id="one that is about to be let go too"),
        pytest.param(waits("boss"), [item("x", "boss", namespace="elsewhere")], (), RELEASE,
                     id="... nor those that have no right to, from another namespace"),
        pytest.param(waits("boss", "boss"), [], (), RELEASE, id="who owns himself does not wait for himself"),
        pytest.param(item("x", deleting=True, finalizers=(ORPHAN,)), [item("y", "x")], (), Verdict.ORPHAN,
                     id="an orphaning owner cuts its dependents loose"),
    ],
)
def test_in_the_foreground(judged: Item, others: list[Item], gone: tuple[str, ...], expected: Verdict) -> None:
    assert expected == judge(judged, others, gone)


@pytest.mark.parametrize(
    ("judged", "others", "gone", "expected"),
    [
        pytest.param(item("x", "y"), [item("y", "x")], (), KEEP, id="a ring that never had an owner is left alone"),
        pytest.param(item("x", "x"), [], (), KEEP, id="so is who owns himself"),
        pytest.param(item("x", "boss", "y"), [item("y", "x")], ("boss",), DELETE, id="the owner of a ring went"),
        pytest.param(item("x", "boss", "x"), [], ("boss",), DELETE, id="the owner of who owns himself went"),
        pytest.param(item("x", "boss", "y"), [item("y", "x", "other"), item("other")], ("boss",), CUT,
                     id="... but another member still has an owner: the ring stays"),
        pytest.param(item("x", "boss", "y"), [item("y", "x", "other")], ("boss",), CUT,
                     id="... but another member has an owner that we do not know"),
        pytest.param(item("x", "boss", "y"), [item("y", "x", "other")], ("boss", "other"), DELETE,
                     id="... both had owners, both are gone"),
        pytest.param(item("x", "boss", "y"), [item("y", "x", "z"), item("z", "y")], ("boss",), DELETE,
                     id="a ring within the ring goes with it"),
        pytest.param(item("x", "boss", "y"), [item("y", "z"), item("z", "y")], ("boss",), CUT,
                     id="an owner in a ring of its own, which nobody touched, lives"),
        pytest.param(item("x", "boss", "y"), [item("y", "x", finalizers=(ORPHAN,))], ("boss",), CUT,
                     id="a member that will leave orphans behind leaves this one"),
        pytest.param(item("x", "boss", "y"), [item("y", "x"), waits("boss")], (), Verdict.DELETE_FOREGROUND,
                     id="the owner of a ring waits for it: it goes in the foreground"),
        pytest.param(waits("x", "y"), [item("y", "x")], (), KEEP, id="of a ring the first has been deleted: it waits"),
        pytest.param(item("x", "y"), [waits("y", "x")], (), Verdict.DELETE_FOREGROUND, id="... the next follows"),
        pytest.param(waits("x", "y"), [waits("y", "x")], (), RELEASE, id="... all wait for each other: let go"),
        pytest.param(waits("x", "z"), [waits("y", "x"), waits("z", "y")], (), RELEASE, id="three of them as well"),
        pytest.param(waits("x", "z"), [waits("y", "x"), item("z", "y")], (), KEEP,
                     id="... not before the last of them waits"),
        pytest.param(waits("x", "y"), [waits("y", "x"), item("z", "x", deleting=True)], (), KEEP,
                     id="... not while one also waits for somebody outside"),
        pytest.param(waits("boss"), [waits("x", "boss", "y"), waits("y", "x")], (), KEEP,
                     id="who owns a ring waits until it has let go"),
    ],
)
def test_rings(judged: Item, others: list[Item], gone: tuple[str, ...], expected: Verdict) -> None:
    assert expected == judge(judged, others, gone)


@pytest.mark.parametrize("first", range(3))
def test_of_a_ring_that_waits_for_itself_any_member_may_be_the_first_to_go(first: int) -> None:
    members = [waits("x", "z"), waits("y", "x"), waits("z", "y")]
    graph = Graph()
    for member in members:
        graph.put(member)
    assert RELEASE == verdict(members[first], graph, Absent())
    graph.drop(members.pop(first).uid)
    while members:
        free = [member for member in members if verdict(member, graph, Absent()) is RELEASE]
        assert 1 == len(free), "then one after the other, dependents first"
        graph.drop(free[0].uid)
        members.remove(free[0])


def test_only_references_that_hold_nothing_are_superfluous() -> None:
    wrong = owner("living", name="misnamed")
    judged = item("x", "living", "waiting", "gone", wrong)
    graph = Graph()
    for one in (judged, item("living"), waits("waiting")):
        graph.put(one)

    assert {owner("waiting"), owner("gone"), wrong} == superfluous(judged, graph)


def test_the_graph_forgets_what_was_dropped_and_follows_changed_owners() -> None:
    graph = Graph()
    for one in (item("a"), item("b"), item("x", "a"), item("x", "b")):
        graph.put(one)

    assert ([], ["x"]) == ([d.uid for d in graph.dependents("a")], [d.uid for d in graph.dependents("b")])
    assert (False, True) == (graph.is_owner("a"), graph.is_blocked("b"))

    graph.drop("x")

    assert (2, [], False) == (len(graph), graph.dependents("b"), graph.is_blocked("b"))


def test_the_memory_of_the_absent_is_bounded_and_forgets_the_oldest() -> None:
    absent = Absent(size=3)
    for number in range(10):
        absent.gone(f"u{number}")
    absent.missing(owner("elsewhere"), "ns")

    assert 3 == len(absent)
    known = [absent.has(owner(uid), "ns") for uid in ("u7", "u8", "u9", "elsewhere")]
    assert [False, True, True, True] == known
    assert not absent.has(owner("elsewhere"), "another"), "what is missing here may be there"


def test_who_comes_back_is_not_absent() -> None:
    absent = Absent()
    absent.gone("u")
    absent.back("u")

    assert not absent.has(owner("u"), "ns")


def test_an_object_becomes_an_item() -> None:
    boss = pod("boss", uid="b")
    thing = pod("x", uid="u", owner=boss, revision="7")
    thing["metadata"]["finalizers"] = [FOREGROUND]
    thing["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"

    found = item_of(PODS, thing)

    its_owner = Owner("b", True, "v1", "Pod", "boss")
    assert Item(PODS, Key("default", "x"), "u", (its_owner,), (FOREGROUND,), True, "7") == found
    assert found.waits
