"""A day in the words of the kubeflow-training SDK. See `test_clients`; how pods end is played here."""

import logging
import sys

from kubeflow.training import TrainingClient, models

from kubernetes import client

kubeconfig, namespace = sys.argv[1:]
logging.disable(logging.CRITICAL)  # the SDK tells its progress with times in it
training = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="TFJob")
WAIT = {"wait_timeout": 60, "polling_interval": 0.1}


def replica(count, container="tensorflow"):
    container = client.V1Container(name=container, image="example.com/mnist:1", command=["train"])
    template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container]))
    return models.KubeflowOrgV1ReplicaSpec(replicas=count, restart_policy="OnFailure", template=template)


def job(name):
    return models.KubeflowOrgV1TFJob(
        api_version="kubeflow.org/v1", kind="TFJob", metadata=client.V1ObjectMeta(name=name, namespace=namespace),
        spec=models.KubeflowOrgV1TFJobSpec(
            run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            tf_replica_specs={"Chief": replica(1), "Worker": replica(2)}))


def ends(pod, code, container="tensorflow"):
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    status = {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [
        {"name": container, "image": "i", "imageID": "i", "ready": False, "restartCount": 0, "state": state}]}
    training.core_api.patch_namespaced_pod_status(pod, namespace, {"status": status})


training.create_job(job("good"))
found = training.wait_for_job_conditions("good", expected_conditions={"Running"}, **WAIT)
print("running", type(found).__name__, found.spec.tf_replica_specs["Worker"].replicas)
print("pods", sorted(training.get_job_pod_names("good")))
print("master", training.get_job_pod_names("good", is_master=True))
print("logs", training.get_job_logs("good")[0])
training.update_job(models.KubeflowOrgV1TFJob(metadata=client.V1ObjectMeta(labels={"team": "a"})), "good")
print("updated", training.get_job("good").metadata.labels)
ends("good-chief-0", 0)
training.wait_for_job_conditions("good", **WAIT)
print("conditions", [each.type for each in training.get_job_conditions("good") if each.status == "True"])
print("succeeded", training.is_job_succeeded("good"), training.is_job_failed("good"))

training.create_job(name="from-an-image", base_image="example.com/mnist:1", num_workers=2, num_chief_replicas=1,
                    resources_per_worker={"cpu": 1, "memory": "1Gi"}, env_vars={"EPOCHS": "3"})
print("listed", sorted(each.metadata.name for each in training.list_jobs()))
try:
    training.create_job(job("good"))
except RuntimeError as error:
    print("again", "409" in str(error.__cause__ or error.__context__))
for name in ("good", "from-an-image"):
    training.delete_job(name)
print("left", [each.metadata.name for each in training.list_jobs()])

# The same in short with the other kinds: how their jobs are called, what the replicas stand under, their container and
# the replica whose end decides.
for kind, field, container, first in (
    ("PyTorchJob", "pytorch_replica_specs", "pytorch", "Master"),
    ("XGBoostJob", "xgb_replica_specs", "xgboost", "Master"),
    ("PaddleJob", "paddle_replica_specs", "paddle", "Master"),
    ("JAXJob", "jax_replica_specs", "jax", "Worker"),
):
    roles = {first: replica(1, container), "Worker": replica(1, container)}
    spec = getattr(models, f"KubeflowOrgV1{kind}Spec")(
        run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"), **{field: roles})
    of = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind=kind)
    of.create_job(getattr(models, f"KubeflowOrgV1{kind}")(
        api_version="kubeflow.org/v1", kind=kind, metadata=client.V1ObjectMeta(name=container, namespace=namespace),
        spec=spec))
    of.wait_for_job_conditions(container, expected_conditions={"Running"}, **WAIT)
    pods = sorted(of.get_job_pod_names(container))
    logs = of.get_job_logs(container, is_master=first == "Master")[0]
    print(kind, pods, sorted(logs.items()), [each.metadata.name for each in of.list_jobs()])
    for pod in pods:
        ends(pod, 0, container)
    of.wait_for_job_conditions(container, **WAIT)
    true = [each.type for each in of.get_job_conditions(container) if each.status == "True"]
    of.delete_job(container)
    print(kind, true, [each.metadata.name for each in of.list_jobs()])
