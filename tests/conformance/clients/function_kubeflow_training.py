"""A Python function as a job, in the words of the kubeflow-training SDK. See `test_clients`."""

import logging
import sys

from kubeflow.training import TrainingClient

kubeconfig, namespace = sys.argv[1:]
logging.disable(logging.CRITICAL)  # the SDK tells its progress with times in it
training = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="PyTorchJob")
WAIT = {"wait_timeout": 60, "polling_interval": 0.1}


def train(parameters):
    print(parameters["epochs"])


training.create_job(name="fn", train_func=train, parameters={"epochs": 3}, num_workers=3, num_procs_per_worker=2,
                    base_image="example.com/torch:1", resources_per_worker={"cpu": 1, "memory": "1Gi"})
training.wait_for_job_conditions("fn", expected_conditions={"Running"}, **WAIT)
print("pods", sorted(training.get_job_pod_names("fn")))
(master,) = training.get_job_pods("fn", is_master=True)
container = master.spec.containers[0]
print("runs", container.command, "torchrun" in container.args[0], "def train(parameters):" in container.args[0])
told = {each.name: each.value for each in container.env}
print("told", {name: told[name] for name in ("MASTER_ADDR", "WORLD_SIZE", "RANK", "PET_NNODES", "PET_NPROC_PER_NODE")})
print("asks", container.resources.limits)
state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
training.core_api.patch_namespaced_pod_status("fn-master-0", namespace, {"status": {
    "phase": "Succeeded", "containerStatuses": [{"name": "pytorch", "image": "i", "imageID": "i", "ready": False,
                                                 "restartCount": 0, "state": state}]}})
training.wait_for_job_conditions("fn", **WAIT)
print("succeeded", training.is_job_succeeded("fn"))
training.delete_job("fn")
print("left", [each.metadata.name for each in training.list_jobs()])
