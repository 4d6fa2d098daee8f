"""What `kubectl get` prints."""

from datetime import timedelta

import orjson
import pytest
from tests.unit.cluster.apiserver.api import MAPS, PODS, TABLE, Api, config_map, pod

from trainmaster.api.meta import Json, Object, timestamp
from trainmaster.cluster.apiserver import tables
from trainmaster.cluster.apiserver.columns import pod_status
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.kinds import BUILT_IN
from trainmaster.cluster.apiserver.tables import duration, table
from trainmaster.testing.clock import NOON

KINDS = {kind.resource.kind: kind for kind in reversed(BUILT_IN)}      # of two versions, the first
HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(("seconds", "expected"), [
    (0, "0s"), (-0.5, "0s"), (-5, "<invalid>"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"), (600, "10m"),
    (179 * 60 + 59, "179m"), (3 * HOUR, "3h"), (3 * HOUR + 300, "3h5m"), (8 * HOUR, "8h"), (47 * HOUR, "47h"),
    (2 * DAY, "2d"), (2 * DAY + HOUR, "2d1h"), (8 * DAY, "8d"), (700 * DAY, "700d"), (730 * DAY, "2y"),
    (735 * DAY, "2y5d"), (3000 * DAY, "8y"),
])
def test_spans_of_time_are_short(seconds: float, expected: str) -> None:
    assert expected == duration(seconds)


def running(**more: Json) -> Object:
    return {"name": "c", "ready": True, "state": {"running": {}}, "restartCount": 0, **more}


def waiting(reason: str) -> Object:
    return {"name": "c", "ready": False, "state": {"waiting": {"reason": reason}}, "restartCount": 0}


def ended(code: int, reason: str = "", **more: Json) -> Object:
    state = {"exitCode": code, **({"reason": reason} if reason else {}), **more}
    return {"name": "c", "ready": False, "state": {"terminated": state}, "restartCount": 0}


@pytest.mark.parametrize(("status", "expected"), [
    pytest.param({"phase": "Pending"}, "Pending", id="nothing but a phase"),
    pytest.param({"phase": "Running", "containerStatuses": [running()]}, "Running", id="running"),
    pytest.param({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, "ContainerCreating",
                 id="being made"),
    pytest.param({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}, "CrashLoopBackOff",
                 id="crashing again and again"),
    pytest.param({"phase": "Succeeded", "containerStatuses": [ended(0, "Completed")]}, "Completed", id="done"),
    pytest.param({"phase": "Failed", "containerStatuses": [ended(1, "Error")]}, "Error", id="failed"),
    pytest.param({"phase": "Failed", "containerStatuses": [ended(3)]}, "ExitCode:3", id="failed without a word"),
    pytest.param({"phase": "Failed", "containerStatuses": [ended(137, signal=9)]}, "Signal:9", id="killed"),
    pytest.param({"phase": "Failed", "reason": "Evicted"}, "Evicted", id="the reason of the pod"),
    pytest.param({"phase": "Running", "containerStatuses": [ended(0, "Completed"), running()],
                  "conditions": [{"type": "Ready", "status": "True"}]}, "Running", id="one done, one ready"),
    pytest.param({"phase": "Running", "containerStatuses": [ended(0, "Completed"), running()]}, "NotReady",
                 id="one done, one running, not ready"),
    pytest.param({"phase": "Pending", "initContainerStatuses": [ended(0), {"name": "d", "state": {"running": {}}}]},
                 "Init:1/2", id="in the second init container"),
    pytest.param({"phase": "Pending", "initContainerStatuses": [ended(2, "Error")]}, "Init:Error",
                 id="an init container failed"),
    pytest.param({"phase": "Pending", "initContainerStatuses": [waiting("CrashLoopBackOff")]}, "Init:CrashLoopBackOff",
                 id="an init container crashes again and again"),
    pytest.param({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
                 "SchedulingGated", id="held by a gate"),
])
def test_the_word_for_a_pod(status: Object, expected: str) -> None:
    thing = {"metadata": {"name": "p"}, "status": status,
             "spec": {"containers": [{}, {}], "initContainers": [{"name": "c"}, {"name": "d"}]}}

    assert expected == pod_status(thing)
    assert pod_status({**thing, "metadata": {"deletionTimestamp": "x"}}) == "Terminating"


AGO = timestamp(NOON - timedelta(minutes=5))
META = {"name": "x", "namespace": "default", "creationTimestamp": AGO}


@pytest.mark.parametrize(("kind", "thing", "expected"), [
    pytest.param("Pod", {"spec": {"containers": [{}, {}], "nodeName": "n"}, "status": {
        "phase": "Running", "podIP": "10.88.0.5", "containerStatuses": [running(restartCount=2, lastState={
            "terminated": {"finishedAt": AGO}}), running(ready=False)]}},
        ["x", "1/2", "Running", "2 (5m ago)", "5m", "10.88.0.5", "n", "<none>", "<none>"], id="a pod that restarted"),
    pytest.param("Node", {"metadata": {**META, "labels": {"node-role.kubernetes.io/control-plane": ""}},
                          "spec": {"unschedulable": True}, "status": {
        "conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1", "osImage": "Debian"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
        ["x", "Ready,SchedulingDisabled", "control-plane", "5m", "v1", "10.0.0.1", "<none>", "Debian", "<unknown>",
         "<unknown>"], id="a cordoned node"),
    pytest.param("Node", {}, ["x", "Unknown", "<none>", "5m", "", "<none>", "<none>", "<unknown>", "<unknown>",
                              "<unknown>"], id="a node that said nothing yet"),
    pytest.param("Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "5m"], id="a namespace"),
    pytest.param("Service", {"spec": {"type": "NodePort", "clusterIP": "10.96.0.2", "selector": {"b": "2", "a": "1"},
                                      "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53,
                                                "protocol": "UDP"}]}},
                 ["x", "NodePort", "10.96.0.2", "<none>", "80:30080/TCP,53/UDP", "5m", "a=1,b=2"], id="a service"),
    pytest.param("Endpoints", {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)],
                                            "ports": [{"port": 80}]}]},
                 ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "5m"], id="endpoints"),
    pytest.param("ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["x", 2, "5m"], id="a config map"),
    pytest.param("Secret", {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "5m"], id="a secret"),
    pytest.param("ServiceAccount", {}, ["x", "5m"], id="a service account"),
    pytest.param("Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "5m"], id="a lease"),
    pytest.param("Event", {"lastTimestamp": AGO, "firstTimestamp": AGO, "type": "Normal", "reason": "Started",
                           "message": " hello\n", "count": 3, "involvedObject": {"kind": "Pod", "name": "p"},
                           "source": {"component": "kubelet", "host": "n"}},
                 ["5m", "Normal", "Started", "pod/p", "", "kubelet, n", "hello", "5m", 3, "x"], id="an event"),
    pytest.param("CustomResourceDefinition", {}, ["x", AGO], id="a definition"),
])
def test_rows(kind: str, thing: Object, expected: list[Json]) -> None:
    found = table(KINDS[kind], [{"metadata": META, **thing}], NOON)

    assert [expected] == [row["cells"] for row in found["rows"]]


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.resource.kind)
def test_every_kind_has_a_row_for_an_empty_object(kind: Kind) -> None:
    found = table(kind, [{"metadata": {"name": "x"}}], NOON)

    assert len(found["rows"][0]["cells"]) == len(found["columnDefinitions"])


