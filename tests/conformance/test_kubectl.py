"""The kubectl on this machine and an old one, unmodified, against the embedded API server over TLS.

What a person types in the first hour. The other tests show that an answer is right; these show that kubectl thinks so.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from tests.conformance.conftest import PATIENCE, Cluster, Kubectl

from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.meta import Resource

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tfjobs.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {plural: tfjobs, singular: tfjob, kind: TFJob, shortNames: [tf], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.tfReplicaSpecs.Worker.replicas
        statusReplicasPath: .status.replicaStatuses.Worker.active
    additionalPrinterColumns:
    - {name: State, type: string, jsonPath: '.status.conditions[-1:].type'}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: A job that trains with TensorFlow.
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            description: What to run.
            required: [tfReplicaSpecs]
            properties:
              tfReplicaSpecs:
                type: object
                description: Replicas by role.
                additionalProperties:
                  type: object
                  properties:
                    replicas: {type: integer, format: int32, description: How many.}
                    template: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: tensorflow, image: 'example.com/mnist:1'}]}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: x}}
spec:
  containers:
  - {name: main, image: 'busybox:1'}
  - {name: side, image: 'busybox:1'}
"""


@pytest.fixture
async def job(kubectl: Kubectl) -> None:
    """The definition and one job of it, created as a person would."""
    assert await kubectl.output("create", "-f", "-", given=DEFINITION) == (
        "customresourcedefinition.apiextensions.k8s.io/tfjobs.kubeflow.org created\n")
    assert await kubectl.output("create", "-f", "-", given=JOB) == "tfjob.kubeflow.org/mnist created\n"


