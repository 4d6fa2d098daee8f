"""The local copy: what is news, what is old, and where objects are found."""

from collections.abc import Iterable

import pytest

from trainmaster.api.meta import Object, name_of, revision_of
from trainmaster.runtime.store import Change, LocalCopy, older
from trainmaster.testing.builders import pod


def at(revision: int, name: str = "a", uid: str = "1", node: str = "") -> Object:
    return pod(name, uid=uid, node=node, revision=str(revision))


def told(changes: Iterable[Change]) -> list[tuple[str, str]]:
    """Changes as pairs of revisions."""
    return [(revision_of(change.before or {}), revision_of(change.after or {})) for change in changes]


@pytest.mark.parametrize(
    ("known", "event", "seen", "expected"),
    [
        pytest.param([], at(5), "4", [("", "5")], id="an unknown object is new"),
        pytest.param([at(4)], at(5), "4", [("4", "5")], id="a newer state replaces"),
        pytest.param([at(5)], at(5), "5", [], id="the same state again is no news"),
        pytest.param([at(5)], at(4), "5", [], id="an older state is no news"),
        pytest.param([], at(4), "5", [], id="an unknown object from before what was seen has been deleted since"),
        pytest.param([at(4)], at(6, uid="2"), "4", [("4", ""), ("", "6")], id="another uid: one ended, one began"),
        pytest.param([at(9)], at(10), "9", [("9", "10")], id="revisions are ordered as numbers, not as text"),
    ],
)
def test_taking_in_a_state(known: list[Object], event: Object, seen: str, expected: list[tuple[str, str]]) -> None:
    copy = LocalCopy()
    copy.replace(known)

    assert expected == told(copy.take(event, at_least=seen))


@pytest.mark.parametrize(
    ("known", "event", "expected"),
    [
        pytest.param([at(4)], at(5), [("4", "")], id="the end carries the revision of the end"),
        pytest.param([at(4)], at(4), [("4", "")], id="the end carries the last revision, as older servers do"),
        pytest.param([at(6, uid="2")], at(5), [], id="the end of an earlier object of that name is old news"),
        pytest.param([], at(5), [], id="the end of what is not known is no news"),
    ],
)
def test_taking_in_an_end(known: list[Object], event: Object, expected: list[tuple[str, str]]) -> None:
    copy = LocalCopy()
    copy.replace(known)

    assert expected == told(copy.drop(event))


@pytest.mark.parametrize(
    ("known", "fresh", "expected"),
    [
        pytest.param([], [at(1), at(2, "b")], [("", "1"), ("", "2")], id="all is new in an empty copy"),
        pytest.param([at(1), at(2, "b")], [at(2, "b")], [("1", "")], id="what is missing has gone"),
        pytest.param([at(1)], [at(1)], [], id="the same list again is no news"),
        pytest.param([at(1)], [at(3)], [("1", "3")], id="what differs has changed"),
        pytest.param([at(1)], [at(3, uid="2")], [("1", ""), ("", "3")], id="same name, other uid: two objects"),
        pytest.param([at(7)], [at(3)], [("7", "3")], id="a list is the truth, even if the server was set back"),
        pytest.param([at(7, node="x")], [at(7, node="y")], [("7", "7")], id="set back, and the same number again"),
    ],
)
def test_becoming_a_list(known: list[Object], fresh: list[Object], expected: list[tuple[str, str]]) -> None:
    copy = LocalCopy()
    copy.replace(known)

    assert expected == told(copy.replace(fresh))
    assert fresh == copy.all()


def test_indexes_follow_every_change() -> None:
    copy = LocalCopy({"node": lambda thing: [thing["spec"]["nodeName"]] if "nodeName" in thing["spec"] else []})

    copy.take(at(1))
    assert [] == copy.by("node", "x")
    copy.take(at(2, node="x"))
    copy.take(at(3, "b", node="x"))
    assert ["a", "b"] == [name_of(thing) for thing in copy.by("node", "x")]
    copy.take(at(4, node="y"))
    assert ["b"] == [name_of(thing) for thing in copy.by("node", "x")]
    copy.drop(at(5, "b"))
    copy.replace([at(6, "c", node="x")])
    assert ["c"] == [name_of(thing) for thing in copy.by("node", "x")]
    assert [] == copy.by("node", "y")
    assert [True, False] == [copy.holds("node", node) for node in ("x", "y")]


def test_an_index_that_fails_on_one_object_loses_none() -> None:
    copy = LocalCopy({"node": lambda thing: [thing["spec"]["nodeName"]], "name": lambda thing: [name_of(thing)]})
    copy.take(at(1))
    copy.take(at(2, "b", node="x"))

    assert 2 == len(copy)
    assert ["1"] == [revision_of(thing) for thing in copy.by("name", "a")]
    assert [("1", "")] == told(copy.drop(at(3)))


def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    copy = LocalCopy()
    copy.replace([pod("a", "x"), pod("a", "y")])

    assert 2 == len(copy)
    assert copy.get("y", "a") == pod("a", "y")
    assert copy.get("z", "a") is None


@pytest.mark.parametrize(
    ("revision", "than", "expected"),
    [("9", "10", True), ("10", "9", False), ("7", "7", False), ("a", "b", False), ("", "5", False), ("5", "", False)],
)
def test_only_numbers_have_an_order(revision: str, than: str, expected: bool) -> None:
    assert expected == older(revision, than)
