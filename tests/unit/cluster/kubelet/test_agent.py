"""The whole node against the embedded API server, with real pods. The last test runs all of it as an ordinary user."""

import asyncio
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.cluster.kubelet.node import (
    PATIENCE,
    SYSTEM_PYTHON,
    Node,
    Programs,
    as_an_ordinary_user,
    running,
    soon,
)

from trainmaster.api.core import CONFIG_MAPS, LEASES, NODES, PODS, SECRETS, SERVICES
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import holder, records
from trainmaster.cluster.kubelet.main import NotPossible, run
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import RealClock
from trainmaster.testing.builders import pod as built


async def test_a_pod_from_its_start_to_its_end(node: Node) -> None:
    await node.pod("a", "echo hello; exit 3")

    status = (await node.phase("a", "Failed", "Succeeded"))["status"]

    container = status["containerStatuses"][0]
    assert ("Failed", 3, "Error") == (
        status["phase"], container["state"]["terminated"]["exitCode"], container["state"]["terminated"]["reason"],
    )
    assert (0, False, "10.88.0.1") == (container["restartCount"], container["ready"], status["hostIP"])
    assert status["podIP"].startswith("10.88.")
    assert "False" == next(one["status"] for one in status["conditions"] if one["type"] == "PodReadyToStartContainers")
    assert (200, "hello\n") == await node.log("a")
    assert (await node.event("Pulling")).startswith('Pulling image "busybox"')
    assert "Started container main" == await node.event("Started")


@pytest.mark.parametrize(("expected", "image"), [
    pytest.param('Successfully pulled image "busybox" in ', "busybox", id="made"),
    pytest.param('Container image "here" already present on machine', "here", id="or there"),
])
async def test_an_image(node: Node, expected: str, image: str) -> None:
    await node.pod("a", "exit 0", image=image)

    assert (await node.event("Pulled")).startswith(expected)


async def test_the_node_says_what_it_offers(node: Node) -> None:
    found = (await node.client.get(NODES, "here"))["status"]

    assert ("8", "16Gi", "2") == tuple(found["allocatable"][name] for name in ("cpu", "memory", "example.com/gpu"))
    assert {"Ready", "DiskPressure", "MemoryPressure", "PIDPressure"} <= {one["type"] for one in found["conditions"]}
    assert "True" == next(one["status"] for one in found["conditions"] if one["type"] == "Ready")
    assert "ok" == await node.ask("GET", "/healthz")


async def test_the_node_keeps_a_lease(node: Node) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotFound):
                lease = await node.client.get(LEASES, "here", "kube-node-lease")
                break
            await asyncio.sleep(0.01)      # the agent writes it when it comes to it, and tells nobody

    assert "here" == lease["spec"]["holderIdentity"]


@pytest.mark.parametrize(("expected", "script", "container"), [
    pytest.param("my words", "printf 'my words' > /dev/termination-log; exit 1", {}, id="written by the container"),
    pytest.param("there", "printf there > /tmp/end; exit 1", {"terminationMessagePath": "/tmp/end"}, id="elsewhere"),
    pytest.param("it broke\n", "echo it broke; exit 1", {"terminationMessagePolicy": "FallbackToLogsOnError"},
                 id="or the end of its log"),
    pytest.param(None, "echo fine", {"terminationMessagePolicy": "FallbackToLogsOnError"}, id="but only on failure"),
])
async def test_last_words(expected: str | None, script: str, container: Object, node: Node) -> None:
    made = built("a", node="here", command=("/bin/sh", "-c", script))
    made["spec"]["containers"][0] |= container
    await node.client.create(PODS, made)

    status = (await node.phase("a", "Failed", "Succeeded"))["status"]["containerStatuses"][0]

    assert expected == status["state"]["terminated"].get("message")


