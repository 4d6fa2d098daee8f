"""A day in the words of the kubeflow-training SDK. See `test_clients`; how pods end is played here."""

import logging
import sys

from kubeflow.training import TrainingClient, models

from kubernetes import client

kubeconfig, namespace = sys.argv[1:]
logging.disable(logging.CRITICAL)  # the SDK tells its progress with times in it
training = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="TFJob")
WAIT = {"wait_timeout": 20, "polling_interval": 0.1}


def replica(count):
    container = client.V1Container(name="tensorflow", image="example.com/mnist:1", command=["train"])
    template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container]))
    return models.KubeflowOrgV1ReplicaSpec(replicas=count, restart_policy="OnFailure", template=template)


def job(name):
    return models.KubeflowOrgV1TFJob(
        api_version="kubeflow.org/v1", kind="TFJob", metadata=client.V1ObjectMeta(name=name, namespace=namespace),
        spec=models.KubeflowOrgV1TFJobSpec(
            run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            tf_replica_specs={"Chief": replica(1), "Worker": replica(2)}))


def ends(pod, code):
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    status = {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [
        {"name": "tensorflow", "image": "i", "imageID": "i", "ready": False, "restartCount": 0, "state": state}]}
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
