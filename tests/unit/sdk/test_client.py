"""The verbs of the SDK on the embedded API server; the test plays operator and node."""

import asyncio
import base64
import inspect
import subprocess
import sys
import zlib
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.sdk.stage import INSTALLED, JOB, NodeAway, Stage

import trainmaster
from kubernetes import client as other
from trainmaster import AsyncClient, Client, JobFailed, JobGone, NoJob, TimedOut
from trainmaster.api import groups
from trainmaster.api.core import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, EVENTS, PODS
from trainmaster.api.meta import Resource, timestamp
from trainmaster.api.schema import definitions
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.kube.errors import Forbidden, Unreachable
from trainmaster.sdk import requirements
from trainmaster.sdk.errors import ManifestError, NoReplica, NoSuchKind, NotPossible
from trainmaster.sdk.logs import Line, Wanted
from trainmaster.sdk.requirements import Recipe
from trainmaster.sdk.session import Session
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


async def test_submit_text_get_and_list(stage: Stage) -> None:
    made = await stage.sdk.submit(JOB)

    assert ("TFJob", "mnist", "default", "Waiting") == (made.kind, made.name, made.namespace, made.state)
    assert made.uid == (await stage.sdk.get("mnist")).uid == (await stage.sdk.get("tfjob/mnist")).uid
    assert ["mnist"] == [job.name for job in await stage.sdk.list()]
    assert [] == await stage.sdk.list(namespace="kube-system")
    assert ["mnist"] == [job.name for job in await stage.sdk.list(all_namespaces=True, namespace="kube-system")]