async def test_pods_find_each_other_by_the_names_of_services(node: Node) -> None:
    await node.client.create(SERVICES, {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "one", "namespace": "default"},
        "spec": {"clusterIP": "None", "selector": {"app": "one"}, "ports": [{"port": 9000}]},
    })
    serve = ("import socket; s = socket.create_server(('', 9000)); print('ready', flush=True); "
             "c = s.accept()[0]; c.sendall(c.recv(9)[::-1])")
    ask = "import socket; c = socket.create_connection(('one.default.svc', 9000)); c.sendall(b'abc'); print(c.recv(9))"
    await node.pod("one", f'exec {SYSTEM_PYTHON} -c "{serve}"')
    await node.phase("one", "Running")
    await node.heard("one", "ready")
    await node.pod("two", f'getent hosts nowhere || echo none; {SYSTEM_PYTHON} -c "{ask}"')

    await node.phase("two", "Succeeded")

    assert (200, "none\nb'cba'\n") == await node.log("two")


async def test_a_container_that_fails_comes_back_and_then_waits(node: Node) -> None:
    await node.pod("a", "echo attempt; exit 1", restart="OnFailure")

    def waits(thing: Object) -> bool:
        states = thing["status"].get("containerStatuses") or [{}]
        return (states[0].get("state", {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"

    status = (await node.until("a", waits))["status"]

    container = status["containerStatuses"][0]
    assert ("Running", 1, 1) == (
        status["phase"], container["restartCount"], container["lastState"]["terminated"]["exitCode"],
    )
    assert "Back-off 10s restarting failed container=main" in await node.event("BackOff")
    assert (200, "attempt\n") == await node.log("a", previous="true")
    await node.client.delete(PODS, "a", "default")
    await node.gone("a")


@pytest.mark.parametrize(("expected", "script", "grace"), [
    pytest.param(0, "trap 'exit 0' TERM; echo ready; sleep 1000 & wait", 30, id="one that listens ends as it likes"),
    pytest.param(143, "echo ready; exec sleep 1000", 30, id="one that does not care ends by the signal"),
    pytest.param(137, "trap '' TERM; echo ready; while :; do sleep 1; done", 1, id="one that refuses is killed"),
])
async def test_deletion(expected: int, script: str, grace: int, node: Node) -> None:
    """The object goes when the processes have gone, and everything on disk with it."""
    await node.pod("a", script)
    await node.phase("a", "Running")
    await node.heard("a", "ready")
    last: list[Object] = []

    def ended(thing: Object) -> bool:
        last.append(thing)
        return "terminated" in thing["status"]["containerStatuses"][0]["state"]

    watching = asyncio.create_task(node.until("a", ended))
    await asyncio.sleep(0)
    await node.client.delete(PODS, "a", "default", grace=grace)

    await watching
    await node.gone("a")

    assert expected == last[-1]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    await soon(lambda: not node.files())


async def test_a_pod_that_is_deleted_by_force_leaves_nothing(node: Node) -> None:
    await node.pod("a", "trap '' TERM; while :; do sleep 1; done")
    await node.phase("a", "Running")
    await node.client.delete(PODS, "a", "default", grace=0)

    await soon(lambda: not node.files())


async def test_init_containers_volumes_and_environment(node: Node) -> None:
    about = {"namespace": "default"}
    await node.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", **about},
                                           "data": {"rate": "0.1"}})
    await node.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", **about},
                                       "data": {"token": "aHVzaA=="}})
    shared = [{"name": "shared", "mountPath": "/shared"}]
    script = "cat /shared/x /conf/rate; df /mem | grep -o tmpfs; echo $TOKEN $ME $(ME)"
    made = built("a", node="here", command=("/bin/sh", "-c", script))
    made["spec"]["initContainers"] = [
        {"name": name, "image": "busybox", "command": ["/bin/sh", "-c", script], "volumeMounts": shared}
        for name, script in (("first", "sleep 0.2; echo 1 > /shared/x"), ("second", "echo 2 >> /shared/x"))
    ]
    made["spec"]["containers"][0] |= {
        "volumeMounts": [*shared, {"name": "conf", "mountPath": "/conf"}, {"name": "mem", "mountPath": "/mem"}],
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
                {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    made["spec"]["volumes"] = [
        {"name": "shared", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "m"}},
        {"name": "mem", "emptyDir": {"medium": "Memory"}},
    ]
    await node.client.create(PODS, made)

    status = (await node.phase("a", "Failed", "Succeeded"))["status"]

    assert (200, "1\n2\n0.1tmpfs\nhush a a\n") == await node.log("a")
    assert ["Completed", "Completed"] == [
        one["state"]["terminated"]["reason"] for one in status["initContainerStatuses"]
    ]


@pytest.mark.parametrize(("reason", "words", "change"), [
    pytest.param("FailedMount", "cannot mount (nfs)", {"volume": {"nfs": {"server": "x", "path": "/"}}},
                 id="a volume of a kind we do not have"),
    pytest.param("FailedMount", 'configmap "none" not found', {"volume": {"configMap": {"name": "none"}}},
                 id="a volume of an object that is not there"),
    pytest.param("Failed", "there is no such image", {"image": "nowhere"}, id="an image that cannot be had"),
    pytest.param("Failed", 'secret "none" not found', {"env": {"secretKeyRef": {"name": "none", "key": "k"}}},
                 id="a variable from an object that is not there"),
    pytest.param("Failed", 'seccompProfile "strict.json" is not on this node',
                 {"security": {"seccompProfile": {"type": "Localhost", "localhostProfile": "strict.json"}}},
                 id="a barrier that we do not have"),
])
async def test_a_pod_that_cannot_start_says_why_and_waits(reason: str, words: str, change: Object, node: Node) -> None:
    made = built("a", node="here", command=("true",))
    if "image" in change:
        made["spec"]["containers"][0]["image"] = change["image"]
    if "env" in change:
        made["spec"]["containers"][0]["env"] = [{"name": "X", "valueFrom": change["env"]}]
    if "volume" in change:
        made["spec"]["volumes"] = [{"name": "v", **change["volume"]}]
    made["spec"]["containers"][0]["securityContext"] = change.get("security", {})
    await node.client.create(PODS, made)

    assert words in await node.event(reason)
    assert "Pending" == (await node.phase("a", "Pending"))["status"]["phase"]


async def test_logs_are_followed_to_the_end(node: Node) -> None:
    await node.pod("a", "for i in 1 2 3; do echo $i; sleep 0.1; done")
    await node.phase("a", "Running")

    assert (200, "1\n2\n3\n") == await asyncio.wait_for(node.log("a", follow="true"), PATIENCE)
    assert (200, "3\n") == await node.log("a", tailLines="1")


async def test_a_log_of_nobody(node: Node) -> None:
    await node.pod("a", "true", image="nowhere")
    await node.event("Failed")

    assert (404, 'pod "b" not found') == await node.log("b")
    assert 400 == (await node.log("a"))[0]
    assert (404, 'container "other" not found in pod "a"') == await node.log("a", "other")


async def test_pods_go_on_without_the_agent_and_are_adopted(node: Node) -> None:
    """One ends meanwhile, with a code and a last line; one runs on; neither is started again."""
    flag = node.settings.run.parent / "flag"
    flag.mkdir()
    for name, script in (
        ("ends", "echo first; until [ -e /f/go ]; do sleep 0.02; done; echo last; touch /f/gone; exit 7"),
        ("runs", "echo x >> /f/starts; exec sleep 1000"),
    ):
        made = built(name, node="here", command=("/bin/sh", "-c", script))
        made["spec"]["volumes"] = [{"name": "f", "hostPath": {"path": str(flag)}}]
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "f", "mountPath": "/f"}]
        await node.client.create(PODS, made)
    before = await node.phase("runs", "Running")
    await node.phase("ends", "Running")
    await soon((flag / "starts").exists)
    await node.stop()
    (flag / "go").touch()
    await soon((flag / "gone").exists)

    await node.start()

    ended = (await node.phase("ends", "Failed", "Succeeded"))["status"]["containerStatuses"][0]
    assert 7 == ended["state"]["terminated"]["exitCode"]
    assert (200, "first\nlast\n") == await node.log("ends")
    await node.client.delete(PODS, "runs", "default")
    await node.gone("runs")
    assert "x\n" == (flag / "starts").read_text()
    assert before["status"]["podIP"]


