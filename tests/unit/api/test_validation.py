"""Every rule a job must meet. The texts of V1 to V14 are upstream's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.stories import job_of, tfjob

from trainmaster.api.kubeflow_v1 import KINDS, kind_named
from trainmaster.api.meta import Object
from trainmaster.api.validation import advice, in_one, problems, warnings

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["Worker", "template", "spec", "containers", "name", "image", "ports", "schedulingPolicy"]),
        inner, max_size=3),
    max_leaves=12,
)
WORKER = "spec.tfReplicaSpecs[Worker]"
NAME_RULE = (
    "should match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def named(name: str, replicas: int = 1) -> Object:
    thing = tfjob(roles={"Worker": (replicas, "Never")})
    thing["metadata"] = {"name": name}
    return thing


def with_worker(**changes: Any) -> Object:
    thing = tfjob()
    thing["spec"]["tfReplicaSpecs"]["Worker"] |= changes
    return thing


def with_containers(*containers: Object) -> Object:
    return with_worker(template={"spec": {"containers": list(containers)}})


def found(thing: Object, before: Object | None = None) -> list[str]:
    return [str(problem) for problem in problems(thing, before)]


def test_a_slip_of_the_hand_in_the_number_of_replicas_cannot_keep_the_operator_busy() -> None:
    (problem,) = found(tfjob(roles={"PS": (1, "Never"), "Worker": (2_000_000_000, "Never")}))

    assert "spec.tfReplicaSpecs: Invalid value: 2000000001: a job may have at most 10000 replicas in all" == problem


def test_a_good_job_has_no_problems() -> None:
    assert [] == found(tfjob(roles={"Chief": (1, "Never"), "PS": (2, "ExitCode"), "Worker": (3, "OnFailure")}))


@pytest.mark.parametrize("thing", [
    pytest.param(tfjob(roles={"worker": (1, "Never")}), id="a role in lower case (B-16)"),
    pytest.param(tfjob(roles={"Chief": (1, "Never"), "Worker": (0, "Never")}), id="no workers beside a chief"),
    pytest.param(tfjob(roles={"PS": (0, "Never"), "Worker": (1, "Never")}), id="no parameter servers"),
    pytest.param(tfjob(roles={"Chief": (3, "Never")}), id="three chiefs of one role"),
    pytest.param(tfjob(roles={}), id="no roles at all: nothing happens to it"),
    pytest.param(tfjob(policy={"cleanPodPolicy": ""}), id="an empty word"),
    pytest.param({**tfjob(), "metadata": {"generateName": "mnist-"}}, id="a name that the server makes up"),
    pytest.param(with_worker(unknown=1), id="a field from the future"),
    pytest.param({"kind": "Pod"}, id="another kind: not ours to judge"),
])
def test_what_is_fine(thing: Object) -> None:
    assert [] == found(thing)


@pytest.mark.parametrize(("thing", "expected"), [
    pytest.param(named("1st"), [f'metadata.name: Invalid value: "1st": {NAME_RULE}'], id="V1: a digit in front"),
    pytest.param(named("a_b"), [f'metadata.name: Invalid value: "a_b": {NAME_RULE}'], id="V1: an underscore"),
    pytest.param(named("a."), [f'metadata.name: Invalid value: "a.": {NAME_RULE}'], id="V1: a dot"),
    pytest.param({"kind": "TFJob", "metadata": {"name": "a"}},
                 ["spec.tfReplicaSpecs: Required value: must be required"], id="V2: no spec"),
    pytest.param({"kind": "TFJob", "metadata": {"name": "a"}, "spec": {}},
                 ["spec.tfReplicaSpecs: Required value: must be required"], id="V2: no replica map"),
    pytest.param(with_containers(), [
        f"{WORKER}.template.spec.containers: Required value: must be specified",
        f"{WORKER}.template.spec.containers: Required value: must have at least one container with name tensorflow",
    ], id="V4: no containers, which V6 reports as well"),
    pytest.param(with_worker(template={}), [
        f"{WORKER}.template.spec.containers: Required value: must be specified",
        f"{WORKER}.template.spec.containers: Required value: must have at least one container with name tensorflow",
    ], id="V4: no template"),
    pytest.param({**tfjob(), "spec": {"tfReplicaSpecs": {"Worker": None}}}, [
        f"{WORKER}.template.spec.containers: Required value: must be specified",
        f"{WORKER}.template.spec.containers: Required value: must have at least one container with name tensorflow",
    ], id="V4: a role that is null (B-52: upstream answers with a crash)"),
    pytest.param(with_containers({"name": "tensorflow", "image": "a"}, {"name": "side"}),
                 [f"{WORKER}.template.spec.containers[1].image: Required value: must be required"], id="V5: no image"),
    pytest.param(with_containers({"name": "main", "image": "a"}), [
        f"{WORKER}.template.spec.containers: Required value: must have at least one container with name tensorflow",
    ], id="V6: no container that trains"),
    pytest.param(tfjob(roles={"Chief": (1, "Never"), "Master": (1, "Never")}),
                 ["spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role"], id="V7"),
    pytest.param(tfjob(policy={"managedBy": "me"}), [
        ('spec.runPolicy.managedBy: Unsupported value: "me": supported values: '
         '"kueue.x-k8s.io/multikueue", "kubeflow.org/training-operator"'),
    ], id="V13"),
])
def test_the_rules_that_upstream_has_too(thing: Object, expected: list[str]) -> None:
    assert expected == found(thing)


@pytest.mark.parametrize(("before", "after"), [
    pytest.param({"managedBy": "kueue.x-k8s.io/multikueue"}, {"managedBy": "kubeflow.org/training-operator"},
                 id="changed"),
    pytest.param({}, {"managedBy": "kubeflow.org/training-operator"}, id="set later"),
    pytest.param({"managedBy": "kubeflow.org/training-operator"}, {}, id="taken away"),
])
def test_v14_the_manager_cannot_be_changed(before: Object, after: Object) -> None:
    problem, = problems(tfjob(policy=after), tfjob(policy=before))

    assert ("spec.runPolicy.managedBy", True) == (problem.field, problem.message.endswith(": field is immutable"))


@pytest.mark.parametrize(("before", "after", "wrong"), [
    pytest.param("a", "b", True, id="changed"),
    pytest.param("", "b", False, id="set for the first time"),
    pytest.param("a", "", False, id="taken away"),
])
def test_v15_the_queue_cannot_be_changed(before: str, after: str, wrong: bool) -> None:
    old, new = (tfjob(policy={"schedulingPolicy": {"queue": queue}}) for queue in (before, after))

    assert wrong == bool(found(new, old))


@pytest.mark.parametrize(("thing", "field", "says"), [
    pytest.param(tfjob(roles={"Helper": (1, "Never"), "Worker": (1, "Never")}), "spec.tfReplicaSpecs[Helper]",
                 'supported values: "Chief", "Master", "Evaluator", "PS", "Worker"', id="a role nobody knows (B-60)"),
    pytest.param(tfjob(roles={"worker": (1, "Never"), "Worker": (1, "Never")}), "spec.tfReplicaSpecs",
                 "Worker is there more than once, spelled differently; keep one of them", id="a role twice"),
    pytest.param(tfjob(roles={"Worker": (0, "Never")}), "spec.tfReplicaSpecs[Worker].replicas",
                 "to pause it set spec.runPolicy.suspend", id="nobody who could decide (B-01)"),
    pytest.param(tfjob(roles={"Chief": (0, "Never"), "Worker": (1, "Never")}), "spec.tfReplicaSpecs[Chief].replicas",
                 "the job succeeds when Chief does", id="no chief where there should be one"),
    pytest.param(tfjob(roles={"Worker": (-1, "Never")}), "spec.tfReplicaSpecs[Worker].replicas",
                 "must be greater than or equal to 0", id="less than none"),
    pytest.param(with_worker(restartPolicy="Sometimes"), "spec.tfReplicaSpecs[Worker].restartPolicy",
                 'supported values: "Always", "OnFailure", "Never", "ExitCode"', id="a restart policy nobody knows"),
    pytest.param(tfjob(policy={"cleanPodPolicy": "Some"}), "spec.runPolicy.cleanPodPolicy",
                 'supported values: "None", "Running", "All"', id="a clean-up policy nobody knows"),
    pytest.param(tfjob(successPolicy="Most"), "spec.successPolicy", '"AllWorkers"', id="a success policy nobody knows"),
    pytest.param(tfjob(policy={"backoffLimit": -1}), "spec.runPolicy.backoffLimit", "-1", id="a negative limit"),
    pytest.param(tfjob(policy={"activeDeadlineSeconds": -1}), "spec.runPolicy.activeDeadlineSeconds", "-1",
                 id="a negative deadline"),
    pytest.param(tfjob(policy={"ttlSecondsAfterFinished": -1}), "spec.runPolicy.ttlSecondsAfterFinished", "-1",
                 id="a negative time to live"),
    pytest.param(with_worker(template={"spec": "x"}), "spec.tfReplicaSpecs[Worker].template.spec", "Expected `object",
                 id="a pod that is a word"),
    pytest.param(with_containers({"name": "tensorflow", "image": "a", "ports": [{"name": "tfjob-port"}]}),
                 "spec.tfReplicaSpecs[Worker].template.spec.containers[0].ports[0]", "containerPort",
                 id="a port without a number"),
    pytest.param(with_worker(template={"metadata": {"labels": {"a": 1}}}),
                 "spec.tfReplicaSpecs[Worker].template.metadata.labels[*]", "Expected `str",
                 id="a label that is a number"),
    pytest.param(with_worker(replicas="two"), "spec.tfReplicaSpecs[*].replicas", "Expected `int", id="a wrong type"),
])
def test_the_rules_that_only_we_have(thing: Object, field: str, says: str) -> None:
    assert [True] == [problem.field == field and says in problem.message for problem in problems(thing)], found(thing)


@pytest.mark.parametrize(("length", "replicas", "fits"), [
    pytest.param(54, 10, True, id="54 and -worker-9 are 63"),
    pytest.param(55, 10, False, id="one more is too long"),
    pytest.param(54, 11, False, id="an index of two digits is too long"),
    pytest.param(53, 100, True, id="53 and -worker-99 are 63"),
])
def test_names_of_pods_must_fit_into_a_label(length: int, replicas: int, fits: bool) -> None:
    """B-20: upstream accepts the job, and then its services fail for ever."""
    assert fits == (not found(named("a" * length, replicas)))


def test_a_name_that_is_too_long_says_how_long_it_may_be() -> None:
    assert "use at most 54" in found(named("a" * 60))[0]


def test_several_problems_are_one_sentence() -> None:
    thing = with_containers({"name": "main"})
    thing["spec"]["runPolicy"] = {"managedBy": "me"}

    text = in_one(problems(thing))

    assert text.startswith("[spec.runPolicy.managedBy: Unsupported")
    assert text.endswith("must have at least one container with name tensorflow]")


@given(json_values, json_values)
@settings(deadline=None)
def test_nonsense_is_a_problem_and_never_a_crash(specs: Any, policy: Any) -> None:
    spec = {"tfReplicaSpecs": specs, "runPolicy": policy}

    assert isinstance(found({"kind": "TFJob", "metadata": {"name": "a"}, "spec": spec}), list)


@given(json_values)
@settings(deadline=None)
def test_nonsense_in_a_template_is_a_problem_and_never_a_crash(template: Any) -> None:
    assert found(with_worker(template=template))


def of(kind: str, fields: Any = None, **roles: Any) -> Object:
    """A job of another kind; a role with None has no number of replicas."""
    thing = job_of(kind, roles=dict.fromkeys(roles, (1, "Never")), **(fields or {}))
    known = kind_named(kind)
    assert known is not None
    for role, count in roles.items():
        spec = thing["spec"][known.replica_field][role]
        spec["replicas"] = count
        if count is None:
            del spec["replicas"]
    return thing


def spoiled(kind: str, role: str, **container: Any) -> Object:
    thing = of(kind, **{role: 1})
    known = kind_named(kind)
    assert known is not None
    thing["spec"][known.replica_field][role]["template"]["spec"]["containers"][0] |= container
    return thing


DECIDING = {known.kind: known.deciding[0] for known in KINDS}


@pytest.mark.parametrize("kind", DECIDING)
@pytest.mark.parametrize("rule", ["V1", "V2", "V3", "V4", "V5", "V6", "V13", "V14", "V15"])
def test_the_rules_that_all_kinds_have(kind: str, rule: str) -> None:
    """B-19: a JAXJob cannot change its manager either; B-18: nor a PyTorchJob; B-32: an MXJob has its own name."""
    role, known = DECIDING[kind], kind_named(kind)
    assert known is not None
    where = f"spec.{known.replica_field}"
    fine, thing, before = of(kind, **{role: 1}), of(kind, **{role: 1}), None
    quoted = '"paddle"' if kind == "PaddleJob" else known.container
    containers = f"{where}[{role}].template.spec.containers"
    no_container = f"{containers}: Required value: must have at least one container with name"
    expected: list[str]
    match rule:
        case "V1":
            thing["metadata"] = {"name": "1a"}
            expected = [f'metadata.name: Invalid value: "1a": {NAME_RULE}']
        case "V2":
            del thing["spec"]
            expected = [f"{where}: Required value: must be required"]
        case "V3":
            thing["spec"][known.replica_field]["Helper"] = thing["spec"][known.replica_field][role]
            supported = ", ".join(f'"{each}"' for each in known.roles)
            expected = [f'{where}[Helper]: Unsupported value: "Helper": supported values: {supported}']
        case "V4":
            thing["spec"][known.replica_field][role]["template"] = {}
            expected = [f"{where}[{role}].template.spec.containers: Required value: must be specified",
                        f"{no_container} {quoted}"]
        case "V5":
            thing = spoiled(kind, role, image="")
            expected = [f"{where}[{role}].template.spec.containers[0].image: Required value: must be required"]
        case "V6":
            thing = spoiled(kind, role, name="main")
            expected = [f"{no_container} {quoted}"]
        case "V13":
            thing["spec"]["runPolicy"] = {"managedBy": "me"}
            managers = '"kueue.x-k8s.io/multikueue", "kubeflow.org/training-operator"'
            expected = [f'spec.runPolicy.managedBy: Unsupported value: "me": supported values: {managers}']
        case "V14":
            before = fine
            thing["spec"]["runPolicy"] = {"managedBy": "kubeflow.org/training-operator"}
            expected = ['spec.runPolicy.managedBy: Invalid value: "kubeflow.org/training-operator": field is immutable']
        case _:
            before = of(kind, **{role: 1}, fields={"runPolicy": {"schedulingPolicy": {"queue": "a"}}})
            thing["spec"]["runPolicy"] = {"schedulingPolicy": {"queue": "b"}}
            queue = "spec.runPolicy.schedulingPolicy.queue"
            expected = [f'{queue}: Invalid value: "b": {queue} is immutable']

    assert [] == found(fine)
    assert expected == found(thing, before)


PYTORCH, XGBOOST = "spec.pytorchReplicaSpecs", "spec.xgbReplicaSpecs"


@pytest.mark.parametrize(("thing", "expected"), [
    pytest.param(of("PyTorchJob", Master=None, Worker=None), [], id="B-17: a master without a number is one"),
    pytest.param(of("XGBoostJob", Master=None), [], id="B-17: also in an XGBoostJob"),
    pytest.param(of("PyTorchJob", Master=2), [f"{PYTORCH}[Master].replicas: Forbidden: must be 1"], id="V8"),
    pytest.param(of("PyTorchJob", Master=0), [f"{PYTORCH}[Master].replicas: Forbidden: must be 1"], id="V8: none"),
    pytest.param(of("XGBoostJob", Master=2), [f"{XGBOOST}[Master].replicas: Forbidden: must be 1"], id="V8: XGBoost"),
    pytest.param(of("XGBoostJob", Worker=1), [f"{XGBOOST}[Master]: Required value: must be present"],
                 id="V9: B-64, also for one process"),
    pytest.param(of("PyTorchJob", Master=1, Worker=0), [f"{PYTORCH}[Worker].replicas: Forbidden: must be at least 1"],
                 id="V10"),
    pytest.param(of("PyTorchJob", Master=1, fields={"elasticPolicy": {}}),
                 [f"{PYTORCH}[Worker]: Required value: must be configured if elastic policy is used"], id="V11"),
    pytest.param(of("PyTorchJob", Worker=1, fields={"nprocPerNode": "1", "elasticPolicy": {"nProcPerNode": 1}}),
                 ["spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode"], id="V12"),
    pytest.param(of("PyTorchJob", Worker=1, fields={"elasticPolicy": {"minReplicas": 3, "maxReplicas": 2}}),
                 ["spec.elasticPolicy.minReplicas: Invalid value: 3: must not be more than maxReplicas, which is 2"],
                 id="bounds the wrong way round"),
    pytest.param(of("PyTorchJob", Worker=1, fields={"elasticPolicy": {"rdzvPort": -1}}),
                 ["spec.elasticPolicy.rdzvPort: Invalid value: -1: must be greater than or equal to 0"],
                 id="a negative port"),
    pytest.param(of("PyTorchJob", Worker=1, fields={"elasticPolicy": {"nProcPerNode": -1}}),
                 ["spec.elasticPolicy.nProcPerNode: Invalid value: -1: must be greater than or equal to 0"],
                 id="less than no process, said in the old way"),
    *(pytest.param(of("PyTorchJob", Worker=1, fields={"nprocPerNode": said}),
                   [f'spec.nprocPerNode: Invalid value: "{said}": must be at least 1'], id=f"{said} processes")
      for said in ("0", "-2")),
    *(pytest.param(of("PyTorchJob", Worker=1, fields={"nprocPerNode": said}), [], id=f"{said}: torchrun knows it")
      for said in ("auto", "gpu", "4", "")),
    pytest.param(of("PaddleJob", Master=3, Worker=1), [], id="a PaddleJob may have several masters"),
    pytest.param(of("PaddleJob", Worker=1, fields={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 2}}), [],
                 id="B-62: a PaddleJob's elastic policy is taken, and has no effect"),
    pytest.param(of("MXJob", Scheduler=1, scheduler=1, Worker=1),
                 [("spec.mxReplicaSpecs: Forbidden: Scheduler is there more than once, spelled differently; "
                   "keep one of them")], id="V16: two schedulers"),
    pytest.param(of("MXJob", Worker=1, fields={"jobMode": "Play"}),
                 ['spec.jobMode: Unsupported value: "Play": supported values: "MXTrain", "MXTune"'],
                 id="a mode nobody knows"),
])
def test_the_rules_of_single_kinds(thing: Object, expected: list[str]) -> None:
    assert expected == found(thing)


@pytest.mark.parametrize("kind", ["TFJob", "PaddleJob", "JAXJob"])
def test_b01_nobody_who_could_decide(kind: str) -> None:
    (problem,) = found(of(kind, Worker=0))

    assert "to pause it set spec.runPolicy.suspend" in problem


def test_the_old_way_to_say_how_many_processes_is_warned_of() -> None:
    thing = of("PyTorchJob", Worker=1, fields={"elasticPolicy": {"nProcPerNode": 1}})

    assert ["spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"] == warnings(thing)
    assert [] == warnings(of("PyTorchJob", Worker=1))


def test_b46_a_replica_that_always_restarts_never_ends_and_that_is_said_to_whoever_asks() -> None:
    thing = job_of("PyTorchJob", roles={"Master": (1, "Always"), "Worker": (1, "Never")})

    assert [] == found(thing)
    assert ["spec.pytorchReplicaSpecs[Master].restartPolicy is Always"] == [
        text.partition(":")[0] for text in advice(thing)]
    assert [] == advice(of("PyTorchJob", Worker=1))


@pytest.mark.parametrize(("fields", "said"), [
    pytest.param({"nprocPerNode": "all"}, ['spec.nprocPerNode is "all"'], id="a number of processes that is a word"),
    pytest.param({"elasticPolicy": {"rdzvBackend": "zookeeper"}}, ['spec.elasticPolicy.rdzvBackend is "zookeeper"'],
                 id="a meeting place nobody knows"),
    pytest.param({"nprocPerNode": "gpu", "elasticPolicy": {"rdzvBackend": "etcd-v2"}}, [], id="words of torchrun"),
    pytest.param({"nprocPerNode": "2"}, [], id="a number"),
    pytest.param({"nprocPerNode": 2, "elasticPolicy": "yes"}, ["spec.nprocPerNode is 2"], id="nonsense is no crash"),
])
def test_words_that_torchrun_does_not_know_are_told_and_not_refused(fields: Object, said: list[str]) -> None:
    """§3.2. Images may teach torchrun further words, so a job with one can be right."""
    assert said == [text.partition(":")[0] for text in advice(of("PyTorchJob", Worker=1, fields=fields))]


@pytest.mark.parametrize(("name", "supported"), [
    pytest.param("on-replica-failure", '"RestartAll", "FailAll"', id="what one failed replica means"),
    pytest.param("pod-ends-with", '"TrainingContainer"', id="B-43: when a pod has ended"),
    pytest.param("host-ports", '"Own"', id="B-63: which ports pods have on the network of their host"),
])
def test_what_an_annotation_asks_for_must_be_a_word_that_we_know(name: str, supported: str) -> None:
    thing = tfjob()
    thing["metadata"]["annotations"] = {f"trainmaster.dev/{name}": "Panic"}

    assert [(f'metadata.annotations[trainmaster.dev/{name}]: Unsupported value: "Panic": '
             f"supported values: {supported}")] == found(thing)