class TestOnTheServer:
    async def test_rows_carry_the_metadata(self, api: Api) -> None:
        await api.made(MAPS, config_map("a", {"l": "x"}))
        found = (await api.get(MAPS, accept=TABLE)).json
        about = found["rows"][0]["object"]

        assert ("Table", "meta.k8s.io/v1") == (found["kind"], found["apiVersion"])
        assert ("PartialObjectMetadata", {"l": "x"}) == (about["kind"], about["metadata"]["labels"])
        assert "data" not in about

    @pytest.mark.parametrize(("include", "expected"), [
        pytest.param("Object", "Pod", id="the whole object"),
        pytest.param("Metadata", "PartialObjectMetadata", id="the metadata"),
        pytest.param("None", None, id="nothing"),
    ])
    async def test_what_rows_carry_can_be_chosen(self, api: Api, include: str, expected: str | None) -> None:
        await api.made(PODS, pod())
        found = (await api.get(f"{PODS}/p", f"includeObject={include}", accept=TABLE)).json

        assert expected == found["rows"][0].get("object", {}).get("kind")

    async def test_tables_come_in_pages_too(self, api: Api) -> None:
        for name in "abc":
            await api.made(MAPS, config_map(name))
        found = (await api.get(MAPS, "limit=2", accept=TABLE)).json

        assert (2, 1) == (len(found["rows"]), found["metadata"]["remainingItemCount"])

    @pytest.mark.parametrize(("path", "shape", "kind"), [
        pytest.param(MAPS, "PartialObjectMetadataList", "PartialObjectMetadataList", id="a list"),
        pytest.param(f"{MAPS}/a", "PartialObjectMetadata", "PartialObjectMetadata", id="one"),
    ])
    async def test_metadata_alone(self, api: Api, path: str, shape: str, kind: str) -> None:
        await api.made(MAPS, config_map("a", x="1"))
        found = (await api.get(path, accept=f"application/json;as={shape};g=meta.k8s.io;v=v1")).json

        assert kind == found["kind"]
        assert "data" not in (found["items"][0] if "items" in found else found)


@pytest.mark.parametrize("thing", [
    pytest.param({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": 1}}, id="a pod"),
    pytest.param({"metadata": {"annotations": {"a": '},"spec":{"metadata":{}'}}, "spec": {"metadata": {"name": "no"}}},
                 id="what looks like the end of the metadata"),
    pytest.param({"metadata": {}}, id="nothing else"),
])
def test_metadata_is_found_without_reading_it(thing: Object) -> None:
    assert tables.partial(thing) == orjson.loads(tables.bare(orjson.dumps(thing)))
