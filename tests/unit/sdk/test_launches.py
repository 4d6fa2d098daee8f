"""From what was asked to the objects of a job."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.api.validation import problems
from trainmaster.sdk import launches, parcels
from trainmaster.sdk.launches import PROFILES, Launch
from trainmaster.sdk.parcels import ScriptError

PARCEL = parcels.packed({"train.py": b"print(1)"}, "train.py")


def job(**asked: Any) -> Object:
    return launches.objects(Launch("mnist", PARCEL, asked.pop("script", "train.py"), **asked))[-1]


def roles(**asked: Any) -> dict[str, int]:
    made = job(**asked)
    field = next(name for name in made["spec"] if name.endswith("ReplicaSpecs"))
    return {role: spec["replicas"] for role, spec in made["spec"][field].items()}


def container(role: str = "Worker", **asked: Any) -> Object:
    made = job(**asked)
    field = next(name for name in made["spec"] if name.endswith("ReplicaSpecs"))
    found: Object = made["spec"][field][role]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("framework", sorted(PROFILES))
@pytest.mark.parametrize("workers", [1, 4])
def test_every_framework_gives_a_job_that_is_taken(framework: str, workers: int) -> None:
    assert [] == problems(job(framework=framework, workers=workers, gpus=2, queue="q", priority="high"))


@pytest.mark.parametrize(("imports", "framework"), [
    pytest.param(["os", "torch"], "pytorch", id="torch is PyTorch"),
    pytest.param(["transformers", "torch"], "pytorch", id="so are Transformers"),
    pytest.param(["keras"], "tensorflow", id="Keras is TensorFlow"),
    pytest.param(["jax", "tensorflow"], "jax", id="the first that is known counts"),
    pytest.param(["lightgbm"], "lightgbm", id="LightGBM is a framework"),
    pytest.param(["numpy", "os"], "python", id="none is plain Python"),
    pytest.param([], "python", id="so is nothing at all"),
])
def test_a_framework_is_known_by_what_is_imported(imports: list[str], framework: str) -> None:
    assert framework == launches.guessed(imports)


@pytest.mark.parametrize(("asked", "expected"), [
    pytest.param({"framework": "pytorch", "workers": 4}, {"Worker": 4}, id="PyTorch: workers that are all alike"),
    pytest.param({"framework": "tensorflow", "workers": 4, "servers": 2}, {"PS": 2, "Worker": 4},
                 id="TensorFlow: parameter servers if asked for"),
    pytest.param({"framework": "xgboost", "workers": 4}, {"Master": 1, "Worker": 3},
                 id="XGBoost: the master is one of the workers"),
    pytest.param({"framework": "xgboost", "workers": 1}, {"Master": 1}, id="or the only one"),
    pytest.param({"framework": "mxnet", "workers": 2}, {"Scheduler": 1, "Server": 1, "Worker": 2},
                 id="MXNet: a scheduler and a server come with the workers"),
])
def test_workers_become_roles(asked: dict[str, Any], expected: dict[str, int]) -> None:
    assert expected == roles(**asked)


def test_servers_are_refused_where_there_are_none() -> None:
    with pytest.raises(ScriptError, match="servers: jobs of pytorch have no parameter servers; those of tensorflow"):
        job(framework="pytorch", servers=1)


@pytest.mark.parametrize(("asked", "program"), [
    pytest.param({}, ["python3", "-u", "train.py"], id="Python, unbuffered"),
    pytest.param({"arguments": ("--lr", "$(HOME) $5")}, ["python3", "-u", "train.py", "--lr", "$$(HOME) $$5"],
                 id="arguments come as they are, dollars too"),
    pytest.param({"script": "run.sh"}, ["sh", "run.sh"], id="a shell script"),
    pytest.param({"framework": "pytorch", "gpus": 1}, ["python3", "-u", "train.py"],
                 id="one GPU needs no torchrun"),
    pytest.param({"framework": "pytorch", "gpus": 2}, ["python3", "-u", "-m", "torch.distributed.run", "train.py"],
                 id="several GPUs: a process for each"),
])
def test_the_code_is_unpacked_and_becomes_the_script(asked: dict[str, Any], program: list[str]) -> None:
    command = container(**asked)["command"]

    assert ["python3", "-I", "-S", "-c", launches.UNPACK] == command[:5]
    assert program == command[5:]


def environment(**asked: Any) -> dict[str, str]:
    return {each["name"]: each.get("value") or each["valueFrom"]["fieldRef"]["fieldPath"]
            for each in container(**asked)["env"]}


def test_plain_scripts_are_told_who_is_who() -> None:
    told = environment(workers=3)

    assert ("mnist-worker-0", "3", "0") == (told["MASTER_ADDR"], told["WORLD_SIZE"], told["LOCAL_RANK"])
    assert "metadata.labels['training.kubeflow.org/replica-index']" == told["RANK"]


def test_what_the_person_says_wins() -> None:
    assert "7" == environment(environment={"WORLD_SIZE": "7"})["WORLD_SIZE"]
    assert "a$$b" == environment(environment={"X": "a$b"})["X"]


def test_gpus_are_for_workers_only() -> None:
    assert {"limits": {"nvidia.com/gpu": 2}} == container(framework="tensorflow", gpus=2, servers=1)["resources"]
    assert "resources" not in container("PS", framework="tensorflow", gpus=2, servers=1)


def test_an_output_folder_holds_the_working_directories() -> None:
    made = job(output="/data/out")["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]

    assert {"name": "work", "hostPath": {"path": "/data/out", "type": "DirectoryOrCreate"}} == made["volumes"][1]
    assert "$(REPLICA_ROLE)-$(REPLICA_INDEX)" == made["containers"][0]["volumeMounts"][1]["subPathExpr"]


@pytest.mark.parametrize(("script", "name"), [
    pytest.param("train.py", "train", id="without its ending"),
    pytest.param("My_Model v2.py", "my-model-v2", id="in small letters"),
    pytest.param("2024.py", "job-2024", id="beginning with a letter"),
    pytest.param("x" * 99, "x" * 40, id="not too long"),
])
def test_jobs_are_named_after_scripts(script: str, name: str) -> None:
    assert name == launches.job_name(script)


def test_where_no_environment_was_made_the_pods_install_what_is_required() -> None:
    parcel = parcels.packed({"train.py": b"", launches.REQUIREMENTS: b"tqdm\n"}, "train.py")
    made = launches.objects(Launch("mnist", parcel, "train.py", image="mine"))[-1]
    command = made["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"]

    assert ["python3", "-c", launches.INSTALL, "python3", "-u", "train.py"] == command[5:]
