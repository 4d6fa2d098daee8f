"""What is made of the remains of an earlier life."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import reap, records
from trainmaster.cluster.kubelet.settings import NodeSettings, PodPlaces, places_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path) -> NodeSettings:
    return NodeSettings("here", tmp_path / "run", tmp_path / "logs", tmp_path / "volumes", "8", "16Gi")


def pod(uid: str = "u", **status: Any) -> Object:
    return {
        "metadata": {"name": "w", "namespace": "train", "uid": uid},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [{"name": "main", "restartCount": 2, "containerID": "x", **status}]},
    }


def remembered(settings: NodeSettings, thing: Object) -> dict[str, Any] | None:
    places: PodPlaces = places_of(settings, thing)
    reap.remember(thing, places, NOON)
    return records.read(str(places.attempt("main", 2)), records.EXIT)


@pytest.mark.parametrize(("expected", "status"), [
    pytest.param((137, "ContainerStatusUnknown"), {"state": {"running": {"startedAt": "2030-01-01T11:00:00Z"}}},
                 id="ran when last heard of: lost"),
    pytest.param((3, "Error"), {"state": {"terminated": {"exitCode": 3, "reason": "Error",
                                                         "finishedAt": "2030-01-01T11:00:00Z"}}},
                 id="had ended: as it was told"),
    pytest.param((1, "Error"), {"state": {"waiting": {"reason": "CrashLoopBackOff"}},
                                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}},
                 id="waited for its next attempt: the last end"),
])
def test_attempts_the_disk_has_forgotten(expected: tuple[int, str], status: Object, settings: NodeSettings) -> None:
    found = remembered(settings, pod(**status))

    assert found is not None
    assert expected == (found["code"], found["reason"])


def test_a_container_that_never_started_has_no_attempt(settings: NodeSettings) -> None:
    assert remembered(settings, pod(containerID="")) is None


def test_what_the_disk_knows_is_not_overwritten(settings: NodeSettings) -> None:
    thing = pod(state={"running": {}})
    directory = places_of(settings, thing).attempt("main", 2)
    directory.mkdir(parents=True)
    records.write(str(directory), records.SHIM, {"pid": 1})

    assert remembered(settings, thing) is None


def test_logs_and_volumes_of_unknown_pods_are_orphans(settings: NodeSettings) -> None:
    known, gone = (f"{n}1111111-2222-3333-4444-555555555555" for n in (1, 2))
    for name in (f"train_a_{known}", f"train_b_{gone}", "notes", "my_own_things"):
        (settings.logs / name).mkdir(parents=True)
    for name in (known, gone, "data"):
        (settings.volumes / "pods" / name).mkdir(parents=True)

    assert {f"train_b_{gone}", gone} == {path.name for path in reap.orphans(settings, {known})}


def test_a_pod_without_an_object_is_known_by_its_record(settings: NodeSettings) -> None:
    for uid in ("known", "gone", "empty"):
        (settings.pods / uid).mkdir(parents=True)
    records.write(str(settings.pods / "gone"), records.POD, reap.pod_record(pod("gone")))

    found = list(reap.left_behind(settings, {"known"}))

    assert ["gone"] == [thing["metadata"]["uid"] for thing in found]
    assert not (settings.pods / "empty").exists()


def test_the_record_of_a_pod_holds_no_values() -> None:
    thing = pod()
    thing["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hush"}]

    assert "hush" not in str(reap.pod_record(thing))
