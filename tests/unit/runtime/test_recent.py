"""Our own writes that the local copies do not show yet."""

import pytest

from trainmaster.api.meta import Object, being_deleted, name_of
from trainmaster.runtime.recent import PATIENCE, Recent
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock

JOB: Object = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist", "uid": "job-1"}}


def child(name: str = "a", uid: str = "1", revision: str = "5") -> Object:
    return pod(name, uid=uid, owner=JOB, revision=revision)


def names(found: list[Object]) -> list[str]:
    return sorted(name_of(thing) for thing in found)


def test_what_we_made_is_there_before_the_copy_shows_it() -> None:
    recent = Recent(VirtualClock())
    recent.made(child("b"))

    assert ["a", "b"] == names(recent.over([child("a")], "job-1"))


def test_it_is_there_for_its_own_job_only() -> None:
    recent = Recent(VirtualClock())
    recent.made(child("b"))

    assert [] == recent.over([], "job-2")


def test_what_the_copy_shows_is_taken_from_the_copy() -> None:
    recent = Recent(VirtualClock())
    recent.made(child("a", revision="5"))

    shown = child("a", revision="7")
    assert [shown] == recent.over([shown], "job-1")


@pytest.mark.parametrize("gone", [False, True])
def test_what_the_copy_has_shown_once_is_forgotten(gone: bool) -> None:
    """Also if it was there and gone again between two looks."""
    recent = Recent(VirtualClock())
    recent.made(child("a"))
    recent.shown(None, child("a"))
    if gone:
        recent.shown(child("a"), None)

    assert [] == recent.over([], "job-1")


async def test_nothing_is_remembered_for_ever() -> None:
    clock = VirtualClock()
    recent = Recent(clock)
    recent.made(child("a"))
    recent.deleted("9")

    await clock.advance(PATIENCE + 1)

    assert [] == recent.over([], "job-1")
    assert not being_deleted(recent.over([child(uid="9")], "job-1")[0])


def test_what_we_deleted_is_on_its_way_out_before_the_copy_shows_it() -> None:
    recent = Recent(VirtualClock())
    recent.deleted("1")

    assert being_deleted(recent.over([child(uid="1")], "job-1")[0])


def test_a_successor_is_not_on_its_way_out() -> None:
    recent = Recent(VirtualClock())
    recent.deleted("1")

    assert not being_deleted(recent.over([child(uid="2")], "job-1")[0])


def test_the_copy_itself_is_never_changed() -> None:
    recent = Recent(VirtualClock())
    recent.deleted("1")
    shown = child(uid="1")
    recent.over([shown], "job-1")

    assert not being_deleted(shown)


def job(revision: str) -> Object:
    return {"metadata": {"name": "mnist", "namespace": "ns", "uid": "job-1", "resourceVersion": revision}}


@pytest.mark.parametrize(("wrote", "shows", "expected"), [
    pytest.param("7", "5", "7", id="the copy is behind: ours"),
    pytest.param("7", "7", "7", id="the copy has caught up"),
    pytest.param("7", "9", "9", id="somebody wrote since"),
    pytest.param("", "5", "5", id="we wrote nothing"),
])
def test_the_newest_state_of_a_job(wrote: str, shows: str, expected: str) -> None:
    recent = Recent(VirtualClock())
    if wrote:
        recent.written(job(wrote))

    assert expected == recent.newest(job(shows))["metadata"]["resourceVersion"]


def test_a_job_that_is_gone_is_forgotten() -> None:
    recent = Recent(VirtualClock())
    recent.written(job("7"))
    recent.shown(job("7"), None)

    assert "5" == recent.newest(job("5"))["metadata"]["resourceVersion"]
