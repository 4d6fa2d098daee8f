"""From one revision of a Deployment to the next: how many pods may be there, and which sets grow and shrink."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Json, Object, name_of
from trainmaster.cluster.controllers.workloads import revisions
from trainmaster.cluster.controllers.workloads.rollout import bounds, decide

ROUNDS = 200      # of which a rollout of twelve pods needs far fewer


def template(image: str) -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def deployment(replicas: int = 4, surge: Json = 1, missing: Json = 0, **spec: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "train", "uid": "u", "generation": 1},
            "spec": {"replicas": replicas, "strategy": strategy, "template": template("new"), **spec}}


def one(image: str, size: int, available: int, *, desired: int = 4, most: int = 5, at: int = 0) -> Object:
    return {"metadata": {"name": image, "creationTimestamp": f"2026-01-01T00:00:{at:02}Z",
                         "annotations": {revisions.REVISION: str(at), revisions.DESIRED: str(desired),
                                         revisions.MOST: str(most)}},
            "spec": {"replicas": size, "template": template(image)},
            "status": {"replicas": size, "availableReplicas": available}}


@pytest.mark.parametrize(("expected", "found"), [
    pytest.param((1, 1), deployment(4, "25%", "25%"), id="a quarter of four"),
    pytest.param((2, 1), deployment(5, "25%", "25%"), id="what may be more is rounded up, what may be missing down"),
    pytest.param((0, 1), deployment(3, 0, "25%"), id="shares that round to nothing must not stop everything"),
    pytest.param((0, 1), deployment(3, 0, 0), id="nor must two zeros, which no server lets through"),
    pytest.param((9, 3), deployment(3, 9, 9), id="more than all cannot be missing"),
    pytest.param((0, 0), deployment(0, 2, 2), id="of none, none"),
    pytest.param((0, 0), deployment(4, strategy={"type": "Recreate"}), id="one revision at a time has no bounds"),
    pytest.param((2, 1), deployment(5, strategy={}), id="a quarter, if nothing was said"),
])
def test_how_many_may_be_there(expected: tuple[int, int], found: Object) -> None:
    assert expected == bounds(found)


@pytest.mark.parametrize(("expected", "wanted", "sets"), [
    pytest.param({"new": 1}, deployment(), [one("old", 4, 4), one("new", 0, 0, at=1)],
                 id="the new one grows as far as the surge allows"),
    pytest.param({}, deployment(), [one("old", 4, 4), one("new", 1, 0, at=1)],
                 id="nothing happens while the new pod is not available"),
    pytest.param({"old": 3}, deployment(), [one("old", 4, 4), one("new", 1, 1, at=1)],
                 id="for one that is, an old one goes"),
    pytest.param({"old": 1}, deployment(), [one("old", 4, 1), one("new", 3, 3, at=1)],
                 id="old ones that do not work go at once"),
    pytest.param({"older": 0}, deployment(surge=0, missing=2),
                 [one("older", 2, 0, at=0), one("old", 2, 2, at=1), one("new", 0, 0, at=2)],
                 id="of several old ones those first"),
    pytest.param({"old": 0}, deployment(strategy={"type": "Recreate"}), [one("old", 4, 4), one("new", 0, 0, at=1)],
                 id="one revision at a time: first all old ones go"),
    pytest.param({"new": 4}, deployment(strategy={"type": "Recreate"}), [one("old", 0, 0), one("new", 0, 0, at=1)],
                 id="and when they are gone, all new ones come"),
    pytest.param({"new": 8}, deployment(8), [one("new", 4, 4)], id="another number of replicas, with one set"),
    pytest.param({"old": 5, "new": 4}, deployment(8), [one("old", 3, 3), one("new", 2, 2, at=1)],
                 id="with several, each gets its share"),
    pytest.param({"old": 0}, deployment(4, paused=True), [one("old", 1, 1), one("new", 4, 4, at=1)],
                 id="a paused one whose new pods are all there lets the old ones go"),
    pytest.param({"old": 0, "new": 0}, deployment(0), [one("old", 3, 3), one("new", 2, 2, at=1)], id="none at all"),
])
def test_the_next_step(expected: dict[str, int], wanted: Object, sets: list[Object]) -> None:
    assert expected == decide(wanted, sets).sizes


def test_a_template_that_no_set_has_gets_one() -> None:
    step = decide(deployment(), [one("old", 4, 4, at=7)])

    assert step.creates is step.new is not None
    assert (1, "8") == (step.size(step.new), step.new["metadata"]["annotations"][revisions.REVISION])


@given(st.integers(1, 12), st.integers(0, 4), st.integers(0, 4), st.data())
def test_whatever_becomes_available_when_the_bounds_are_kept_and_the_end_is_reached(
    replicas: int, surge: int, missing: int, data: st.DataObject
) -> None:
    wanted = deployment(replicas, surge, missing)
    more, fewer = bounds(wanted)
    there = {"old": [replicas, replicas], "new": [0, 0]}      # size, available
    for round_ in range(ROUNDS):
        sets = [one(image, *counts, desired=replicas, most=replicas + more, at=at)
                for at, (image, counts) in enumerate(there.items())]
        for image, size in decide(wanted, sets).sizes.items():
            there[image] = [size, min(size, there[image][1])]      # the ones that do not work go first

        assert sum(size for size, _ in there.values()) <= replicas + more
        assert sum(available for _, available in there.values()) >= replicas - fewer
        if there == {"old": [0, 0], "new": [replicas, replicas]}:
            return
        size, available = there["new"]
        begun = size - available      # sometimes none of them, in the end all
        there["new"][1] += begun if round_ > ROUNDS // 2 else data.draw(st.integers(0, begun))

    raise AssertionError(f"it stops at {there}")


def test_only_so_many_revisions_are_kept_and_none_that_has_pods() -> None:
    old = [one(f"old{at}", int(at == 1), int(at == 1), at=at) for at in range(5)]
    old[2]["status"]["replicas"] = 1      # its last pod is ending
    new = one("new", 4, 4, at=9)

    found = decide(deployment(revisionHistoryLimit=1, paused=True), [*old, new])

    assert ["old0", "old3"] == [name_of(each) for each in found.deletes]
