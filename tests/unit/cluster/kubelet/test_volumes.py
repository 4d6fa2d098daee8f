"""Volumes as directories: what is made, what is refused, and that a refresh is one swap."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.environment import Claimed, ConfigError, Sources
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.volumefiles import VolumeError, references, tokens
from trainmaster.cluster.kubelet.volumes import Volumes, binds, prepare, refresh

SOURCES = Sources(
    config_maps={"settings": {"data": {"a.txt": "one", "b.txt": "two"}, "binaryData": {"raw": "AAE="}}},
    secrets={"key": {"data": {"token": "c2VjcmV0"}}}, tokens={("v", "token"): "jwt"},
)


def pod(*volumes: Object) -> Object:
    return {
        "metadata": {"name": "w", "namespace": "train", "uid": "u", "labels": {"role": "worker", "app": 'a"b'}},
        "spec": {"containers": [{"name": "main"}], "volumes": list(volumes)},
    }


def made(tmp_path: Path, *volumes: Object) -> Volumes:
    return prepare(pod(*volumes), tmp_path, SOURCES)


def contents(place: Path) -> dict[str, str]:
    return {path.name: path.read_text(errors="replace") for path in place.iterdir() if not path.name.startswith("..")}


@pytest.mark.parametrize(("expected", "volume"), [
    pytest.param({}, {"emptyDir": {}}, id="emptyDir is empty"),
    pytest.param({"a.txt": "one", "b.txt": "two", "raw": "\0\x01"}, {"configMap": {"name": "settings"}},
                 id="a ConfigMap"),
    pytest.param({"x": "one"}, {"configMap": {"name": "settings", "items": [{"key": "a.txt", "path": "x"}]}},
                 id="one key"),
    pytest.param({"token": "secret"}, {"secret": {"secretName": "key"}}, id="a Secret"),
    pytest.param({"token": "jwt", "a.txt": "one", "namespace": "train", "key": "secret"}, {"projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "settings", "items": [{"key": "a.txt", "path": "a.txt"}]}},
        {"secret": {"name": "key", "items": [{"key": "token", "path": "key"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]}}, id="several sources in one volume"),
    pytest.param({}, {"secret": {"secretName": "none", "optional": True}}, id="an optional one that is not there"),
    pytest.param({"labels": 'app="a\\"b"\nrole="worker"'},
                 {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                 id="what the pod knows of itself"),
])
def test_contents(expected: dict[str, str], volume: Object, tmp_path: Path) -> None:
    volumes = made(tmp_path, {"name": "v", **volume})

    assert expected == contents(volumes.places["v"])


@pytest.mark.parametrize(("expected", "volume"), [
    pytest.param('configmap "none" not found', {"configMap": {"name": "none"}}, id="no ConfigMap"),
    pytest.param("non-existent secret key: k", {"secret": {"secretName": "key", "items": [{"key": "k", "path": "p"}]}},
                 id="no key"),
    pytest.param("not a relative path", {"secret": {"secretName": "key", "items": [{"key": "token", "path": "../x"}]}},
                 id="a path that leads out"),
    pytest.param("/nowhere/at/all is not there", {"hostPath": {"path": "/nowhere/at/all"}}, id="no such place"),
    pytest.param("is not a File", {"hostPath": {"path": "/", "type": "File"}}, id="not what it should be"),
    pytest.param("absolute path", {"hostPath": {"path": "/a/../../etc"}}, id="a host path with dots"),
    pytest.param("of a kind that this node cannot mount \\(nfs\\)", {"nfs": {"server": "x"}}, id="an unknown kind"),
])
def test_what_cannot_be_mounted_is_said(expected: str, volume: Object, tmp_path: Path) -> None:
    with pytest.raises(VolumeError, match=expected):
        made(tmp_path, {"name": "v", **volume})


def test_modes_are_those_asked_for(tmp_path: Path) -> None:
    items = [{"key": "a.txt", "path": "a", "mode": 0o400}, {"key": "b.txt", "path": "b"}]
    volumes = made(tmp_path, {"name": "v", "configMap": {"name": "settings", "defaultMode": 0o600, "items": items}})

    assert (0o400, 0o600) == tuple((volumes.places["v"] / name).stat().st_mode & 0o777 for name in ("a", "b"))


def test_a_refresh_replaces_all_files_at_once_and_drops_old_ones(tmp_path: Path) -> None:
    volume = {"name": "v", "configMap": {"name": "settings"}}
    before = (made(tmp_path, volume).places["v"] / "..data").readlink()
    changed = Sources(config_maps={"settings": {"data": {"a.txt": "1"}}})

    place = prepare(pod(volume), tmp_path, changed).places["v"]

    assert {"a.txt": "1"} == contents(place)
    assert not (place / before).exists()


def test_a_refresh_without_a_change_touches_nothing(tmp_path: Path) -> None:
    thing = pod({"name": "v", "configMap": {"name": "settings"}}, {"name": "e", "emptyDir": {}})
    before = (prepare(thing, tmp_path, SOURCES).places["v"] / "..data").readlink()

    assert not refresh(thing, tmp_path, SOURCES)
    assert before == (tmp_path / "v" / "..data").readlink()
    assert refresh(thing, tmp_path, Sources(config_maps={"settings": {"data": {"a.txt": "one"}}})), "a key less"


def test_what_comes_from_the_api_cannot_be_written(tmp_path: Path) -> None:
    thing = pod({"name": "v", "secret": {"secretName": "key"}}, {"name": "e", "emptyDir": {}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "x", "readOnly": True}})
    found = prepare(thing, tmp_path, replace(SOURCES, claims={"x": Claimed(str(tmp_path))}))
    container = mounts(*({"name": name, "mountPath": f"/{name}"} for name in "vec"))

    assert {"/v": True, "/e": False, "/c": True} == {
        bind["target"]: bind["readonly"] for bind in binds(container, found, {})
    }


@pytest.mark.parametrize(("expected", "claims"), [
    pytest.param('PVC train/x: failed to fetch PVC from API server: persistentvolumeclaims "x" not found', {},
                 id="no such claim"),
    pytest.param("error processing PVC train/x: PVC is not bound", {"x": Claimed(trouble="PVC is not bound")},
                 id="not bound"),
    pytest.param("path /nowhere/at/all does not exist", {"x": Claimed("/nowhere/at/all")}, id="a place that is gone"),
    pytest.param("not an absolute path", {"x": Claimed("../x", True)}, id="a place that is none"),
])
def test_claims_that_cannot_be_mounted(expected: str, claims: dict[str, Claimed], tmp_path: Path) -> None:
    thing = pod({"name": "c", "persistentVolumeClaim": {"claimName": "x"}})

    with pytest.raises(VolumeError, match=expected):
        prepare(thing, tmp_path, Sources(claims=claims))


def test_a_provisioned_claim_is_made_on_its_first_use(tmp_path: Path) -> None:
    thing = pod({"name": "c", "persistentVolumeClaim": {"claimName": "x"}})
    place = tmp_path / "claims" / "pvc-1"

    found = prepare(thing, tmp_path / "pod", Sources(claims={"x": Claimed(str(place), True)}))

    assert (place, 0o777) == (found.places["c"], place.stat().st_mode & 0o777)


def test_memory_volumes_are_left_to_the_sandbox(tmp_path: Path) -> None:
    volumes = made(tmp_path, {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})

    assert ({"path": str(tmp_path / "v"), "size": 1 << 20},) == volumes.memory


def test_a_host_directory_is_made_when_asked_for(tmp_path: Path) -> None:
    volumes = made(tmp_path, {"name": "v", "hostPath": {"path": f"{tmp_path}/x/y", "type": "DirectoryOrCreate"}})

    assert Path(tmp_path, "x", "y") == volumes.places["v"]
    assert volumes.places["v"].is_dir()


@pytest.fixture
def data(tmp_path: Path) -> Volumes:
    (tmp_path / "sub").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    return Volumes({"data": tmp_path, "more": tmp_path})


def mounts(*wanted: Any) -> Object:
    return {"volumeMounts": list(wanted)}


def test_mounts_inside_others_come_later(data: Volumes) -> None:
    container = mounts({"name": "more", "mountPath": "/a/b"}, {"name": "data", "mountPath": "/a", "readOnly": True})

    assert [("/a", True), ("/a/b", False)] == [(b["target"], b["readonly"]) for b in binds(container, data, {})]


def test_a_sub_path_may_come_from_the_environment(data: Volumes) -> None:
    container = mounts({"name": "data", "mountPath": "/a", "subPathExpr": "$(POD)/x"})

    assert str(data.places["data"] / "p-0" / "x") == binds(container, data, {"POD": "p-0"})[0]["source"]


@pytest.mark.parametrize(("expected", "mount"), [
    pytest.param("names no volume", {"name": "none", "mountPath": "/a"}, id="no such volume"),
    pytest.param("cannot be mounted at '/'", {"name": "data", "mountPath": "/a/.."}, id="over the whole root"),
    pytest.param("inside of /proc", {"name": "data", "mountPath": "/proc/sys"}, id="over what the kernel shows"),
    pytest.param("without '..'", {"name": "data", "mountPath": "/a", "subPath": "../x"}, id="a sub path with dots"),
    pytest.param("leads out", {"name": "data", "mountPath": "/a", "subPath": "out/passwd"}, id="a link that leads out"),
])
def test_mounts_that_are_refused(expected: str, mount: Object, data: Volumes) -> None:
    with pytest.raises(ConfigError, match=expected):
        binds(mounts(mount), data, {})


def test_what_has_to_be_fetched() -> None:
    thing = pod({"name": "a", "configMap": {"name": "x"}}, {"name": "b", "secret": {"secretName": "y"}})

    assert ({"x"}, {"y"}) == references(thing)


def test_removal_enters_what_was_closed_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    tree = tmp_path / "tree"
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "link").symlink_to(outside)
    (tree / "closed" / "inner").chmod(0)
    (tree / "closed").chmod(0)

    remove(tree)

    assert [outside] == list(tmp_path.iterdir())


def test_the_tokens_that_a_pod_wants_are_bound_to_it() -> None:
    token = {"serviceAccountToken": {"path": "token", "audience": "vault"}}
    wanted = tokens(pod({"name": "v", "projected": {"sources": [token, {"secret": {"name": "key"}}]}}))

    assert wanted == {("v", "token"): {
        "audiences": ["vault"], "expirationSeconds": 3600,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "w", "uid": "u"}}}


def test_a_projection_names_what_it_needs_and_fails_without_it(tmp_path: Path) -> None:
    token = {"serviceAccountToken": {"path": "other"}}
    sources = [token, {"secret": {"name": "s"}}, {"configMap": {"name": "c"}}]

    assert ({"c"}, {"s"}) == references(pod({"name": "v", "projected": {"sources": sources}}))
    with pytest.raises(VolumeError, match='failed to fetch token: serviceaccounts "default" not found'):
        made(tmp_path, {"name": "v", "projected": {"sources": [token]}})