async def test_pods_of_a_later_release_are_left_alone(node: Node) -> None:
    """An agent that is older than what runs could misread it; the right one then takes it up as if nothing had been."""
    await node.pod("a", "exec sleep 1000")
    before = await node.phase("a", "Running")
    await node.stop()
    (folder,) = node.settings.pods.glob("*/main/0")
    record = records.read(str(folder), records.SHIM)
    assert record is not None
    records.write(str(folder), records.SHIM, {**record, "protocol": records.PROTOCOL + 1})

    with pytest.raises(NotPossible, match="a later release of Trainmaster"):
        await run([(node.settings, node.client)], images=Programs(), clock=RealClock(), ready=lambda: None)

    assert holder.alive(node.settings.run)
    records.write(str(folder), records.SHIM, {**record, "added": "by a release that says more"})
    await node.start()
    after = await node.phase("a", "Running", "Failed")
    assert before["status"]["containerStatuses"] == after["status"]["containerStatuses"]


async def test_a_pod_deleted_while_no_agent_was_there_is_ended(node: Node) -> None:
    await node.pod("a", "exec sleep 1000")
    await node.phase("a", "Running")
    await node.stop()
    await node.client.delete(PODS, "a", "default", grace=0)

    await node.start()

    await soon(lambda: not node.files())


