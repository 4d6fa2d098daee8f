"""Whom volumes belong to: rows are what a pod says, columns what a container of it finds."""

import os
from pathlib import Path

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.ownership import READ, WRITE, Owner, give, owner_of

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@root_only
@pytest.mark.parametrize(("expected", "of_pod", "of_container"), [
    pytest.param(None, {}, {}, id="it says nothing"),
    pytest.param(Owner(-1, 2000, True), {"fsGroup": 2000}, {}, id="a group for its volumes"),
    pytest.param(Owner(1000, -1, False), {"runAsUser": 1000}, {}, id="a user"),
    pytest.param(Owner(1000, 3000, False), {"runAsUser": 1000, "runAsGroup": 3000}, {}, id="a user and their group"),
    pytest.param(Owner(1001, 2000, True), {"runAsUser": 1000, "fsGroup": 2000}, {"runAsUser": 1001},
                 id="a container that is somebody else"),
    pytest.param(None, {"runAsUser": 0}, {}, id="root needs nothing"),
    pytest.param(Owner(-1, 5, True, True), {"fsGroup": 5, "fsGroupChangePolicy": "OnRootMismatch"}, {},
                 id="not more than needed"),
])
def test_owner(expected: Owner | None, of_pod: Object, of_container: Object) -> None:
    pod = {"spec": {"securityContext": of_pod, "containers": [{"name": "a", "securityContext": of_container}]}}

    assert expected == owner_of(pod)


@root_only
def test_containers_that_are_different_people_share_by_group_only() -> None:
    containers = [{"name": str(user), "securityContext": {"runAsUser": user}} for user in (1, 2)]

    assert Owner(-1, 9, True) == owner_of({"spec": {"securityContext": {"fsGroup": 9}, "containers": containers}})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "v" / "sub").mkdir(parents=True)
    (tmp_path / "v" / "sub" / "file").write_text("")
    (tmp_path / "v" / "sub" / "file").chmod(0o600)
    (tmp_path / "outside").write_text("")
    (tmp_path / "outside").chmod(0o600)
    (tmp_path / "v" / "link").symlink_to("../outside")
    return tmp_path / "v"


def facts(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid, found.st_mode & 0o7777


@root_only
def test_the_group_gets_its_rights_on_everything(tree: Path) -> None:
    give(tree, Owner(-1, 2000, True), WRITE)

    assert [(0, 2000, 0o2775), (0, 2000, 0o2775), (0, 2000, 0o660)] == [
        facts(tree), facts(tree / "sub"), facts(tree / "sub" / "file")
    ]
    assert (0, 0, 0o600) == facts(tree.parent / "outside"), "no link is followed"


@root_only
def test_what_is_only_read_is_only_readable(tree: Path) -> None:
    give(tree, Owner(-1, 2000, True), READ)

    assert (0, 2000, 0o640) == facts(tree / "sub" / "file")


@root_only
def test_the_user_owns_what_is_new_and_nothing_else(tree: Path) -> None:
    give(tree, Owner(1000, -1, False), WRITE, first=False)
    assert (0, 0) == facts(tree)[:2]

    give(tree, Owner(1000, -1, False), WRITE)
    assert (1000, 0, 0o600) == facts(tree / "sub" / "file")


@root_only
def test_a_volume_that_is_the_groups_already_is_left_alone_when_asked(tree: Path) -> None:
    owner = Owner(-1, 2000, True, True)
    give(tree, owner, WRITE, below=False)

    give(tree, owner, WRITE, first=False)

    assert (0, 0, 0o600) == facts(tree / "sub" / "file")
