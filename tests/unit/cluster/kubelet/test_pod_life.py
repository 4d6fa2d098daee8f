"""What pods live through between start and end, with real pods: probes, hooks, sidecars."""

import io
import os
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.cluster.controllers.stage import at_work
from tests.unit.cluster.kubelet.node import SYSTEM_PYTHON, Node, as_an_ordinary_user, soon

from trainmaster.api.core import CLAIMS, CONFIG_MAPS, PODS, SECRETS, STORAGE_CLASSES
from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.storage.main import Directories, Storage, local_path
from trainmaster.cluster.kubelet import pods, starting
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube.errors import Conflict
from trainmaster.kube.http import HttpTransport
from trainmaster.kube.transport import Request
from trainmaster.runtime.clock import RealClock
from trainmaster.testing.builders import pod as built


def sh(script: str) -> Object:
    return {"exec": {"command": ["/bin/sh", "-c", script]}}


def condition(pod: Object, kind: str) -> str:
    found: str = next(one["status"] for one in pod["status"].get("conditions") or [{"type": kind, "status": ""}]
                      if one["type"] == kind)
    return found


async def create(node: Node, name: str, script: str, container: Object | None = None, **spec: Any) -> None:
    made = built(name, node="here", command=("/bin/sh", "-c", script), **spec)
    made["spec"]["containers"][0] |= container or {}
    await node.client.create(PODS, made)


async def test_a_container_that_is_found_dead_is_started_again(node: Node) -> None:
    dies_once = "[ -e /marks/seen ] || touch /tmp/dead; touch /marks/seen; exec sleep 1000"
    await create(
        node, "a", dies_once, {
            "livenessProbe": {**sh("test ! -e /tmp/dead || { echo dead; false; }"), "periodSeconds": 1,
                              "failureThreshold": 2, "timeoutSeconds": 10, "terminationGracePeriodSeconds": 5},
            "volumeMounts": [{"name": "m", "mountPath": "/marks"}],
        }, restart="Always", volumes=[{"name": "m", "emptyDir": {}}],
    )

    status = (await node.until("a", lambda pod: any(
        one["restartCount"] == 1 and one["ready"] for one in pod["status"].get("containerStatuses") or ()
    )))["status"]["containerStatuses"][0]

    assert (143, "Error") == tuple(status["lastState"]["terminated"][key] for key in ("exitCode", "reason"))
    assert "Liveness probe failed: dead\n" == await node.event("Unhealthy")
    assert "Container main failed liveness probe, will be restarted" == await node.event("Killing")


