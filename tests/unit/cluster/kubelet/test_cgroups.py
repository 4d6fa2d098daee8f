"""Control groups: where ours would be, what is written to them, and what pods notice of it."""

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.kubelet.node import SYSTEM_PYTHON, Node, as_an_ordinary_user

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import cgroups
from trainmaster.cluster.kubelet.cgroups import Cgroups, Hierarchy, Limits, hierarchies, limits_of, score, settings
from trainmaster.testing.builders import pod as built

V2 = "30 24 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "31 24 0:27 / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}"
EAT = f"exec {SYSTEM_PYTHON} -c 'a = [bytearray(1 << 20) for _ in range(300)]; import time; time.sleep(60)'"


@pytest.mark.parametrize(("expected", "mounts", "own"), [
    pytest.param([(2, "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope")], [V2.format(root="/")],
                 "0::/user.slice/user-1000.slice/session-2.scope\n", id="the second version alone"),
    pytest.param([(1, "/sys/fs/cgroup/memory/job/7"), (1, "/sys/fs/cgroup/pids")],
                 [V1.format(name="memory"), V1.format(name="pids"), V1.format(name="freezer")],
                 "3:memory:/job/7\n2:pids:/\n1:freezer:/\n", id="the first: a tree per controller that we need"),
    pytest.param([(1, "/sys/fs/cgroup/cpu,cpuacct/x")],
                 ["31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"], "4:cpu,cpuacct:/x\n",
                 id="several controllers in one tree"),
    pytest.param([(2, "/sys/fs/cgroup/inner")], [V2.format(root="/docker/abc")], "0::/docker/abc/inner\n",
                 id="a container that sees a part of the tree"),
    pytest.param([], ["22 1 0:5 / /proc rw - proc proc rw"], "", id="none"),
])
def test_where_we_are(expected: list[tuple[int, str]], mounts: list[str], own: str) -> None:
    assert expected == [(tree.version, str(tree.own)) for tree in hierarchies("\n".join(mounts), own)]


@pytest.mark.parametrize(("expected", "limits", "version"), [
    pytest.param({"cpu.weight": "1"}, Limits(), 2, id="nothing asked: the smallest part, no limit"),
    pytest.param({"cpu.shares": "2"}, Limits(), 1, id="the same in the first version"),
    pytest.param({"memory.max": "1048576", "memory.oom.group": "1", "cpu.max": "150000 100000", "cpu.weight": "59",
                  "pids.max": "7"}, Limits(1 << 20, Fraction(3, 2), Fraction(3, 2), 7), 2, id="everything"),
    pytest.param({"memory.limit_in_bytes": "1048576", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "1000",
                  "cpu.shares": "2", "pids.max": "7"}, Limits(1 << 20, Fraction(1, 1000), Fraction(1, 1000), 7), 1,
                 id="a quota is never below what the kernel takes"),
])
def test_what_is_written(expected: dict[str, str], limits: Limits, version: int) -> None:
    assert expected == {name: value for files in settings(limits, version).values() for name, value in files}


@pytest.mark.parametrize(("expected", "resources"), [
    pytest.param(Limits(), {}, id="nothing"),
    pytest.param(Limits(64 << 20, Fraction(1, 2), Fraction(1, 2)), {"limits": {"memory": "64Mi", "cpu": "500m"}},
                 id="a limit stands for the request too"),
    pytest.param(Limits(None, Fraction(2), Fraction(1)), {"limits": {"cpu": 2}, "requests": {"cpu": "1"}}, id="both"),
    pytest.param(Limits(), {"limits": {"memory": "0", "cpu": "0"}}, id="nothing at all is no limit"),
])
def test_what_a_container_may_have(expected: Limits, resources: Object) -> None:
    assert expected == limits_of({"resources": resources})


@pytest.mark.parametrize(("expected", "quality", "memory"), [
    pytest.param(-997, "Guaranteed", "1Gi", id="who reserved all it uses goes last"),
    pytest.param(1000, "BestEffort", "0", id="who reserved nothing goes first"),
    pytest.param(750, "Burstable", "2Gi", id="in between by what it reserved"),
    pytest.param(3, "Burstable", "8Gi", id="but before the guaranteed"),
    pytest.param(999, "Burstable", "1", id="and after the others"),
])
def test_who_goes_first_when_memory_ends(expected: int, quality: str, memory: str) -> None:
    assert expected == score({"resources": {"requests": {"memory": memory}}}, quality, 8 << 30)