@pytest.mark.usefixtures("job")
class TestJobs:
    async def test_get_in_all_outputs(self, kubectl: Kubectl) -> None:
        head, line = (await kubectl.output("get", "tfjobs")).splitlines()
        assert ["NAME", "STATE", "AGE"] == head.split()
        assert re.fullmatch(r"mnist\s+\d+s", line)
        assert "tfjob.kubeflow.org/mnist\n" == await kubectl.output("get", "tf", "-o", "name")
        assert "2" == await kubectl.output("get", "tfjob", "mnist", "-o",
                                           "jsonpath={.spec.tfReplicaSpecs.Worker.replicas}")
        assert "TFJob" == yaml.safe_load(await kubectl.output("get", "tfjob", "mnist", "-o", "yaml"))["kind"]
        items = json.loads(await kubectl.output("get", "tfjobs", "-o", "json"))["items"]
        assert ["mnist"] == [item["metadata"]["name"] for item in items]
        assert "tfjob.kubeflow.org/mnist" in await kubectl.output("get", "all")
        assert "default" in await kubectl.output("get", "tfjobs", "-A", "-o", "wide")

    async def test_what_is_not_there(self, kubectl: Kubectl) -> None:
        done = await kubectl("get", "tfjob", "other")

        assert (1, 'Error from server (NotFound): tfjobs.kubeflow.org "other" not found\n') == (done.code, done.err)

    async def test_strict_validation_names_the_field(self, kubectl: Kubectl) -> None:
        wrong = JOB.replace("name: mnist}", "name: other}").replace("replicas: 2", "replica: 2")
        done = await kubectl("create", "-f", "-", given=wrong)

        assert 1 == done.code
        if kubectl.old:
            assert 'ValidationError(TFJob.spec.tfReplicaSpecs.Worker): unknown field "replica"' in done.err
            return
        assert 'strict decoding error: unknown field "spec.tfReplicaSpecs.Worker.replica"' in done.err
        warned = await kubectl("create", "--validate=warn", "-f", "-", given=wrong)
        assert 0 == warned.code
        assert 'Warning: unknown field "spec.tfReplicaSpecs.Worker.replica"' in warned.err

    async def test_a_wrong_type_names_the_field(self, kubectl: Kubectl) -> None:
        wrong = JOB.replace("replicas: 2", "replicas: many")
        done = await kubectl("create", "--validate=false", "-f", "-", given=wrong)

        assert 1 == done.code
        assert "spec.tfReplicaSpecs.Worker.replicas in body must be of type integer" in done.err

    async def test_apply_makes_and_changes(self, kubectl: Kubectl) -> None:
        other = JOB.replace("name: mnist}", "name: other}")
        assert "tfjob.kubeflow.org/other created\n" == await kubectl.output("apply", "-f", "-", given=other)
        assert "tfjob.kubeflow.org/other unchanged\n" == await kubectl.output("apply", "-f", "-", given=other)
        more = other.replace("replicas: 2", "replicas: 5")
        done = await kubectl("diff", "-f", "-", given=more)
        assert 1 == done.code
        assert re.search(r"\+\s+replicas: 5", done.out)
        assert "tfjob.kubeflow.org/other configured\n" == await kubectl.output("apply", "-f", "-", given=more)
        assert "5" == await kubectl.output("get", "tfjob", "other", "-o",
                                           "jsonpath={.spec.tfReplicaSpecs.Worker.replicas}")

    async def test_label_annotate_patch_and_scale(self, kubectl: Kubectl) -> None:
        await kubectl.output("label", "tfjob", "mnist", "team=a")
        await kubectl.output("annotate", "tfjob", "mnist", "note=hello")
        await kubectl.output("patch", "tfjob", "mnist", "--type=merge", "-p",
                             '{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":3}}}}')
        await kubectl.output("patch", "tfjob", "mnist", "--type=json", "-p",
                             '[{"op":"add","path":"/metadata/labels/more","value":"b"}]')
        await kubectl.output("scale", "tfjob", "mnist", "--replicas=4")
        found = yaml.safe_load(await kubectl.output("get", "tfjob", "mnist", "-o", "yaml"))

        assert {"team": "a", "more": "b"} == found["metadata"]["labels"]
        assert ("hello", 4) == (found["metadata"]["annotations"]["note"],
                                found["spec"]["tfReplicaSpecs"]["Worker"]["replicas"])
        assert "tfjob.kubeflow.org/mnist" in await kubectl.output("get", "tfjobs", "-l", "team in (a,b)", "-o", "name")
        assert "" == await kubectl.output("get", "tfjobs", "-l", "team=c", "-o", "name")

    async def test_wait_sees_the_condition_come(self, kubectl: Kubectl, cluster: Cluster) -> None:
        waiting = asyncio.create_task(kubectl("wait", "--for=condition=Running", "tfjob/mnist", "--timeout=60s"))
        await _watched(cluster)
        await cluster.client.patch(TFJOBS, "mnist", "default", {"status": {"conditions": [
            {"type": "Running", "status": "True"}]}}, subresource="status")
        done = await waiting

        assert (0, "tfjob.kubeflow.org/mnist condition met\n") == (done.code, done.out)
        assert "Running" in await kubectl.output("get", "tfjob", "mnist")

    async def test_get_watch_follows(self, kubectl: Kubectl, cluster: Cluster) -> None:
        process = await asyncio.create_subprocess_exec(
            *kubectl.command("get", "tfjobs", "-w"), env=kubectl.environment, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE):
                assert [b"NAME", b"STATE", b"AGE"] == (await process.stdout.readline()).split()
                assert (await process.stdout.readline()).startswith(b"mnist ")
                await _watched(cluster)
                for state in ("Created", "Running"):
                    await cluster.client.patch(TFJOBS, "mnist", "default", {"status": {"conditions": [
                        {"type": state, "status": "True"}]}}, subresource="status")
                    assert [b"mnist", state.encode()] == (await process.stdout.readline()).split()[:2]
        finally:
            process.terminate()
            await process.wait()

    async def test_describe_shows_the_job_and_its_events(self, kubectl: Kubectl, cluster: Cluster) -> None:
        uid = await kubectl.output("get", "tfjob", "mnist", "-o", "jsonpath={.metadata.uid}")
        await cluster.client.create(EVENTS, {
            "metadata": {"name": "mnist.1", "namespace": "default"}, "reason": "TFJobCreated", "type": "Normal",
            "message": "TFJob mnist is created.", "count": 1, "source": {"component": "tfjob-controller"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
            "involvedObject": {"kind": "TFJob", "name": "mnist", "namespace": "default", "uid": uid,
                               "apiVersion": "kubeflow.org/v1"}})
        described = await kubectl.output("describe", "tfjob", "mnist")
        events = await kubectl.output("get", "events")

        assert "Replicas:  2" in described
        assert re.search(r"Normal\s+TFJobCreated\s+.*tfjob-controller\s+TFJob mnist is created\.", described)
        assert ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"] == events.splitlines()[0].split()
        assert "tfjob/mnist" in events

    async def test_explain_reads_the_schema(self, kubectl: Kubectl) -> None:
        told = await kubectl.output("explain", "tfjob.spec")
        deep = await kubectl.output("explain", "tfjob.spec.tfReplicaSpecs.replicas")

        assert "What to run." in told
        assert re.search(r"tfReplicaSpecs\s+<map\[string\]Object> -required-", told)
        assert re.search(r"FIELD: +replicas <integer>", deep)

    async def test_api_resources_lists_it(self, kubectl: Kubectl) -> None:
        told = await kubectl.output("api-resources")

        assert re.search(r"tfjobs\s+tf\s+kubeflow.org/v1\s+true\s+TFJob", told)
        assert re.search(r"pods\s+po\s+v1\s+true\s+Pod", told)
        assert "kubeflow.org/v1" in (await kubectl.output("api-versions")).split()

    async def test_delete_waits_until_it_is_gone(self, kubectl: Kubectl) -> None:
        assert (await kubectl.output("delete", "tfjob", "mnist")).startswith('tfjob.kubeflow.org "mnist" deleted')
        assert 1 == (await kubectl("get", "tfjob", "mnist")).code

    async def test_the_definition_takes_its_jobs_along(self, kubectl: Kubectl) -> None:
        await kubectl.output("delete", "crd", "tfjobs.kubeflow.org")

        assert 1 == (await kubectl("get", "tfjobs")).code
        assert "" == await kubectl.output("get", "crd", "-o", "name")


class TestBuiltInKinds:
    async def test_a_pod_from_apply_to_delete(self, kubectl: Kubectl, cluster: Cluster) -> None:
        await kubectl.output("apply", "-f", "-", given=POD)
        changed = POD.replace("app: x", "app: changed").replace("{name: side, image: 'busybox:1'}",
                                                          "{name: side, image: 'busybox:2'}")
        assert "pod/p configured\n" == await kubectl.output("apply", "-f", "-", given=changed)
        found = json.loads(await kubectl.output("get", "pod", "p", "-o", "json"))
        assert ["busybox:1", "busybox:2"] == [each["image"] for each in found["spec"]["containers"]]
        assert {"app": "changed"} == found["metadata"]["labels"]

        head, line = (await kubectl.output("get", "pods", "-o", "wide")).splitlines()
        assert ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED", "NODE", "READINESS",
                "GATES"] == head.split()
        assert ["p", "0/2", "Pending", "0"] == line.split()[:4]
        assert re.search(r"QoS Class:\s+BestEffort", await kubectl.output("describe", "pod", "p"))

        await cluster.client.create(PODS, {"target": {"kind": "Node", "name": "n"}}, namespace="default", name="p",
                                    subresource="binding")
        await kubectl.output("delete", "pod", "p", "--wait=false")
        assert "Terminating" in await kubectl.output("get", "pod", "p")
        await kubectl.output("delete", "pod", "p", "--force", "--grace-period=0")
        assert 1 == (await kubectl("get", "pod", "p")).code

    async def test_wait_for_a_deletion(self, kubectl: Kubectl, cluster: Cluster) -> None:
        await kubectl.output("create", "-f", "-", given=POD)
        waiting = asyncio.create_task(kubectl("wait", "--for=delete", "pod/p", "--timeout=60s"))
        await _watched(cluster)
        await cluster.client.delete(PODS, "p", "default")

        assert 0 == (await waiting).code

    async def test_create_replace_and_list_of_several_kinds(self, kubectl: Kubectl) -> None:
        several = yaml.safe_dump_all([
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}]}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}},
        ])
        await kubectl.output("create", "-f", "-", given=several)
        await kubectl.output("replace", "-f", "-", given=several.replace("a: '1'", "a: '2'").partition("---")[0])
        assert "2" == await kubectl.output("get", "configmap", "m", "-o", "jsonpath={.data.a}")
        assert re.search(r"svc\s+ClusterIP\s+10\.96\.\d+\.\d+\s+<none>\s+80/TCP", await kubectl.output("get", "svc"))
        assert re.search(r"s\s+Opaque\s+1", await kubectl.output("get", "secrets"))
        assert "a:  1 bytes" in await kubectl.output("describe", "secret", "s")
        assert "robot" in await kubectl.output("get", "sa")
        refused = await kubectl("create", "-f", "-", given="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: M}")
        assert 'The ConfigMap "M" is invalid: metadata.name: Invalid value: "M"' in refused.err

    async def test_namespaces(self, kubectl: Kubectl) -> None:
        head, *lines = (await kubectl.output("get", "ns")).splitlines()

        assert ["NAME", "STATUS", "AGE"] == head.split()
        assert ["default", "kube-node-lease", "kube-public", "kube-system"] == [line.split()[0] for line in lines]
        assert "namespaces \"default\" is forbidden" in (await kubectl("delete", "ns", "default")).err

    async def test_a_node_is_described(self, kubectl: Kubectl) -> None:
        await kubectl.output("create", "-f", "-", given="""
apiVersion: v1
kind: Node
metadata: {name: machine}
status:
  capacity: {cpu: '4', memory: 8Gi, pods: '110'}
  allocatable: {cpu: '4', memory: 8Gi, pods: '110'}
  conditions: [{type: Ready, status: 'True', reason: Up, message: fine}]
""")
        await kubectl.output("create", "-f", "-", given=POD.replace("spec:", "spec:\n  nodeName: machine"))
        assert re.search(r"machine\s+Ready\s+<none>", await kubectl.output("get", "nodes"))
        assert re.search(r"Non-terminated Pods:\s+\(1 in total\)", await kubectl.output("describe", "node", "machine"))
        await kubectl.output("cordon", "machine")
        assert "Ready,SchedulingDisabled" in await kubectl.output("get", "nodes")

    async def test_a_server_side_dry_run_changes_nothing(self, kubectl: Kubectl) -> None:
        await kubectl.output("create", "-f", "-", given=POD)
        await kubectl.output("patch", "pod", "p", "--dry-run=server", "-p", '{"metadata":{"labels":{"app":"z"}}}')

        assert "x" == await kubectl.output("get", "pod", "p", "-o", "jsonpath={.metadata.labels.app}")

    async def test_large_lists_come_in_pages(self, kubectl: Kubectl, cluster: Cluster) -> None:
        maps = Resource("", "v1", "configmaps", "ConfigMap")
        async with asyncio.TaskGroup() as group:
            for index in range(12):
                thing = {"metadata": {"name": f"m{index:02}", "namespace": "default"}}
                group.create_task(cluster.client.create(maps, thing))
        found = await kubectl.output("get", "configmaps", "--chunk-size=5", "-o", "name")

        assert 12 == len(found.split())

    async def test_the_server_is_known_by_version_and_health(self, kubectl: Kubectl) -> None:
        told = json.loads(await kubectl.output("version", "-o", "json"))

        assert told["serverVersion"]["gitVersion"].startswith("v1.")
        assert "ok" == await kubectl.output("get", "--raw", "/readyz")
        assert "is running at" in await kubectl.output("cluster-info")


