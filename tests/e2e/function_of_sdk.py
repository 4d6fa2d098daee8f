"""A Python function that trains, sent with the unmodified kubeflow-training SDK. See `test_training_sdk`."""

import logging
import sys
import time

from kubeflow.training import TrainingClient

kubeconfig, seconds = sys.argv[1:]
logging.disable(logging.CRITICAL)  # the SDK tells its progress with times in it
training = TrainingClient(config_file=kubeconfig, namespace="default", job_kind="PyTorchJob")


def train(parameters):
    """Replicas with data of their own find one line. No dollar sign in here: the SDK's shell would expand it."""
    import hashlib

    import torch
    import torch.distributed as group

    group.init_process_group("gloo")
    torch.manual_seed(group.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=parameters["rate"])
    places = torch.rand(64, 2)
    values = places @ torch.tensor([[3.0], [-2.0]]) + 1.0
    losses = []
    for _ in range(parameters["epochs"]):
        loss = torch.nn.functional.mse_loss(model(places), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    learned = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    print(f"rank {group.get_rank()} of {group.get_world_size()} loss {losses[0]:.4f} -> {losses[-1]:.4f} "
          f"parameters {hashlib.sha256(learned).hexdigest()[:12]}")
    group.destroy_process_group()


training.create_job(name="line", train_func=train, parameters={"epochs": 50, "rate": 0.3}, num_workers=2,
                    num_procs_per_worker=1, resources_per_worker={"cpu": 1, "memory": "1Gi"})
training.wait_for_job_conditions("line", wait_timeout=int(seconds), polling_interval=1)
until = time.monotonic() + 120
while True:      # the job is over with its master; the worker may still be about to say its last word
    logs, _ = training.get_job_logs("line", is_master=False)
    if all("parameters" in text for text in logs.values()) or time.monotonic() > until:
        break
for pod, text in sorted(logs.items()):
    print(pod, text)
training.delete_job("line")