async def test_submit_a_file_and_a_dictionary(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    made = await stage.sdk.submit(tmp_path / "job.yaml")
    plain = {**made.object, "metadata": {"name": "again"}}
    assert "again" == (await stage.sdk.submit(plain)).name
    assert "mnist" == (await stage.sdk.submit(str(tmp_path / "job.yaml"))).name      # it runs already


async def test_submit_an_object_of_another_sdk(stage: Stage) -> None:
    container = other.V1Container(name="jax", image="x", env=[other.V1EnvVar(name="A", value="1")])
    template = other.V1PodTemplateSpec(spec=other.V1PodSpec(containers=[container]))
    job = {"apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": other.V1ObjectMeta(name="jax"),
           "spec": {"jaxReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}}
    made = await stage.sdk.submit(job)

    worker = made.object["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert [{"name": "A", "value": "1"}] == worker["env"]


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        pytest.param("no/such/file.yaml", "No such file", id="a file that is not there"),
        pytest.param("kind: TFJob\n", "has no 'apiVersion'", id="a text that is no object"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "There is no job in",
                     id="an object that is no job"),
        pytest.param(f"{JOB}\n---\n{JOB}", "There are 2 jobs in", id="two jobs"),
        pytest.param(JOB.replace("replicas: 2", "replicas: -2"), "replicas: Invalid value: -2", id="a bad number"),
    ],
)
async def test_what_cannot_be_submitted_is_a_sentence(stage: Stage, what: object, sentence: str) -> None:
    with pytest.raises(ManifestError, match=sentence):
        await stage.sdk.submit(what)


@pytest.mark.parametrize(
    ("name", "problem", "sentence"),
    [
        pytest.param("mnits", NoJob, "Did you mean mnist?", id="a name that is nearly one"),
        pytest.param("zeppelin", NoJob, "There is mnist.", id="a name that is none"),
        pytest.param("jaxjob/mnist", NoJob, "Did you mean tfjob/mnist?", id="another kind"),
        pytest.param("pod/mnist", NoJob, "a Pod is not a job", id="something else than a job"),
        pytest.param("tfjops/mnist", NoSuchKind, "Did you mean tfjobs?", id="a kind that is nearly one"),
    ],
)
async def test_a_job_that_is_not_there(stage: Stage, name: str, problem: type[Exception], sentence: str) -> None:
    await stage.sdk.submit(JOB)
    with pytest.raises(problem, match=sentence.replace("?", r"\?")):
        await stage.sdk.get(name)


async def test_two_jobs_of_one_name_are_told_apart(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.sdk.submit(JOB.replace("TFJob", "JAXJob").replace("tfReplica", "jaxReplica").replace(
        "name: tensorflow", "name: jax").replace("    PS:", "    #"))
    with pytest.raises(NoJob, match="Write jaxjob/mnist or tfjob/mnist"):
        await stage.sdk.get("mnist")

    assert "JAXJob" == (await stage.sdk.get("jaxjobs.kubeflow.org/mnist")).kind


async def test_a_job_that_waits_says_why(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.kube.create(groups.VOLCANO_GROUPS, {
        "apiVersion": groups.VOLCANO_GROUPS.api_version, "kind": "PodGroup",
        "metadata": {"name": "mnist", "namespace": "default", "annotations": {groups.WHY: '{"why": "2 of 3 fit"}'}},
        "spec": {"minMember": 3}})

    assert ["2 of 3 fit"] == [job.why for job in await stage.sdk.list()]
    assert "2 of 3 fit" == (await stage.sdk.get("mnist")).why


async def test_a_job_whose_replicas_end_each_time_after_the_start_says_so(stage: Stage) -> None:
    job = await stage.sdk.submit(JOB)
    await stage.condition("Running")
    pod = await stage.pod("worker", 0)
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": job.uid, "controller": True}
    await stage.kube.patch(PODS, "mnist-worker-0", "default", {"metadata": {"ownerReferences": [owner]}})
    assert [""] == [job.why for job in await stage.sdk.list()]
    await stage.state(pod["metadata"]["name"], 2, waiting={"reason": "CrashLoopBackOff", "message": "not yet"})

    assert ["worker-0: not yet"] == [job.why for job in await stage.sdk.list()]
    assert "worker-0: not yet" == (await stage.sdk.get("mnist")).why


async def test_wait_until_it_has_succeeded(stage: Stage) -> None:
    job = await stage.sdk.submit(JOB)
    waiting = asyncio.create_task(stage.sdk.wait(job))
    await stage.clock.settle()
    await stage.condition("Running")
    assert not waiting.done()
    await stage.condition("Succeeded")

    assert (await stage.clock.run(waiting)).succeeded
    assert (await stage.sdk.wait("mnist", "Running")).succeeded      # it has run
    assert (await stage.sdk.wait("mnist", "condition=Succeeded")).succeeded


async def test_wait_fails_at_once_with_the_reason(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    ended = {"pod": "mnist-worker-1", "uid": "1", "exitCode": 1, "says": "exited with code 1", "lastWords": "oh no"}
    await stage.condition("Failed", postMortem={"ended": [ended]})
    with pytest.raises(JobFailed, match="it is Failed First to fail: worker-1: exited with code 1") as failed:
        await stage.sdk.wait("mnist", "Running")

    assert "  oh no" in failed.value.details
    assert "Failed" == (await stage.sdk.wait("mnist", "Finished")).state


async def test_wait_gives_up_in_time_and_when_the_job_goes(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    with pytest.raises(TimedOut, match="was not succeeded after 5 s; it is waiting"):
        await stage.clock.run(stage.sdk.wait("mnist", timeout=5))
    waiting = asyncio.create_task(stage.sdk.wait("mnist"))
    await stage.clock.settle()
    await stage.clock.run(stage.sdk.delete("mnist"))
    with pytest.raises(JobGone):
        await stage.clock.run(waiting)
    with pytest.raises(NotPossible, match="Choose one of Succeeded"):
        await stage.sdk.wait("mnist", "rich")


async def test_logs_of_all_replicas_in_the_order_of_time(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.pod("worker", 0)
    await stage.pod("worker", 10)
    stage.node.logs = {"mnist-worker-0": [[b"2026-01-01T00:00:01Z a\n2026-01-01T0", b"0:00:03Z c\n"]],
                       "mnist-worker-10": [[b"2026-01-01T00:00:02Z b\n2026-01-01T00:00:04Z half"]]}
    found = [line async for line in stage.sdk.logs("mnist", tail=5, since=60)]

    assert [("worker-0", "a"), ("worker-10", "b"), ("worker-0", "c"), ("worker-10", "half")] == [
        (line.replica, line.text) for line in found]
    assert {("tailLines", "5"), ("sinceSeconds", "60")} <= set(stage.node.asked[0].query)


async def test_logs_of_one_replica_or_role(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.pod("worker", 0)
    await stage.pod("ps", 0)
    for asked in ("ps-0", "ps", "mnist-ps-0"):
        stage.node.logs = {"mnist-ps-0": [[b"1 a\n"]]}
        assert [Line("ps-0", "1", "a")] == [line async for line in stage.sdk.logs("mnist", replica=asked)]
    with pytest.raises(NoReplica, match=r"There are ps-0, worker-0\."):
        [line async for line in stage.sdk.logs("mnist", replica="chief")]


async def test_following_goes_on_after_a_restart_of_the_server_and_of_the_replica(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.pod("worker", 0)
    stage.node.logs = {"mnist-worker-0": [
        [b"1 a\n2 b\n2 c\n", Unreachable],           # the connection breaks
        [NodeAway],                                  # the server is back, its node is not
        [b"2 b\n2 c\n2 d\n"],                        # it is read again; the server stops in order
        [b"2 b\n2 c\n2 d\n3 e\n"],                   # and again; then this life ends
        [b"4 again\n"],
    ]}
    lines: list[str] = []

    async def read() -> None:
        async for _, batch in stage.sdk.log_batches("mnist", Wanted(tail=7), follow=True):
            lines.extend(text for _, text in batch)

    reading = asyncio.create_task(read())
    await stage.clock.run(asyncio.sleep(0))
    await stage.clock.run(stage.clock.sleep(1.7))      # three pauses
    await stage.state("mnist-worker-0", restarts=1, running={})
    await stage.clock.run(stage.clock.sleep(5))
    await stage.state("mnist-worker-0", restarts=1, terminated={"exitCode": 0})
    await stage.condition("Succeeded")
    await stage.clock.run(reading)

    assert ["a", "b", "c", "d", "e", "again"] == lines
    queries = [dict(request.query) for request in stage.node.asked]
    assert ["7", None, None, None] == [query.get("tailLines") for query in queries[:4]]
    assert [None, "2", "2", "2", None] == [query.get("sinceTime") for query in queries[:5]]


async def test_following_reads_a_replica_of_which_no_watch_told_before_the_job_was_over(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    stage.node.blind = True
    stage.node.logs = {"mnist-worker-0": [[b"1 a\n2 b\n"]]}
    lines: list[str] = []

    async def read() -> None:
        lines.extend([line.text async for line in stage.sdk.logs("mnist", follow=True)])

    reading = asyncio.create_task(read())
    await stage.clock.settle()
    await stage.pod("worker", 0)
    await stage.state("mnist-worker-0", terminated={"exitCode": 0})
    await stage.condition("Succeeded")
    await stage.clock.run(reading)

    assert ["a", "b"] == lines


async def test_events_are_those_of_the_job_and_of_what_it_made(stage: Stage) -> None:
    job = await stage.sdk.submit(JOB)

    assert job.created is not None
    made = job.created

    async def event(number: int, kind: str, name: str, uid: str = "", seconds: int = 9) -> None:
        await stage.kube.create(Resource("", "v1", "events", "Event"), {
            "metadata": {"name": f"e{number}", "namespace": "default"}, "type": "Normal", "reason": f"R{number}",
            "message": "m", "lastTimestamp": timestamp(made + timedelta(seconds=seconds - number)),
            "involvedObject": {"kind": kind, "name": name, "namespace": "default", "uid": uid}})

    await event(1, "TFJob", "mnist", job.uid)
    await event(2, "TFJob", "mnist", "an earlier one")
    await event(3, "Pod", "mnist-worker-1")
    await event(4, "Pod", "mnist-worker-1-extra")
    await event(5, "PodGroup", "mnist")
    await event(6, "Pod", "other-worker-0")
    await event(7, "Pod", "mnist-worker-1", seconds=0)      # of an earlier job of that name

    assert ["R5", "R3", "R1"] == [each.reason for each in await stage.sdk.events("mnist")]


async def test_apply_creates_changes_and_leaves_alone(stage: Stage) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    changed = {**config, "data": {"a": "2"}}

    assert ["created", "created"] == [each.how for each in await stage.sdk.apply([config, JOB])]
    assert ["unchanged"] == [each.how for each in await stage.sdk.apply(config)]
    assert ["configured"] == [each.how for each in await stage.sdk.apply(changed)]


async def test_apply_of_several_sends_none_if_one_is_wrong(stage: Stage) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    with pytest.raises(ManifestError, match=r"spec\.spek"):
        await stage.sdk.apply([config, f"{JOB}  spek: 1\n"])
    with pytest.raises(ManifestError, match="has no kind 'Horse'"):
        await stage.sdk.apply([config, {**config, "kind": "Horse"}])
    await stage.sdk.apply(config, dry_run=True)

    assert [] == (await stage.kube.list(Resource("", "v1", "configmaps", "ConfigMap"), "default",
                                        fields="metadata.name=c")).items


async def test_explain(stage: Stage) -> None:
    await stage.sdk.submit(JOB)

    assert ("TFJob", "Waiting") == ((found := await stage.sdk.explain("mnist")).kind, found.state)


async def test_explain_a_job_whose_name_another_has_too(stage: Stage) -> None:
    """Neither the pods nor the group of the other are its own; what its operator told is."""
    first = (await stage.sdk.submit(JOB)).object
    worker = {"replicas": 1, "template": {"spec": {"containers": [{"name": "jax", "image": "x"}]}}}
    second = (await stage.sdk.submit({"apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": {"name": "mnist"},
                                      "spec": {"jaxReplicaSpecs": {"Worker": worker}}})).object
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": first["metadata"]["uid"],
             "controller": True}
    await stage.kube.create(PODS, {
        "metadata": {"name": "mnist-worker-0", "namespace": "default", "ownerReferences": [owner],
                     "labels": {"training.kubeflow.org/job-name": "mnist"}},
        "spec": {"containers": [{"name": "tensorflow", "image": "x"}]}})
    about = {"kind": "JAXJob", "name": "mnist", "namespace": "default", "uid": second["metadata"]["uid"]}
    await stage.kube.create(EVENTS, {
        "metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "type": "Warning",
        "reason": "FailedCreatePodGroup", "message": "Error creating: x"})

    found = await stage.sdk.explain("jaxjob/mnist")

    assert ("Waiting", "no replica has been made yet", ("Error creating: x",)) == (found.state, found.why, found.more)


def test_both_clients_have_the_same_verbs() -> None:
    def verbs(kind: type) -> dict[str, list[str]]:
        return {name: [str(each) for each in inspect.signature(found).parameters.values()]
                for name, found in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert verbs(AsyncClient) == verbs(Client)


def test_importing_costs_next_to_nothing() -> None:
    """Judged by what is loaded, not by the clock: a busy machine is not a bug."""
    program = "import sys; before = set(sys.modules); import trainmaster; print(sorted(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert ["trainmaster"] == [name for name in eval(shown) if name.split(".")[0] not in ("typing", "collections")
                               and "trainmaster" in name]
    assert not {"asyncio", "ssl", "yaml", "msgspec", "orjson"} & set(eval(shown))


def test_what_the_package_names_is_there_and_its_errors_are_of_one_family() -> None:
    named = {name: getattr(trainmaster, name) for name in trainmaster.__all__}

    assert {"ManifestError", "NoCluster", "NoJob", "JobFailed", "JobGone", "TimedOut", "SdkError"} == {
        name for name, each in named.items() if issubclass(each, trainmaster.SdkError)}
    assert {"AsyncClient", "Client", "Job"} == {
        name for name, each in named.items() if not issubclass(each, Exception)}


def test_the_client_without_a_loop_loads_none() -> None:
    program = "import sys; from trainmaster import Client; Client; print(sorted(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert not [name for name in ("asyncio", "aiohttp", "msgspec", "cryptography", "rich") if f"'{name}'" in shown]


def trains(rate: float, steps: int = 3) -> None:
    import os

    print(os.environ.get("RANK"), rate, steps)


async def test_submit_a_function(stage: Stage) -> None:
    with pytest.raises(ManifestError, match="missing a required argument: 'rate'"):
        await stage.sdk.submit(trains)
    job = await stage.sdk.submit(trains, framework="jax", workers=2, name="fun", parameters={"rate": 0.5})
    (code,) = (await stage.kube.list(CONFIG_MAPS, "default", labels="trainmaster.dev/job=fun")).items
    script = zlib.decompress(base64.b64decode(code["binaryData"]["part-000"])).decode().partition("function.py")[2]

    assert ("JAXJob", "fun", 2) == (job.kind, job.name, job.roles()[0].replicas)
    printed: list[str] = []
    exec(script, {"__name__": "__main__", "print": lambda *words: printed.extend(map(str, words))})
    assert ["None", "0.5", "3"] == printed


async def test_submit_a_script(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import tensorflow\n")
    job = await stage.sdk.submit(tmp_path / "train.py", workers=3, env={"A": "1"}, args=["--epochs", "3"])

    assert ("TFJob", "train", 3) == (job.kind, job.name, job.roles()[0].replicas)
    container = job.object["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert {"name": "A", "value": "1"} in container["env"]
    assert ["--epochs", "3"] == [*(container.get("command") or ()), *(container.get("args") or ())][-2:]
    with pytest.raises(ManifestError, match="'workers' is for code"):
        await stage.sdk.submit(JOB, workers=2)
    with pytest.raises(ManifestError, match="'requirements' is for code"):
        await stage.sdk.submit(JOB, requirements="requirements.txt")
    with pytest.raises(ManifestError, match="choose one of pytorch"):
        await stage.sdk.submit(tmp_path / "train.py", framework="abacus")


@pytest.mark.parametrize("what", [pytest.param("script", id="a script"), pytest.param("function", id="a function")])
async def test_submit_with_packages_and_a_folder_for_what_is_written(
        stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("TRAINMASTER_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("import tensorflow\n")
    job = await stage.sdk.submit(trains if what == "function" else tmp_path / "train.py", name="mine", framework="jax",
                                 requirements=["tqdm==4.67"], output=tmp_path / "out",
                                 parameters={"rate": 1} if what == "function" else {})

    pod = job.object["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]
    assert Recipe("trainmaster.dev/jax", "tqdm==4.67") == requirements.read(
        tmp_path / "home", pod["containers"][0]["image"])
    assert {"path": str(tmp_path / "out"), "type": "DirectoryOrCreate"} == pod["volumes"][1]["hostPath"]
    assert (tmp_path / "out").is_dir()


async def test_kinds_that_one_may_not_see_hide_no_others() -> None:
    """Somebody with a role for one kind of job only."""
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.install([each for each in definitions() if each["metadata"]["name"] in INSTALLED])
        await AsyncClient(transport=cluster.transport(), clock=clock).submit(JOB)
        admin = cluster.client()
        rule = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list"]}
        await admin.create(CLUSTER_ROLES, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                                           "metadata": {"name": "tf"}, "rules": [rule]})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tf"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}
        await admin.create(CLUSTER_ROLE_BINDINGS, {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "tf"},
            "roleRef": reference, "subjects": [subject]})
        eve = Session(cluster.client_as(Identity("eve", ())), clock, "default")
        mallory = Session(cluster.client_as(Identity("mallory", ())), clock, "default")

        assert ["mnist"] == [job.name for job in await eve.jobs(None)]
        assert "TFJob" == (await eve.find("mnist")).kind
        with pytest.raises(Forbidden):
            await mallory.jobs(None)