class TestLogs:
    """The node is a program at the other end of a socket; kubectl must not notice the way in between."""

    @pytest.fixture(autouse=True)
    async def kubelet(self, kubelet_socket: Path) -> AsyncIterator[None]:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            container = request.path.rpartition("/")[2]
            if container == "side":
                return web.Response(status=400, text='container "side" in pod "p" is waiting to start')
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            for line in ("one", "two") if not request.query.get("tailLines") else ("two",):
                await response.write(f"{container}: {line}\n".encode())
            if request.query.get("follow") == "true":
                await response.write(b"and on\n")
            return response

        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.UnixSite(runner, str(kubelet_socket)).start()
        yield
        await runner.cleanup()

    @pytest.fixture(autouse=True)
    async def pod(self, kubectl: Kubectl) -> None:
        await kubectl.output("create", "-f", "-", given=POD.replace("spec:", "spec:\n  nodeName: machine"))

    async def test_of_a_container(self, kubectl: Kubectl) -> None:
        assert "main: one\nmain: two\n" == await kubectl.output("logs", "p", "-c", "main")
        assert "main: two\n" == await kubectl.output("logs", "p", "-c", "main", "--tail=1")
        assert "main: one\nmain: two\nand on\n" == await kubectl.output("logs", "p", "-c", "main", "-f")

    async def test_the_first_container_is_the_default_and_kubectl_says_so(self, kubectl: Kubectl) -> None:
        done = await kubectl("logs", "p")
        if kubectl.old:
            assert "a container name must be specified for pod p, choose one of: [main side]" in done.err
            return

        assert (0, "main: one\nmain: two\n") == (done.code, done.out)
        assert 'Defaulted container "main" out of: main, side' in done.err

    async def test_what_the_node_says_instead(self, kubectl: Kubectl) -> None:
        done = await kubectl("logs", "p", "-c", "side")

        assert 1 == done.code
        assert 'container "side" in pod "p" is waiting to start' in done.err


async def _watched(cluster: Cluster) -> None:
    """Until somebody watches: kubectl has listed and is waiting."""
    async with asyncio.timeout(PATIENCE):
        while not len(cluster.server._watches):  # noqa: ASYNC110  another process does it; nothing signals
            await asyncio.sleep(0.01)