def test_groups_of_an_attempt_with_the_second_version(tmp_path: Path) -> None:
    """In plain folders, which take what is written: this machine may not have it."""
    groups = Cgroups(dict.fromkeys(("memory", "cpu", "pids"), tmp_path), 2)

    joined = groups.make("uid", Limits(processes=9), "main-0", Limits(1 << 20, Fraction(1)))

    assert [str(tmp_path / "uid" / "main-0")] == joined
    assert "+memory +cpu +pids" == (tmp_path / "uid" / "cgroup.subtree_control").read_text()
    assert "9" == (tmp_path / "uid" / "pids.max").read_text()
    assert "1048576" == (tmp_path / "uid" / "main-0" / "memory.max").read_text()


def test_a_group_of_the_second_version_is_sought_above_our_own() -> None:
    """Our own has processes, and so cannot have children with limits."""
    tree = Hierarchy(2, frozenset(), Path("/c"), Path("/c/a/b"))

    assert [Path("/c/a"), Path("/c")] == cgroups._parents(tree, [], "trainmaster-x")
    assert [Path("/c/z"), Path("/c/a"), Path("/c")] == cgroups._parents(
        tree, [Path("/c/z/trainmaster-x")], "trainmaster-x")


def limited(name: str, script: str, limits: Object, **spec: Any) -> Object:
    made = built(name, node="here", command=("/bin/sh", "-c", script), **spec)
    made["spec"]["containers"][0]["resources"] = {"limits": limits}
    return made


async def test_a_container_that_takes_too_much_memory_is_killed_and_the_pod_survives(node: Node) -> None:
    """By the kernel where it can be asked, by the shim elsewhere: the same words either way."""
    made = limited("a", EAT, {"memory": "64Mi"}, restart="OnFailure")
    made["spec"]["containers"].append({"name": "other", "image": "busybox", "command": ["sleep", "1000"]})
    await node.client.create(PODS, made)

    def killed(thing: Object) -> bool:
        states = thing["status"].get("containerStatuses") or [{}, {}]
        return "terminated" in states[0].get("lastState", {}) and "running" in states[1].get("state", {})

    status = (await node.until("a", killed))["status"]

    end = status["containerStatuses"][0]["lastState"]["terminated"]
    assert ("OOMKilled", 137) == (end["reason"], end["exitCode"])
    assert ("Running", 0) == (status["phase"], status["containerStatuses"][1]["restartCount"])


async def test_a_container_within_its_limits_ends_as_it_likes(node: Node) -> None:
    await node.client.create(PODS, limited("a", "echo fine; exit 3", {"memory": "64Mi", "cpu": "1"}))

    end = (await node.phase("a", "Failed"))["status"]["containerStatuses"][0]["state"]["terminated"]

    assert ("Error", 3) == (end["reason"], end["exitCode"])


async def test_time_is_limited_where_the_machine_has_control_groups(node: Node) -> None:
    groups = cgroups.begin(node.settings.run)
    if "cpu" not in groups.folders:
        pytest.skip(groups.missing)
    program = ("import time; t, used = time.time(), time.process_time()\nwhile time.time() < t + 1.5: pass\n"
               "print((time.process_time() - used) / (time.time() - t))")
    spin = f"exec {SYSTEM_PYTHON} -c '{program}'"
    await node.client.create(PODS, limited("a", spin, {"cpu": "100m"}))

    await node.phase("a", "Succeeded")

    _, used = await node.log("a")
    assert float(used) < 0.3


async def test_nothing_is_left_of_a_pods_groups(node: Node) -> None:
    """Neither of one that is deleted nor, when the next agent starts, of those that were killed with everything."""
    folders = cgroups.begin(node.settings.run).folders.values()
    await node.pod("a", "exec sleep 1000")
    await node.pod("b", "exec sleep 1000")
    for name in "ab":
        await node.phase(name, "Running")
    assert all(2 == len(cgroups._children(folder)) for folder in folders)
    await node.client.delete(PODS, "a", "default", grace=0)
    await node.gone("a")
    await node.stop()
    node.kill_holder()

    await node.start()

    assert [] == [child for folder in folders for child in cgroups._children(folder)]


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
def test_all_of_this_as_an_ordinary_user() -> None:
    as_an_ordinary_user(__file__)
