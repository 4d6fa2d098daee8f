"""What the operator's flags mean: today's names, yesterday's, and what is refused."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from trainmaster.operator import flags

# What a Deployment of training-operator 1.9 may say (specification 8.1), and what came before it.
UPSTREAM = [
    "metrics-bind-address", "health-probe-bind-address", "leader-elect", "leader-election-id", "enable-scheme",
    "gang-scheduler-name", "namespace", "controller-threads", "kube-api-qps", "kube-api-burst",
    "pytorch-init-container-image", "pytorch-init-container-template-file", "pytorch-init-container-max-tries",
    "mpi-kubectl-delivery-image", "webhook-server-port", "webhook-service-name", "webhook-secret-name", "zap-devel",
    "zap-encoder", "zap-log-level", "zap-stacktrace-level", "zap-time-encoding", "kubeconfig",
    "enable-gang-scheduling", "monitoring-port", "master", "threadiness", "json-log-format", "resyc-period", "qps",
    "burst",
]


def read(*words: str, environment: Mapping[str, str] | None = None) -> flags.Given:
    """`name=value` each."""
    said: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.partition("=")
        said.setdefault(name, []).append(value)
    return flags.read(said, environment or {})


@pytest.mark.parametrize("name", UPSTREAM)
def test_every_flag_of_upstream_is_known(name: str) -> None:
    assert name in flags.BY_NAME


@pytest.mark.parametrize("flag", [flag for flag in flags.FLAGS if flag.stands_for], ids=lambda flag: flag.name)
def test_an_old_name_stands_for_a_flag_of_the_same_type(flag: flags.Flag) -> None:
    assert type(flag.default) is type(flags.BY_NAME[flag.stands_for].default)


@pytest.mark.parametrize(
    ("words", "name", "expected"),
    [
        pytest.param([], "kube-api-qps", 200.0, id="ten times the requests of upstream unless somebody says otherwise"),
        pytest.param(["kube-api-qps=20"], "kube-api-qps", 20.0, id="as somebody says"),
        pytest.param(["qps=5"], "kube-api-qps", 5.0, id="under its old name"),
        pytest.param(["qps=5", "kube-api-qps=50"], "kube-api-qps", 50.0, id="the new name wins over the old one"),
        pytest.param(["kube-api-qps=50", "qps=5"], "kube-api-qps", 50.0, id="in whatever order"),
        pytest.param(["burst=3", "burst=4"], "kube-api-burst", 4, id="of the same flag the last counts, as in Go"),
        pytest.param(["threadiness=3"], "controller-threads", 3, id="threads"),
        pytest.param(["monitoring-port=8443"], "webhook-server-port", 8443, id="the port of 1.7"),
        pytest.param(["leader-elect=true"], "leader-elect", True, id="a switch"),
        pytest.param(["leader-elect=F"], "leader-elect", False, id="a switch as Go takes it"),
    ],
)
def test_what_a_flag_is(words: Sequence[str], name: str, expected: object) -> None:
    assert expected == read(*words).values[name]


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        pytest.param("leader-elect=maybe", "--leader-elect maybe: write true or false", id="neither true nor false"),
        pytest.param("kube-api-burst=many", "--kube-api-burst many: write a number", id="no number"),
        pytest.param("kube-api-qps=-1", "--kube-api-qps -1: it cannot be less than 0", id="a number below zero"),
        pytest.param("zap-encoder=xml", "--zap-encoder xml: write json or console", id="none of the choices"),
        pytest.param("qps=x", "--qps x: write a number", id="told under the name that was written"),
    ],
)
def test_what_a_flag_cannot_be(word: str, sentence: str) -> None:
    with pytest.raises(flags.BadFlag, match=f"^{sentence}$"):
        read(word)


def test_the_environment_is_asked_where_nobody_says_anything() -> None:
    environment = {"KUBECONFIG": "/k", "KUBEFLOW_NAMESPACE": "team"}

    assert "team" == read(environment=environment).text("namespace")
    assert "/k" == read(environment=environment).text("kubeconfig")
    assert "other" == read("namespace=other", environment=environment).text("namespace")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param([], "", id="nobody"),
        pytest.param(["gang-scheduler-name=volcano"], "volcano", id="1.7 and later: a name turns it on"),
        pytest.param(["gang-scheduler-name=none"], "", id="1.6: none turns it off"),
        pytest.param(["gang-scheduler-name=None"], "", id="in any case"),
        pytest.param(["enable-gang-scheduling=true"], "volcano", id="up to 1.5: on means Volcano"),
        pytest.param(["enable-gang-scheduling=true", "gang-scheduler-name=kube-batch"], "kube-batch",
                     id="tf-operator: the name is honoured"),
        pytest.param(["enable-gang-scheduling=false", "gang-scheduler-name=volcano"], "",
                     id="up to 1.5 the name alone did nothing"),
    ],
)
def test_who_schedules_gangs(words: Sequence[str], expected: str) -> None:
    assert expected == flags.gang_scheduler(read(*words))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param([], (), id="all"),
        pytest.param(["enable-scheme=tfjob"], ("TFJob",), id="one, in any case"),
        pytest.param(["enable-scheme=TFJOB", "enable-scheme=pytorchjob"], ("TFJob", "PyTorchJob"), id="several"),
        pytest.param(["enable-scheme=tfjob,pytorchjob", "enable-scheme=TFJob"], ("TFJob", "PyTorchJob"),
                     id="as a list"),
    ],
)
def test_which_kinds(words: Sequence[str], expected: tuple[str, ...]) -> None:
    assert expected == flags.kinds(read(*words), ["TFJob", "PyTorchJob"])


def test_a_kind_that_is_none_is_refused_in_the_words_of_upstream() -> None:
    with pytest.raises(flags.BadFlag, match="scheme tensorflowjob is not supported yet; there are PyTorchJob, TFJob"):
        flags.kinds(read("enable-scheme=tensorflowjob"), ["TFJob", "PyTorchJob"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param([], ("info", False), id="text for people"),
        pytest.param(["json-logs=true"], ("info", True), id="JSON"),
        pytest.param(["json-log-format=true"], ("info", True), id="JSON, as tf-operator says it"),
        pytest.param(["zap-devel=false"], ("info", True), id="what zap calls production"),
        pytest.param(["zap-devel=false", "zap-encoder=console"], ("info", False), id="the encoder has the last word"),
        pytest.param(["zap-log-level=debug"], ("debug", False), id="a level"),
        pytest.param(["zap-log-level=2"], ("debug", False), id="a level as a number"),
        pytest.param(["zap-log-level=panic"], ("critical", False), id="a level that only zap has"),
    ],
)
def test_the_form_of_the_logs(words: Sequence[str], expected: tuple[str, bool]) -> None:
    assert expected == flags.log_form(read(*words))


def test_a_flag_that_does_nothing_says_so() -> None:
    assert ("--resyc-period does nothing here: as --resync-period",) == read("resyc-period=12h").notes


def test_the_init_containers_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "init.yaml"
    file.write_text("- name: wait")

    assert "- name: wait" == flags.init_template(read(f"pytorch-init-container-template-file={file}"))
    assert "" == flags.init_template(read())
    with pytest.raises(flags.BadFlag, match="there is no such file"):
        flags.init_template(read(f"pytorch-init-container-template-file={tmp_path / 'other'}"))