async def test_a_pod_is_ready_when_its_server_is(node: Node) -> None:
    server = f"cd /www && {SYSTEM_PYTHON} -m http.server 8080 2>/dev/null"
    await create(
        node, "a", server, {
            "readinessProbe": {"httpGet": {"path": "/ok", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1,
                               "timeoutSeconds": 10},
            "startupProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 60},
            "ports": [{"name": "web", "containerPort": 8080}],
            "volumeMounts": [{"name": "w", "mountPath": "/www"}],
        }, volumes=[{"name": "w", "emptyDir": {}}],
    )

    started = await node.until("a", lambda pod: any(
        one["started"] for one in pod["status"].get("containerStatuses") or ()
    ))
    assert ("False", "False") == (condition(started, "Ready"), condition(started, "ContainersReady"))
    page = next((node.settings.volumes / "pods").iterdir()) / "w" / "ok"
    page.write_text("yes")
    await node.until("a", lambda pod: condition(pod, "Ready") == "True")
    page.unlink()
    await node.until("a", lambda pod: condition(pod, "Ready") == "False")

    status = (await node.client.get(PODS, "a", "default"))["status"]
    assert 0 == status["containerStatuses"][0]["restartCount"]
    assert "running" in status["containerStatuses"][0]["state"]


async def test_hooks_run_after_the_start_and_before_the_end(node: Node) -> None:
    await create(
        node, "a", "trap 'echo asked >> /marks/order; exit 0' TERM; echo ready; sleep 1000 & wait", {
            "lifecycle": {"postStart": sh("echo begun >> /marks/order"),
                          "preStop": sh("sleep 0.3; echo before >> /marks/order")},
            "volumeMounts": [{"name": "m", "mountPath": "/marks"}],
        }, volumes=[{"name": "m", "emptyDir": {}}],
    )
    await node.phase("a", "Running")
    order = next((node.settings.volumes / "pods").iterdir()) / "m" / "order"
    assert "begun\n" == order.read_text(), "a container is running when its postStart hook is over"
    handle = order.open()
    await node.heard("a", "ready")

    await node.client.delete(PODS, "a", "default", grace=60)
    await node.gone("a")

    assert ["begun\n", "before\n", "asked\n"] == handle.readlines()
    handle.close()


async def test_a_container_whose_hook_fails_is_ended(node: Node) -> None:
    await create(node, "a", "exec sleep 1000", {"lifecycle": {"postStart": sh("exit 3")}})

    status = (await node.phase("a", "Failed"))["status"]["containerStatuses"][0]

    assert 143 == status["state"]["terminated"]["exitCode"]
    assert "PostStartHook failed" == await node.event("FailedPostStartHook")
    assert "FailedPostStartHook" == await node.event("Killing")


async def test_a_pod_that_runs_for_too_long_is_ended(node: Node) -> None:
    await create(node, "a", "exec sleep 1000", restart="Always")
    await node.phase("a", "Running")
    await node.client.patch(PODS, "a", "default", {"spec": {"activeDeadlineSeconds": 1}})

    status = (await node.phase("a", "Failed"))["status"]

    assert ("DeadlineExceeded", 143) == (
        status["reason"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    )
    assert "Pod was active on the node longer than the specified deadline" == await node.event("DeadlineExceeded")


async def test_sidecars_begin_before_and_end_after(node: Node) -> None:
    def says(name: str) -> Object:
        says = f"trap 'echo -{name} >> /marks/order; exit 0' TERM; echo +{name} >> /marks/order; sleep 1000 & wait"
        return {
            "name": name, "image": "busybox", "command": ["/bin/sh", "-c", says], "restartPolicy": "Always",
            "volumeMounts": [{"name": "m", "mountPath": "/marks"}],
            "startupProbe": {**sh(f"grep -q +{name} /marks/order"), "periodSeconds": 1, "timeoutSeconds": 10},
        }

    await create(
        node, "a", "echo +main >> /marks/order; sleep 0.5; echo -main >> /marks/order",
        {"volumeMounts": [{"name": "m", "mountPath": "/marks"}]}, initContainers=[says("one"), says("two")],
        volumes=[{"name": "m", "emptyDir": {}}],
    )

    pod = await node.phase("a", "Succeeded", "Failed")

    order = next((node.settings.volumes / "pods").iterdir()) / "m" / "order"
    assert ["+one", "+two", "+main", "-main", "-two", "-one"] == order.read_text().split()
    assert "Succeeded" == pod["status"]["phase"]
    assert ["Completed", "Completed"] == [
        one["state"]["terminated"]["reason"] for one in pod["status"]["initContainerStatuses"]
    ]


async def test_an_agent_that_comes_later_goes_on_probing(node: Node) -> None:
    await create(node, "a", "exec sleep 1000", {
        "livenessProbe": {**sh("test ! -e /marks/dead"), "periodSeconds": 1, "failureThreshold": 1,
                          "timeoutSeconds": 10},
        "readinessProbe": {**sh("true"), "periodSeconds": 1, "timeoutSeconds": 10},
        "volumeMounts": [{"name": "m", "mountPath": "/marks"}],
    }, volumes=[{"name": "m", "emptyDir": {}}])
    await node.until("a", lambda pod: condition(pod, "Ready") == "True")
    before = (await node.client.get(PODS, "a", "default"))["status"]["conditions"]

    await node.stop()
    await node.start()
    assert before == (await node.client.get(PODS, "a", "default"))["status"]["conditions"], "ready all the time"
    (next((node.settings.volumes / "pods").iterdir()) / "m" / "dead").touch()

    await node.phase("a", "Failed")
    assert "Container main failed liveness probe" == await node.event("Killing")


async def test_files_of_a_running_pod_follow_their_objects(node: Node) -> None:
    """In one swap, and soon; a subPath stays as it was."""
    settings: Object = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "one"},
                        "metadata": {"name": "settings", "namespace": "default"}}
    await node.client.create(CONFIG_MAPS, settings)
    await create(
        node, "a", "until grep -q two /v/a; do sleep 0.05; done; cat /v/a /one; echo; ls /v; ! (echo > /v/a) 2>&-", {
            "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/one", "subPath": "a"}],
        }, volumes=[{"name": "v", "configMap": {"name": "settings"}}],
    )
    await node.phase("a", "Running")

    await node.client.patch(CONFIG_MAPS, "settings", "default", {"data": {"a": "two", "b": "new"}})
    file = next((node.settings.volumes / "pods").iterdir()) / "v" / "a"
    await soon(lambda: file.read_text() == "two")

    assert "Succeeded" == (await node.phase("a", "Succeeded", "Failed"))["status"]["phase"], "and it cannot be written"
    assert (200, "twoone\na\nb\n") == await node.log("a")


