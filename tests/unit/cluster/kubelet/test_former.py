"""What a pod printed outlives it, within bounds."""

from datetime import timedelta
from pathlib import Path

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import former, reap
from trainmaster.cluster.kubelet.former import Former
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.testing.clock import VirtualClock

UID = "00000000-0000-0000-0000-{:012d}"


def pod(number: int, *, owned: bool = True) -> Object:
    owner = [{"kind": "TFJob", "name": "a", "uid": "job", "controller": True}] if owned else []
    return {"metadata": {"name": f"a-worker-{number}", "namespace": "train", "uid": UID.format(number),
                         "labels": {"x": "y"}, "ownerReferences": owner, "resourceVersion": "7"}}


def logged(folder: Path, number: int, *, lives: int = 1, size: int = 6) -> Path:
    place = folder / f"train_a-worker-{number}_{UID.format(number)}"
    for life in range(lives):
        (place / "main" / str(life)).mkdir(parents=True)
        (place / "main" / str(life) / "0.log").write_text("x" * size)
        (place / "main" / str(life) / "0.idx").touch()
    return place


def names(kept: Former, namespace: str = "train") -> list[str]:
    return [record["metadata"]["name"] for _, record in kept.records(namespace)]


def test_the_last_life_of_each_container_is_found_by_whom_it_belonged_to(tmp_path: Path, clock: VirtualClock) -> None:
    Former(tmp_path, clock).keep(pod(1), logged(tmp_path, 1, lives=11))

    (place, record), = Former(tmp_path, clock).records("train")       # also by the next agent

    assert {"main": 10} == record["containers"]
    assert "job" == record["metadata"]["ownerReferences"][0]["uid"]
    assert (place / "main" / "10" / "0.log").exists()
    assert [] == names(Former(tmp_path, clock), "other")


def test_what_belonged_to_nobody_or_says_nothing_goes(tmp_path: Path, clock: VirtualClock) -> None:
    kept = Former(tmp_path, clock)
    kept.keep(pod(1, owned=False), logged(tmp_path, 1))
    kept.keep(pod(2), logged(tmp_path, 2, lives=0))

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("bound", "value"), [
    pytest.param("MOST_PODS", 2, id="when there are too many"),
    pytest.param("MOST_BYTES", 25_000, id="when they are too large"),
    pytest.param("LONGEST", 150.0, id="when they are too old"),
])
async def test_the_oldest_make_room(tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, bound: str,
                                    value: float) -> None:
    monkeypatch.setattr(former, bound, value)
    kept = Former(tmp_path, clock)
    for number in (1, 2, 3):
        clock.jump(timedelta(seconds=100))
        kept.keep(pod(number), logged(tmp_path, number, size=10_000))

    assert ["a-worker-2", "a-worker-3"] == names(kept)


def test_an_agent_that_begins_anew_leaves_them_alone(tmp_path: Path, clock: VirtualClock) -> None:
    settings = NodeSettings("here", tmp_path / "run", tmp_path / "logs", tmp_path / "volumes", "8", "16Gi")
    Former(settings.logs, clock).keep(pod(1), logged(settings.logs, 1))
    lost = logged(settings.logs, 2)

    assert [lost] == list(reap.orphans(settings, set()))
