"""Which objects go when their owners do."""

import pytest

from trainmaster.api.core import PODS
from trainmaster.api.meta import Key
from trainmaster.cluster.controllers.garbage import FOREGROUND, ORPHAN, Graph, Item, Owner, Verdict, verdict


def owner(uid: str, blocks: bool = True) -> Owner:
    return Owner(uid, blocks, "v1", "Pod", uid)


def item(uid: str, *owners: Owner, deleting: bool = False, finalizers: tuple[str, ...] = ()) -> Item:
    return Item(PODS, Key("default", uid), uid, owners, finalizers, deleting)


DYING = item("boss", deleting=True, finalizers=(FOREGROUND,))


@pytest.mark.parametrize(
    ("judged", "others", "absent", "expected"),
    [
        pytest.param(item("x"), [], (), Verdict.KEEP, id="nobody's property is kept"),
        pytest.param(item("x", owner("boss")), [item("boss")], (), Verdict.KEEP, id="its owner lives: kept"),
        pytest.param(item("x", owner("boss")), [], ("boss",), Verdict.DELETE,
                     id="its owner is known to be gone: deleted"),
        pytest.param(item("x", owner("boss")), [], (), Verdict.ASK,
                     id="its owner was never seen: the server is asked first"),
        pytest.param(item("x", owner("boss"), owner("other")), [item("other")], ("boss",), Verdict.CUT,
                     id="one of two owners is gone: only the reference is cut"),
        pytest.param(item("x", owner("boss")), [DYING], (), Verdict.DELETE,
                     id="its owner is deleted in the foreground: it goes first"),
        pytest.param(item("x", owner("boss")), [DYING, item("child", owner("x"))], (), Verdict.DELETE_FOREGROUND,
                     id="... and its own dependents before it"),
        pytest.param(item("x", owner("boss"), owner("other")), [DYING, item("other")], (), Verdict.CUT,
                     id="... but not if another owner lives"),
        pytest.param(DYING, [item("x", owner("boss"))], (), Verdict.KEEP,
                     id="a foreground owner waits for its dependents"),
        pytest.param(DYING, [item("x", owner("boss", blocks=False))], (), Verdict.RELEASE,
                     id="... except those that do not block it"),
        pytest.param(DYING, [], (), Verdict.RELEASE, id="without dependents it is released"),
        pytest.param(item("x", deleting=True, finalizers=(ORPHAN,)), [], (), Verdict.ORPHAN,
                     id="an orphaning owner cuts its dependents loose"),
        pytest.param(item("x", owner("y")), [item("y", owner("x"))], (), Verdict.KEEP,
                     id="a ring of owners is left alone"),
    ],
)
def test_verdict(judged: Item, others: list[Item], absent: tuple[str, ...], expected: Verdict) -> None:
    graph = Graph()
    for one in (judged, *others):
        graph.put(one)

    assert expected == verdict(judged, graph, frozenset(absent))


def test_the_graph_forgets_what_was_dropped_and_follows_changed_owners() -> None:
    graph = Graph()
    graph.put(item("x", owner("a")))
    graph.put(item("x", owner("b")))

    assert ([], ["x"]) == ([d.uid for d in graph.dependents("a")], [d.uid for d in graph.dependents("b")])

    graph.drop("x")

    assert [] == graph.dependents("b")