async def test_a_pod_begins_as_soon_as_what_it_waits_for_is_there(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only at the next try."""
    monkeypatch.setattr(starting, "RETRY", timedelta(hours=1))
    await create(node, "a", "test \"$WORD\" = hello", {
        "env": [{"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "w"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }, volumes=[{"name": "v", "secret": {"secretName": "key"}}])
    assert 'MountVolume.SetUp failed for volume "v" : secret "key" not found' == await node.event("FailedMount")

    about = {"namespace": "default"}
    await node.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {**about, "name": "key"}})
    assert 'Error: configmap "words" not found' == await node.event("Failed")
    await node.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"w": "hello"},
                                           "metadata": {**about, "name": "words"}})

    await node.phase("a", "Succeeded")


@asynccontextmanager
async def storage(node: Node) -> AsyncIterator[None]:
    """The controller that binds claims, beside the node."""
    await node.client.create(STORAGE_CLASSES, local_path())
    made = Storage(node.client, RealClock(), Directories(node.settings.volumes, remove))
    async with at_work(*(one.run() for one in made.informers), made.controller.run()):
        yield


async def test_pods_share_a_claim_and_its_files_outlive_them(node: Node) -> None:
    """As users that are not root, without anybody's chmod."""
    async with storage(node):
        await node.client.create(CLAIMS, {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        })
        volume = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
        await create(node, "writer", "echo saved > /data/model; stat -c %g /data/model; mkdir /data/deep", {
            "volumeMounts": [{"name": "d", "mountPath": "/data"}],
        }, volumes=[volume], securityContext={"runAsUser": 1234, "runAsGroup": 1234, "fsGroup": 2345})
        await node.phase("writer", "Succeeded")
        group = 2345 if os.geteuid() == 0 else 0
        assert (200, f"{group}\n") == await node.log("writer")
        await create(node, "reader", "cat /data/model; touch /data/model || echo closed; echo x > /part/y", {
            "env": [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": "d", "mountPath": "/data", "readOnly": True},
                             {"name": "d", "mountPath": "/part", "subPathExpr": "of-$(WHO)"}],
        }, volumes=[volume], securityContext={"runAsUser": 4321, "fsGroup": 2345})
        await node.phase("reader", "Succeeded")

        (place,) = node.settings.volumes.glob("pvc-*_default_data")
        assert ["deep", "model", "of-reader"] == sorted(entry.name for entry in place.iterdir())
        assert "saved\n" in (await node.log("reader"))[1]
        assert "closed\n" in (await node.log("reader"))[1]
        for pod in ("writer", "reader"):
            await node.client.delete(PODS, pod, "default", grace=0)
            await node.gone(pod)
        assert place.exists()
        await node.client.delete(CLAIMS, "data", "default")
        await soon(lambda: not place.exists())


async def test_a_careful_owner_has_pods_of_other_users(node: Node) -> None:
    """Whatever the umask was when the cluster was started."""
    await node.stop()
    before = os.umask(0o077)
    try:
        await node.start()
        about = {"name": "m", "namespace": "default"}
        await node.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about,
                                               "data": {"a": "read "}})
        script = "cat /c/a && echo x > ./here && cat /etc/hosts > /tmp/hosts && echo y > /e/y && echo all"
        await create(node, "a", script, {"workingDir": "/work/deep", "volumeMounts": [
            {"name": "c", "mountPath": "/c"}, {"name": "e", "mountPath": "/e"}, {"name": "e", "mountPath": "/work/deep",
                                                                                 "subPath": "new/inner"},
        ]}, volumes=[{"name": "c", "configMap": {"name": "m"}}, {"name": "e", "emptyDir": {}}],
            securityContext={"runAsUser": 1234, "runAsGroup": 1234})

        await node.phase("a", "Succeeded", "Failed")
    finally:
        os.umask(before)

    assert (200, "read all\n") == await node.log("a")


