"""What the helper is asked for: names, files and rights of a container."""

import platform
from pathlib import Path
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.environment import ConfigError
from trainmaster.cluster.kubelet.images import Image
from trainmaster.cluster.kubelet.linux import DEFAULT_CAPABILITIES
from trainmaster.cluster.kubelet.plans import capabilities, container_plan, homes, hosts_file, resolver_file
from trainmaster.cluster.kubelet.settings import BadName, NodeSettings, places_of
from trainmaster.cluster.kubelet.shim import ContainerPlan

SETTINGS = NodeSettings("here", Path("/s/run"), Path("/s/logs"), Path("/s/volumes"), "8", "16Gi")


def pod(container: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": "w", "namespace": "train", "uid": "u-1"},
        "spec": {"containers": [container or {"name": "main"}], **spec},
    }


def planned(thing: Object, image: Image | None = None) -> ContainerPlan:
    return container_plan(
        thing, thing["spec"]["containers"][0], image or Image("x"), places_of(SETTINGS, thing), attempt=2, level=1,
        address="10.88.0.2", rootless=False, argv=["true"], environment={}, binds=[], hidden=[Path("/s")],
        limits={"groups": [], "watch": 0, "score": 0, "processes": 0},
        log_limits=(1000, 5),
    )


def test_an_attempt_has_its_own_places() -> None:
    plan = planned(pod())

    assert ("/s/run/pods/u-1/main/2", "/s/logs/train_w_u-1/main/2") == (plan["attempt_directory"], plan["log"])


@pytest.mark.parametrize("thing", [
    pytest.param({**pod(), "metadata": {"name": "w", "namespace": "train", "uid": "../../etc"}},
                 id="a uid with a path"),
    pytest.param({**pod(), "metadata": {"name": "..", "namespace": "train", "uid": "u"}}, id="a name that is a path"),
    pytest.param({**pod(), "metadata": {"name": "w", "namespace": "a/b", "uid": "u"}}, id="a namespace with a slash"),
    pytest.param(pod({"name": "../x"}), id="a container with a path"),
    pytest.param(pod({"name": ".shm"}), id="a container that hides"),
    pytest.param(pod(initContainers=[{"name": ""}]), id="an init container without a name"),
])
def test_names_that_would_be_other_paths_are_refused(thing: Object) -> None:
    with pytest.raises(BadName):
        places_of(SETTINGS, thing)


def test_hosts_name_the_pod_below_its_subdomain() -> None:
    thing = pod(hostname="w-0", subdomain="svc", hostAliases=[{"ip": "10.0.0.9", "hostnames": ["db", "db.example"]}])

    assert "10.88.0.2\tw-0.svc.train.svc.cluster.local\tw-0\n" in hosts_file(thing, "10.88.0.2")
    assert "10.0.0.9\tdb\tdb.example\n" in hosts_file(thing, "10.88.0.2")


def test_who_shares_the_network_finds_the_names_of_the_machine() -> None:
    thing = pod(hostNetwork=True, hostAliases=[{"ip": "10.0.0.9", "hostnames": ["db"]}])

    found = hosts_file(thing, "10.88.0.1", "127.0.0.1 localhost\n10.1.1.1 disk # w\n")

    assert found.splitlines()[1:4] == ["127.0.0.1 localhost", "10.1.1.1 disk # w", f"127.0.1.1\t{platform.node()}"]
    assert found.endswith("10.0.0.9\tdb\n")
    assert "127.0.1.1" not in hosts_file(thing, "10.88.0.1", f"127.0.0.1 localhost {platform.node()}\n")


@pytest.mark.parametrize(("expected", "spec"), [
    pytest.param(
        "nameserver 10.88.0.1\nsearch train.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", {},
        id="the cluster first"),
    pytest.param(
        "nameserver 10.88.0.1\nnameserver 9.9.9.9\nsearch train.svc.cluster.local svc.cluster.local cluster.local x.y\n"
        "options ndots:2 edns0\n",
        {"dnsConfig": {"nameservers": ["9.9.9.9"], "searches": ["x.y"],
                       "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}}, id="and what the pod adds"),
    pytest.param("nameserver 9.9.9.9\n", {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["9.9.9.9"]}},
                 id="or nothing but that"),
    pytest.param("nameserver 10.88.0.1\nsearch office.example\n", {"dnsPolicy": "Default"},
                 id="the machine's search list; its resolvers are asked by ours"),
    pytest.param("nameserver 127.0.0.53\nsearch office.example\n", {"hostNetwork": True},
                 id="in the host's network the machine's own"),
    pytest.param("nameserver 127.0.0.53\nsearch train.svc.cluster.local svc.cluster.local cluster.local\n"
                 "options ndots:5\n", {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
                 id="there, too, the cluster's search list for who wants it"),
])
def test_resolver(expected: str, spec: Object) -> None:
    ours = "# mine\nnameserver 127.0.0.53\nsearch office.example\n\noptions edns0\n"

    assert expected == resolver_file(pod(**spec), ours)


@pytest.mark.parametrize(("expected", "wanted"), [
    pytest.param(DEFAULT_CAPABILITIES, {}, id="containerd's set"),
    pytest.param(DEFAULT_CAPABILITIES - {13}, {"drop": ["NET_RAW"]}, id="without one"),
    pytest.param({12}, {"drop": ["ALL"], "add": ["CAP_NET_ADMIN"]}, id="none but one, by its long name"),
])
def test_capabilities(expected: set[int], wanted: Object) -> None:
    assert sorted(expected) == capabilities(wanted, privileged=False)


def test_a_capability_that_does_not_exist_is_said() -> None:
    with pytest.raises(ConfigError, match="no capability named 'FLY'"):
        capabilities({"add": ["FLY"]}, privileged=False)


@pytest.mark.parametrize(("expected", "security"), [
    pytest.param((0, False), {}, id="root of its own, no new rights"),
    pytest.param((1000, False), {"runAsUser": 1000}, id="somebody else"),
    pytest.param((0, True), {"allowPrivilegeEscalation": True}, id="new rights when asked for"),
    pytest.param((0, True), {"privileged": True}, id="privileged"),
])
def test_security_context(expected: tuple[int, bool], security: Object) -> None:
    plan = planned(pod({"name": "main", "securityContext": security}))

    assert expected == (plan["user"], plan["new_privileges"])


def test_not_root_and_no_user_given_is_refused() -> None:
    with pytest.raises(ConfigError, match="runAsNonRoot"):
        planned(pod({"name": "main", "securityContext": {"runAsNonRoot": True}}))


def test_an_image_shows_directories_and_files_read_only() -> None:
    image = Image("x", visible=(Path("/e/env"), Path("/e/env/lib")), files={"/opt/train.py": Path("/src/train.py")})

    shown = [(bind["source"], bind["target"], bind["readonly"]) for bind in planned(pod(), image)["root"]["binds"][:-1]]

    assert [("/e/env", "/e/env", True), ("/src/train.py", "/opt/train.py", True)] == shown


@pytest.mark.parametrize(("expected", "home"), [
    pytest.param(["/root", "/home"], "/home/anna", id="below /home: hidden with it"),
    pytest.param(["/root", "/home", "/data/people/anna"], "/data/people/anna", id="elsewhere: hidden too"),
    pytest.param(["/root", "/home"], "/", id="never the whole machine"),
    pytest.param(["/root", "/home"], "/usr", id="nor a part that everybody needs"),
    pytest.param(["/root", "/home"], "", id="nobody's home"),
])
def test_homes(expected: list[str], home: str) -> None:
    assert expected == homes(home, uid=0)
