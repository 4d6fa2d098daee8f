"""Commands on a real API server: what they print, what they change, what they say when they cannot."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.unit.cli.conftest import JOB, Shell

from trainmaster.cli.main import cli
from trainmaster.kube.blocking import done


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_apply_says_what_became_of_each_and_where(shell: Shell) -> None:
    path = shell.file()
    first, again = shell.run("apply", "-f", path), shell.run("apply", path)

    assert "tfjob.kubeflow.org/mnist created\n" == first.stdout
    assert first.stderr.startswith("on the embedded cluster (https://127.0.0.1:")
    assert "tfjob.kubeflow.org/mnist unchanged\n" == again.stdout
    assert "tfjob.kubeflow.org/mnist configured\n" == shell.says(
        "apply", "-f", "-", text=JOB.replace("replicas: 2", "replicas: 3"))


def test_apply_takes_files_and_folders_in_any_form(shell: Shell, tmp_path: Path) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    (tmp_path / "a.json").write_text(json.dumps(config))
    (tmp_path / "b.yaml").write_text(JOB)
    found = json.loads(shell.says("apply", "-f", str(tmp_path), "-o", "json"))

    assert ["ConfigMap", "TFJob"] == [each["kind"] for each in found["items"]]
    assert "configmap/c\ntfjob.kubeflow.org/mnist\n" == shell.says("apply", "-f", str(tmp_path), "-o", "name")


def test_a_dry_run_prints_all_that_would_be_made_and_makes_nothing(shell: Shell) -> None:
    text = shell.says("apply", "-f", shell.file(), "--dry-run")
    shown = list(yaml.safe_load_all(text))

    assert "&id" not in text, "each object can be read, and copied, for itself"
    names = shell.says("apply", "-f", shell.file(), "--dry-run", "-o", "name").split()
    assert ["tfjob.kubeflow.org/mnist", "service/mnist-ps-0"] == names[:2]
    assert [("TFJob", "mnist"), ("Service", "mnist-ps-0"), ("Pod", "mnist-ps-0")] == [
        (each["kind"], each["metadata"]["name"]) for each in shown if "worker" not in each["metadata"]["name"]]
    assert "TF_CONFIG" in json.dumps(shown[-1])
    assert [] == shell.client.list()


@pytest.mark.parametrize("words", [
    pytest.param(["get", "mnist", "-o", "yaml"], id="one, as YAML"),
    pytest.param(["get", "jobs", "-o", "json"], id="several, as JSON"),
    pytest.param(["get", "tfjobs", "-o", "json"], id="of a kind"),
    pytest.param(["describe", "mnist", "-o", "yaml"], id="described"),
])
def test_who_set_which_field_is_not_shown(shell: Shell, words: list[str]) -> None:
    shell.says("apply", "-f", "-", text=JOB)

    shown = shell.says(*words)
    assert "resourceVersion" in shown
    assert "managedFields" not in shown


def test_get_jobs_is_one_table_of_all_kinds(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)
    jax = JOB.replace("TFJob", "JAXJob").replace("tfReplica", "jaxReplica").replace("name: tensorflow", "name: jax")
    shell.says("apply", "-f", "-", text=jax.replace("name: mnist", "name: zoo").split("    PS:")[0] + """\
    Worker:
      template: {spec: {containers: [{name: jax, image: x}]}}