async def test_a_pod_that_fills_its_disk_harms_itself_alone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "MEASURED_EVERY", 0.2)
    await node.stop()
    await node.start()
    write = "dd if=/dev/zero of=/{}/x bs=1M count=3 2>&-; exec sleep 1000"
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": "2Mi"}}]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/cache"}]}

    await create(node, "full", write.format("cache"), mounts, volumes=volumes, restart="Always")
    await create(node, "modest", write.format("tmp"), mounts, volumes=volumes)

    status = (await node.phase("full", "Failed"))["status"]
    assert "Evicted" == status["reason"]
    assert 'Usage of EmptyDir volume "v" exceeds the limit "2Mi". ' == status["message"]
    assert "Running" == (await node.phase("modest", "Running", "Failed"))["status"]["phase"]


async def test_memory_that_containers_share_has_its_limits(node: Node) -> None:
    await create(node, "a", "df -m /dev/shm /m /big | awk 'NR>1 {print $2}'", {"volumeMounts": [
        {"name": "m", "mountPath": "/m"}, {"name": "big", "mountPath": "/big"},
    ]}, volumes=[{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
                 {"name": "big", "emptyDir": {"medium": "Memory", "sizeLimit": "200Mi"}}])

    await node.phase("a", "Succeeded")

    assert (200, "64\n8\n200\n") == await node.log("a")


async def test_shared_memory_as_large_as_the_machines(node: Node) -> None:
    """What most who want the machine's IPC namespace want of it. That it is not the machine's own is said."""
    await create(node, "a", "test $(df -m /dev/shm | awk 'NR>1 {print $2}') -gt 64", hostIPC=True)

    await node.phase("a", "Succeeded")

    assert "as large as the machine's, but of its own" in await node.event("NotHonoured")


async def test_a_part_of_a_volume_in_memory(node: Node) -> None:
    """It is made when it is missing, and belongs to who owns the volume."""
    one = "echo x > /part/file; until [ -e /all/seen ]; do sleep 0.05; done"
    made = built("a", node="here", command=("/bin/sh", "-c", one),
                 volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}],
                 securityContext={"fsGroup": 123} if os.geteuid() == 0 else {})
    other = "until [ -e /all/one/two/file ]; do sleep 0.05; done; stat -c %g /all /all/one/two/file; touch /all/seen"
    made["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "m", "mountPath": "/part", "subPath": "one/two"}, {"name": "m", "mountPath": "/all"}]
    made["spec"]["containers"].append({"name": "other", "image": "busybox", "command": ["/bin/sh", "-c", other],
                                       "volumeMounts": [{"name": "m", "mountPath": "/all"}]})
    await node.client.create(PODS, made)

    await node.phase("a", "Succeeded")

    group = "123" if os.geteuid() == 0 else "0"
    assert (200, f"{group}\n{group}\n") == await node.log("a", "other")


@pytest.mark.parametrize("volume", [
    pytest.param({"emptyDir": {}}, id="which is seen beforehand"),
    pytest.param({"emptyDir": {"medium": "Memory"}}, id="or only when the container is made, as when it has changed"),
])
async def test_a_part_of_a_volume_that_leads_out_of_it_is_tried_again(
    volume: Object, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was made yet, so it is no attempt: whatever the restartPolicy, the container begins when it can."""
    monkeypatch.setattr(starting, "RETRY", timedelta(milliseconds=200))
    made = built("a", node="here", command=("/bin/sh", "-c", "echo here > /part/file"),
                 volumes=[{"name": "v", **volume}, {"name": "m", "emptyDir": {}}], restartPolicy="Never")
    whole = {**made["spec"]["containers"][0], "volumeMounts": [{"name": "v", "mountPath": "/all"},
                                                               {"name": "m", "mountPath": "/marks"}]}
    made["spec"]["initContainers"] = [{**whole, "name": "first", "command": ["/bin/sh", "-c", "ln -s /etc /all/out"]}]
    mend = ("until [ -e /marks/mend ]; do sleep 0.05; done; rm /all/out; "
            "until [ -s /all/out/x/file ]; do sleep 0.05; done; cat /all/*/x/*")
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/part", "subPath": "out/x"}]
    made["spec"]["containers"].append({**whole, "name": "other", "command": ["/bin/sh", "-c", mend]})
    await node.client.create(PODS, made)

    def refused(pod: Object) -> bool:
        states = {one["name"]: one["state"] for one in pod["status"].get("containerStatuses") or ()}
        return "running" in states.get("other", {}) and (
            states["main"].get("waiting", {}).get("reason") == "CreateContainerConfigError")

    waiting = (await node.until("a", refused))["status"]["containerStatuses"][0]["state"]["waiting"]
    assert "leads out of its volume" in waiting["message"]
    assert f"Error: {waiting['message']}" == await node.event("Failed")
    (next((node.settings.volumes / "pods").iterdir()) / "m" / "mend").touch()

    status = (await node.phase("a", "Succeeded", "Failed"))["status"]
    assert ("Succeeded", [0, 0]) == (status["phase"], [one["restartCount"] for one in status["containerStatuses"]])
    assert (200, "here\n") == await node.log("a", "other")


async def files(node: Node, pod: str, path: str) -> dict[str, bytes] | str:
    """What the node packs of an ended container."""
    transport = HttpTransport("http://kubelet", unix_socket=node.settings.socket)
    try:
        answer = await transport.send(Request("GET", f"/containerFiles/default/{pod}/main", (("path", path),)))
    finally:
        await transport.close()
    if answer.status != 200:
        return answer.body.decode()
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        return {one.name: (tar.extractfile(one) or io.BytesIO()).read() for one in tar if one.isfile()}


async def test_what_an_ended_container_wrote_can_be_fetched(node: Node) -> None:
    """Also after everything was stopped, until the pod is gone."""
    write = ("echo weights > model; mkdir -p run && echo 3 > run/step; echo home > /root/h; echo cached > /cache/c; "
             "ln -s /etc/passwd out")
    await create(node, "a", write, {"workingDir": "/work", "volumeMounts": [{"name": "v", "mountPath": "/cache"}]},
                 volumes=[{"name": "v", "emptyDir": {}}])
    await node.phase("a", "Succeeded")

    for again in (False, True):
        if again:
            assert "drained" == await node.ask("POST", "/drain")
            await node.stop()
            await node.start()
            await node.until("a", lambda _: bool(node.files()))
        assert {"model": b"weights\n"} == await files(node, "a", "model")
        assert {"./model": b"weights\n", "./run/step": b"3\n"} == await files(node, "a", ".")
        assert {"cache/c": b"cached\n"} == await files(node, "a", "/cache"), "not the name of the volume"
        assert {"h": b"home\n"} == await files(node, "a", "/root/h")
        assert {"c": b"cached\n"} == await files(node, "a", "/cache/c")
        assert "leads out" in str(await files(node, "a", "out"))
        assert "No such file" in str(await files(node, "a", "../none"))

    await node.client.delete(PODS, "a", "default", grace=0)
    await node.gone("a")
    await soon(lambda: not node.files())


async def test_containers_that_share_their_processes_see_each_other(node: Node) -> None:
    """And yet each ends with all that it forked, and without the others."""
    made = built("a", node="here", command=("/bin/sh", "-c", "sleep 4321 & sleep 1234"), shareProcessNamespace=True)
    other = ("until pids=$(grep -lsa 'sleep.1234' /proc/[0-9]*/cmdline); do sleep 0.05; done; "
             "for file in $pids; do pid=${file#/proc/}; kill ${pid%/cmdline}; done; "
             "while grep -qsa 'sleep.4321' /proc/[0-9]*/cmdline; do sleep 0.05; done; cat /proc/1/comm")
    made["spec"]["containers"].append(
        {"name": "other", "image": "busybox", "command": ["/bin/sh", "-c", other.replace("sleep.", "^sleep.")]}
    )
    await node.client.create(PODS, made)

    status = (await node.phase("a", "Failed"))["status"]

    ends = {one["name"]: one["state"]["terminated"]["exitCode"] for one in status["containerStatuses"]}
    assert {"main": 143, "other": 0} == ends
    assert (200, "tm-pause\n") == await node.log("a", "other")


async def test_a_container_with_another_image_begins_anew(node: Node) -> None:
    """Whatever its policy, as an end that is not its own."""
    await create(node, "a", "trap 'exit 0' TERM; echo ready; sleep 4321 & wait", restartPolicy="Never")
    await node.phase("a", "Running")
    await node.heard("a", "ready")
    for attempt in range(5):                     # the node writes too
        made = await node.client.get(PODS, "a", "default")
        made["spec"]["containers"][0]["image"] = "other"
        with suppress(Conflict) if attempt < 4 else nullcontext():
            await node.client.replace(PODS, made)
            break

    def again(pod: Object) -> bool:
        (one,) = pod["status"]["containerStatuses"]
        return "running" in one["state"] and one["restartCount"] == 1

    (status,) = (await node.until("a", again))["status"]["containerStatuses"]
    assert ("other", 0) == (status["imageID"], status["lastState"]["terminated"]["exitCode"])


async def test_a_pod_that_is_deleted_before_it_began_has_failed(node: Node) -> None:
    """Whoever keeps its object, as the controller of Jobs does until it has counted it, waits for an end."""
    made = built("a", node="here", command=("true",))
    made["metadata"]["finalizers"] = ["example.com/counted"]
    made["spec"]["containers"][0]["image"] = "nowhere"
    await node.client.create(PODS, made)
    await node.phase("a", "Pending")
    await node.client.delete(PODS, "a", "default")

    await node.phase("a", "Failed")
    await node.client.patch(PODS, "a", "default", {"metadata": {"finalizers": None}})

    await node.gone("a")


async def test_a_visitor_sees_the_processes_of_the_container_it_came_for(node: Node) -> None:
    await create(node, "a", "sleep 1234", terminationGracePeriodSeconds=0)
    await node.phase("a", "Running")
    look = "grep -qsa '^sleep.1234' /proc/[0-9]*/cmdline"
    visitors = [
        {"name": name, "image": "busybox", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
         "command": ["/bin/sh", "-c", script], **target}
        for name, script, target in (
            ("near", f"until {look}; do sleep 0.05; done; echo seen", {"targetContainerName": "main"}),
            ("far", f"{look} && echo seen || echo alone", {}),
        )
    ]
    await node.client.patch(PODS, "a", "default", {"spec": {"ephemeralContainers": visitors}},
                            subresource="ephemeralcontainers")

    def done(pod: Object) -> bool:
        states = [one["state"] for one in pod["status"].get("ephemeralContainerStatuses") or ()]
        return len(states) == len(visitors) and all("terminated" in state for state in states)

    assert "Running" == (await node.until("a", done))["status"]["phase"]
    assert ((200, "seen\n"), (200, "alone\n")) == (await node.log("a", "near"), await node.log("a", "far"))


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
def test_all_of_this_as_an_ordinary_user() -> None:
    as_an_ordinary_user(__file__)
