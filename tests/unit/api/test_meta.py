"""What is read off an object of any kind, also off one that was written badly."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from trainmaster.api.meta import (
    Json,
    Key,
    Object,
    Resource,
    controller_of,
    is_dns_label,
    is_dns_subdomain,
    key_of,
    labels_of,
    micro_timestamp,
    moment,
    moment_if_any,
    timestamp,
)

NOON = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
PODS = Resource("", "v1", "pods", "Pod")
JOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


@pytest.mark.parametrize(("resource", "about", "expected"), [
    pytest.param(PODS, (), "/api/v1/pods", id="all of a core kind"),
    pytest.param(PODS, ("train",), "/api/v1/namespaces/train/pods", id="those of a namespace"),
    pytest.param(PODS, ("train", "a", "log"), "/api/v1/namespaces/train/pods/a/log", id="a part of one"),
    pytest.param(JOBS, ("train", "a"), "/apis/kubeflow.org/v1/namespaces/train/tfjobs/a", id="one of a group's kind"),
    pytest.param(NODES, ("", "a"), "/api/v1/nodes/a", id="one without a namespace"),
])
def test_where_objects_live(resource: Resource, about: tuple[str, ...], expected: str) -> None:
    assert expected == resource.path(*about)


@pytest.mark.parametrize("thing", [
    pytest.param({}, id="no metadata"),
    pytest.param({"metadata": None}, id="metadata that are null"),
    pytest.param({"metadata": "a"}, id="metadata that are no object"),
    pytest.param({"metadata": {"labels": None, "ownerReferences": None}}, id="lists and maps that are null"),
])
def test_an_object_that_says_nothing_has_no_name_no_label_and_no_owner(thing: Object) -> None:
    assert (Key("", ""), {}, None) == (key_of(thing), labels_of(thing), controller_of(thing))


def test_of_several_owners_the_controller_is_the_one_that_says_so() -> None:
    owners = [{"uid": "a"}, {"uid": "b", "controller": False}, {"uid": "c", "controller": True}]

    assert {"uid": "c", "controller": True} == controller_of({"metadata": {"ownerReferences": owners}})


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("2026-03-04T12:00:00Z", NOON, id="a Time"),
    pytest.param("2026-03-04T12:00:00.000001Z", NOON + timedelta(microseconds=1), id="a MicroTime"),
    pytest.param("2026-03-04T13:00:00+01:00", NOON, id="one of another zone is turned into ours"),
    pytest.param(None, None, id="none was written"),
    pytest.param("", None, id="an empty one"),
    pytest.param("soon", None, id="a word"),
    pytest.param(1772625600, None, id="a number"),
    pytest.param("0001-01-01T00:00:00+14:00", None, id="one before the first year"),
])
def test_the_moment_in_a_field(text: Json, expected: datetime | None) -> None:
    assert expected == moment_if_any(text)


@pytest.mark.parametrize("when", [
    pytest.param(NOON, id="in UTC"),
    pytest.param(NOON.astimezone(timezone(timedelta(hours=-5))), id="in another zone"),
])
def test_moments_are_written_in_utc_and_read_back(when: datetime) -> None:
    assert ("2026-03-04T12:00:00Z", "2026-03-04T12:00:00.000000Z") == (timestamp(when), micro_timestamp(when))
    assert NOON == moment(timestamp(when)) == moment(micro_timestamp(when))


@pytest.mark.parametrize(("text", "label", "subdomain"), [
    pytest.param("worker-0", True, True, id="letters, a dash and a digit"),
    pytest.param("a.b", False, True, id="a dot parts labels"),
    pytest.param("a..b", False, False, id="nothing between two dots"),
    pytest.param("Worker", False, False, id="a capital letter"),
    pytest.param("-a", False, False, id="a dash at the beginning"),
    pytest.param("a-", False, False, id="a dash at the end"),
    pytest.param("a\n", False, False, id="a line end behind it"),
    pytest.param("", False, False, id="nothing"),
    pytest.param("a" * 63, True, True, id="the longest label"),
    pytest.param("a" * 64, False, True, id="longer than a label may be"),
    pytest.param("a" * 254, False, False, id="longer than any name may be"),
])
def test_which_names_are_allowed(text: str, label: bool, subdomain: bool) -> None:
    assert (label, subdomain) == (is_dns_label(text), is_dns_subdomain(text))
