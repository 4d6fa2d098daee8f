"""Pods that use more disk than they may."""

from pathlib import Path

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.overuse import Usage, is_limited, measure, overuse
from trainmaster.cluster.kubelet.settings import PodPlaces

MEBI = 1 << 20


def pod(*limits: str, volume: Object | None = None) -> Object:
    containers = [{"name": f"c{at}", "resources": {"limits": {"ephemeral-storage": limit}} if limit else {}}
                  for at, limit in enumerate(limits or ("",))]
    volumes = [{"name": "v", "emptyDir": volume}] if volume is not None else []
    return {"spec": {"containers": containers, "volumes": volumes}}


@pytest.mark.parametrize(("expected", "thing", "used"), [
    pytest.param("", pod(volume={"sizeLimit": "1Mi"}), Usage({"v": MEBI}), id="just as much as it may"),
    pytest.param('Usage of EmptyDir volume "v" exceeds the limit "1Mi". ', pod(volume={"sizeLimit": "1Mi"}),
                 Usage({"v": MEBI + 1}), id="a volume that is too large"),
    pytest.param("", pod(volume={}), Usage({"v": 1 << 40}), id="without a limit anything goes"),
    pytest.param("Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ", pod("1Mi"),
                 Usage({}, {"c0": 2 * MEBI}), id="a container that writes too much"),
    pytest.param("Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
                 pod("1Mi", volume={}), Usage({"v": MEBI}, {"c0": 1}), id="volumes count for the whole"),
    pytest.param('Container c0 exceeded its local ephemeral storage limit "1Mi". ', pod("1Mi", ""),
                 Usage({}, {"c0": 2 * MEBI}), id="one of several"),
    pytest.param('Container c0 exceeded its local ephemeral storage limit "1Mi". ', pod("1Mi", "9Mi"),
                 Usage({}, {"c0": 2 * MEBI}), id="even if all together may"),
])
def test_overuse(expected: str, thing: Object, used: Usage) -> None:
    assert expected == overuse(thing, used)


@pytest.mark.parametrize(("expected", "thing"), [
    pytest.param(False, pod(volume={}), id="nothing is said"),
    pytest.param(True, pod(volume={"sizeLimit": "1Mi"}), id="a volume with a limit"),
    pytest.param(False, pod(volume={"sizeLimit": "1Mi", "medium": "Memory"}), id="memory keeps its own"),
    pytest.param(True, pod("1Mi"), id="a container with a limit"),
])
def test_who_is_measured(expected: bool, thing: Object) -> None:
    assert expected == is_limited(thing)


def test_what_is_on_disk_counts(tmp_path: Path) -> None:
    places = PodPlaces(tmp_path / "p", tmp_path / "v", tmp_path / "l")
    for file in (places.volumes / "v" / "deep" / "x", places.layer("c0", 0) / "upper" / "y"):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"." * MEBI)

    used = measure(pod(volume={}), places)

    assert MEBI <= used.volumes["v"] < 2 * MEBI
    assert MEBI <= used.containers["c0"] < 2 * MEBI