""")
    shell.condition("Failed", replicaStatuses={"Worker": {"failed": 1}})

    assert [["KIND", "NAME", "STATE", "REPLICAS", "AGE", "WHY"],
            ["TFJob", "mnist", "Failed", "0/3", "0s", "it", "is", "Failed"],
            ["JAXJob", "zoo", "Waiting", "0/1", "0s"]] == [
                [word if not word.endswith("s") or word[0] not in "123456789" else "0s" for word in row]
                for row in lines(shell.says("get", "jobs"))]
    assert ["DURATION", "ROLES"] == lines(shell.says("get", "jobs", "-o", "wide"))[0][5:7]
    assert "tfjob.kubeflow.org/mnist\njaxjob.kubeflow.org/zoo\n" == "".join(
        sorted(shell.says("get", "-o", "name").splitlines(keepends=True), reverse=True))
    assert "mnist" in shell.says("get", "mnist")
    assert ["TFJob"] == [each["kind"] for each in [json.loads(shell.says("get", "tfjob/mnist", "-o", "json"))]]


def test_get_any_kind_as_the_server_shows_it(shell: Shell) -> None:
    shell.pod("worker", 0)

    assert [["NAME", "READY", "STATUS", "RESTARTS", "AGE"], ["mnist-worker-0", "0/1", "Pending", "0"]] == [
        row[:5] if number == 0 else row[:4] for number, row in enumerate(lines(shell.says("get", "po")))]
    assert "NOMINATED NODE" in shell.says("get", "pods", "-o", "wide")
    assert "pod/mnist-worker-0\n" == shell.says("get", "pods", "mnist-worker-0", "-o", "name")
    assert "Pod" == yaml.safe_load(shell.says("get", "pod/mnist-worker-0", "-o", "yaml"))["kind"]
    assert "List" == json.loads(shell.says("get", "pods", "-o", "json"))["kind"]
    assert ["NAMESPACE", "NAME"] == lines(shell.says("get", "pods", "-A"))[0][:2]
    assert "No services in namespace" in shell.run("get", "svc").stderr


def test_describe_has_replicas_conditions_the_first_failure_and_events(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)
    pod = shell.pod("worker", 1)
    ended = {"pod": "mnist-worker-1", "uid": pod["metadata"]["uid"], "exitCode": 1, "says": "exited with code 1",
             "lastWords": "ValueError: no"}
    shell.condition("Failed", postMortem={"ended": [ended]})
    shown = shell.says("describe", "mnist")

    for part in ("State      Failed: it is Failed", "mnist-worker-1 failed first: exited with code 1", "ValueError: no",
                 "worker-1   Pending", "TFJobFailed", "Events\n  none"):
        assert part in shown
    assert "TFJob" == json.loads(shell.says("describe", "mnist", "-o", "json"))["kind"]
    assert shown.splitlines()[0] == shell.says("describe", "tfjob", "mnist").splitlines()[0]
    plain = shell.says("describe", "pod", "mnist-worker-1")
    assert plain.startswith(f"Pod {shell.namespace}/mnist-worker-1\n\napiVersion: v1\n")
    assert "managedFields" not in plain


def test_wait_reaches_fails_and_gives_up(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)
    late = shell.run("wait", "mnist", "--timeout", "1s")
    assert (1, True) == (late.exit_code, "was not succeeded after 1 s; it is waiting" in late.output)
    timer = threading.Timer(0.3, shell.condition, ["Failed"])
    timer.start()
    failed = shell.run("wait", "mnist", "--timeout", "30s")
    timer.join()

    assert (1, True) == (failed.exit_code, "failed: it is Failed" in failed.output)
    assert "tfjob.kubeflow.org/mnist Failed: it is Failed\n" == shell.says("wait", "mnist", "--for=condition=Failed")
    assert 2 == shell.run("wait", "mnist", "--timeout", "soon").exit_code


def test_scale_suspend_resume_and_restart(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)

    assert "tfjob.kubeflow.org/mnist scaled: PS=1, Worker=4\n" == shell.says("scale", "mnist", "--replicas", "worker=4")
    assert "tfjob.kubeflow.org/mnist suspended\n" == shell.says("suspend", "mnist")
    assert shell.client.get("mnist").object["spec"]["runPolicy"]["suspend"]
    assert "tfjob.kubeflow.org/mnist resumed\n" == shell.says("resume", "mnist")
    shell.condition("Succeeded")
    assert 2 == shell.run("suspend", "mnist").exit_code
    assert "tfjob.kubeflow.org/mnist restarted\n" == shell.says("restart", "mnist")
    assert "Waiting" == shell.client.get("mnist").state
    assert "write ROLE=NUMBER" in shell.run("scale", "mnist", "--replicas", "worker=many").output


def test_delete_by_name_kind_file_and_label(shell: Shell) -> None:
    path = shell.file()
    for words in (["mnist"], ["tfjob/mnist"], ["tfjobs", "mnist"], ["-f", path], ["--all"]):
        shell.says("apply", "-f", path)
        assert "tfjob.kubeflow.org/mnist deleted\n" == shell.says("delete", *words)
        assert [] == shell.client.list()
    assert 2 == shell.run("delete", "mnist").exit_code
    assert 0 == shell.run("delete", "mnist", "--ignore-not-found").exit_code
    assert 0 == shell.run("delete", "pods", "-l", "a=b").exit_code
    assert "say what to delete" in shell.run("delete").output


def test_events_are_listed(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)
    job = shell.client.get("mnist")
    done(shell.client.session.client.request("POST", f"/api/v1/namespaces/{shell.namespace}/events", body={
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Warning", "reason": "Oops",
        "message": "it went wrong", "involvedObject": {"kind": "TFJob", "name": "mnist", "uid": job.uid,
                                                       "namespace": shell.namespace}}))

    assert ["Warning", "Oops", "tfjob/mnist", "it", "went", "wrong"] == lines(shell.says("events", "mnist"))[1][-6:]
    (told,) = json.loads(shell.says("events", "mnist", "-o", "json"))
    assert ["time", "type", "reason", "about", "message", "count"] == list(told)
    assert ["event/e"] == shell.says("events", "-o", "name").split()
    assert shell.namespace in [row[0] for row in lines(shell.says("events", "-A"))]
    assert "a job is in one namespace" in shell.run("events", "mnist", "-A").output


def test_doctor_says_what_a_cluster_lacks(shell: Shell) -> None:
    """The one of these tests has everything but figures, which come from its node."""
    kubeconfig = str(shell.home / "cluster" / "kubeconfig")
    shown = shell.says("doctor", "--kubeconfig", kubeconfig)

    assert ["cluster", "kinds", "rights", "gangs", "metrics"] == shell.says(
        "doctor", "--kubeconfig", kubeconfig, "-o", "name").split()
    assert f"to make jobs and to see their pods and logs in namespace {shell.namespace}" in shown
    assert "by PodGroups of scheduling.volcano.sh" in shown


@pytest.mark.parametrize("words", [
    ["apply", "-f", "-"], ["scale", "mnist", "--replicas", "worker=3"], ["suspend", "mnist"], ["resume", "mnist"],
    ["restart", "mnist"], ["delete", "mnist"],
], ids=lambda words: words[0])
def test_who_changes_something_names_the_cluster(shell: Shell, words: list[str]) -> None:
    shell.says("apply", "-f", "-", text=JOB)
    shown = shell.run(*words, text=JOB)

    assert shown.stderr.startswith("on the embedded cluster (https://127.0.0.1:")
    assert "embedded" not in shown.stdout, "not among the results"


def test_scaling_what_is_not_elastic_is_done_with_a_note(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)
    quiet = shell.run("scale", "mnist", "--replicas", "worker=3").stderr
    shell.condition("Running")
    noted = shell.run("scale", "mnist", "--replicas", "worker=4").stderr

    assert ("note: " in quiet, "note: TFJob mnist is not elastic" in noted) == (False, True)
    assert "`trainmaster restart mnist`" in noted


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        pytest.param(["describe", "nothing"], 2, "There is no job 'nothing'", id="a job that is not there"),
        pytest.param(["get", "zeppelins"], 2, "neither a kind nor a job", id="neither a kind nor a job"),
        pytest.param(["get", "pods", "nothing"], 2, 'pods "nothing" not found.', id="an object that is not there"),
        pytest.param(["get", "pods", "-w", "-o", "json"], 2, "-w shows a table", id="watching as JSON"),
        pytest.param(["logs", "nothing"], 2, "There is no job 'nothing'", id="logs of nothing"),
        pytest.param(["logs", "x", "--since", "long"], 2, "write a span of time", id="a span that is none"),
        pytest.param(["apply"], 2, "give a file", id="nothing to apply"),
        pytest.param(["get", "jobs", "--context", "prod"], 3, "there is no ~/.kube/config", id="a context of nobody"),
        pytest.param(["get", "jobs", "--kubeconfig", "/no/where"], 2, "No such file", id="a kubeconfig of nobody"),
        pytest.param(["delete", "pods", "a", "--all"], 2, "they take no names", id="all and one"),
        pytest.param(["delete"], 2, "say what to delete", id="nothing to delete"),
        pytest.param(["explain"], 2, "Name a job, or a manifest with -f", id="nothing to explain"),
        pytest.param(["scale", "x", "--replicas", "worker=many"], 2, "write ROLE=NUMBER", id="no number of replicas"),
        pytest.param(["scale", "x", "--replicas", "2", "--replicas", "ps=1"], 2, "name the role of each", id="no role"),
        pytest.param(["wait", "x", "--timeout", "soon"], 2, "write a span of time", id="no time to wait"),
        pytest.param(["get", "-o", "xml"], 2, "is not one of 'table', 'wide', 'json', 'yaml', 'name'", id="no form"),
        pytest.param(["logs", "x", "--tail", "-1"], 2, "-1 is not in the range", id="fewer than no lines"),
    ],
)
def test_what_is_wrong_is_a_sentence(shell: Shell, words: list[str], code: int, sentence: str) -> None:
    shown = shell.run(*words)

    assert (code, True) == (shown.exit_code, sentence in shown.output), shown.output


def test_another_cluster_is_never_taken_in_silence(shell: Shell, tmp_path: Path) -> None:
    """The embedded cluster of this home is down; ~/.kube/config means another."""
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text((shell.home / "cluster" / "kubeconfig").read_text())
    environment = {"HOME": str(tmp_path), "TRAINMASTER_HOME": str(tmp_path / "cluster"), "KUBECONFIG": ""}
    shown = CliRunner().invoke(cli, ["get", "jobs", "-n", shell.namespace], env=environment)

    assert shown.stderr.startswith("The embedded cluster is down; this is the cluster of context trainmaster (https://")
    assert 0 == shown.exit_code


def test_no_cluster_at_all_is_exit_code_3(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "TRAINMASTER_HOME": str(tmp_path / "cluster"), "KUBECONFIG": ""}
    for words in (["get"], ["apply", "-f", "x"], ["logs", "x"], ["delete", "x"], ["describe", "x"]):
        shown = CliRunner().invoke(cli, words, env=environment)
        assert (3, True) == (shown.exit_code, "Start it with `trainmaster up`" in shown.output), words


def test_a_server_that_does_not_answer_is_exit_code_3(tmp_path: Path) -> None:
    from trainmaster.kube import kubeconfig

    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig.document("http://127.0.0.1:1", b"", "t")))
    shown = CliRunner().invoke(cli, ["get", "jobs", "--kubeconfig", str(path)], env={"HOME": str(tmp_path)})

    assert (3, True) == (shown.exit_code, "does not answer: GET /api on http://127.0.0.1:1: Connection refused" in
                         shown.output)


def test_completion_knows_names_from_the_cluster(shell: Shell) -> None:
    shell.says("apply", "-f", "-", text=JOB)

    def offered(words: str, at: int) -> str:
        variables = {**shell.environment, "_CLI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return CliRunner().invoke(cli, [], prog_name="cli", env=variables).output

    assert "plain,mnist\n" == offered(f"cli describe -n {shell.namespace} m", 4)
    assert "plain,tfjobs\n" == offered("cli get tf", 2)
    assert f"plain,{shell.namespace}\n" == offered(f"cli get -n {shell.namespace}", 3)
    assert "plain,describe\nplain,delete\n" == offered("cli de", 1)


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts(shell_name: str) -> None:
    shown = CliRunner().invoke(cli, ["completion", shell_name])

    assert (0, True) == (shown.exit_code, f"{shell_name}_complete" in shown.output)


def test_listing_jobs_needs_no_event_loop(shell: Shell) -> None:
    """Starting asyncio and aiohttp takes longer than the command."""
    program = """
import sys
from trainmaster.cli.main import cli
try:
    cli(["get", "jobs"])
except SystemExit:
    print(sorted(sys.modules))
"""
    shown = subprocess.run([sys.executable, "-c", program], env=shell.environment, capture_output=True, text=True,
                           check=True).stdout

    idle = ("asyncio", "aiohttp", "msgspec", "rich", "cryptography", "trainmaster.sdk.manifests")
    assert not [name for name in idle if f"'{name}'" in shown]