async def test_everything_dies_with_the_holder_and_is_told(node: Node) -> None:
    """What may be restarted is, in new namespaces; what may not has failed, with a reason."""
    await node.pod("once", "exec sleep 1000")
    await node.pod("again", "exec sleep 1000", restart="Always")
    await node.phase("once", "Running")
    await node.phase("again", "Running")

    assert await asyncio.to_thread(holder.end, node.settings.run)

    once = (await node.phase("once", "Failed"))["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (137, "ContainerStatusUnknown") == (once["exitCode"], once["reason"])
    await node.until("again", lambda thing: thing["status"]["containerStatuses"][0]["restartCount"] == 1
                     and "running" in thing["status"]["containerStatuses"][0]["state"])
    await node.pod("new", "true")
    await node.phase("new", "Succeeded")


async def test_the_runtime_directory_was_lost(node: Node) -> None:
    """As after a reboot: the API alone remembers."""
    await node.pod("once", "exec sleep 1000")
    await node.pod("again", "exec sleep 1000", restart="Always")
    await node.phase("once", "Running")
    await node.phase("again", "Running")
    await node.stop()
    await asyncio.to_thread(holder.end, node.settings.run)
    remove(node.settings.run)

    await node.start()

    await node.phase("once", "Failed")
    await node.until("again", lambda thing: thing["status"]["containerStatuses"][0]["restartCount"] == 1
                     and "running" in thing["status"]["containerStatuses"][0]["state"])


async def test_drain_ends_every_pod_and_the_namespaces(node: Node) -> None:
    await node.pod("runs", "trap 'exit 0' TERM; echo ready; sleep 1000 & wait", restart="Always")
    await node.pod("done", "true")
    await node.phase("runs", "Running")
    await node.phase("done", "Succeeded")

    assert "drained" == await node.ask("POST", "/drain")

    status = (await node.phase("runs", "Failed", "Succeeded"))["status"]
    assert "terminated" in status["containerStatuses"][0]["state"]
    assert not holder.alive(node.settings.run)
    await node.pod("late", "true")
    assert "Pending" == (await node.until("late", lambda thing: bool(thing["status"].get("phase"))))["status"]["phase"]


async def test_two_nodes_have_the_same_addresses_and_do_not_meet(node: Node) -> None:
    """Two homes on one machine."""
    base = Path(tempfile.mkdtemp(prefix="tm-node-")) / "b"
    base.mkdir(mode=0o700)
    async with running(base) as other:
        await node.pod("a", "exec sleep 1000")
        await other.pod("a", "exec sleep 1000")

        first, second = await node.phase("a", "Running"), await other.phase("a", "Running")

        assert first["status"]["podIP"] == second["status"]["podIP"]


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
def test_all_of_this_as_an_ordinary_user() -> None:
    as_an_ordinary_user(__file__)
