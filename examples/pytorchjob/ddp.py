"""DistributedDataParallel: every replica learns from points of its own, and all end with the same model.

PyTorchJob sets MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, from which init_process_group knows the others.
"""

import hashlib
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def spirals(seed: int, count: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    points = np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1)
    return torch.tensor(points, dtype=torch.float32), torch.tensor(arm)


def main() -> None:
    dist.init_process_group("gloo")          # nccl on GPUs
    rank, world = dist.get_rank(), dist.get_world_size()
    points, arms = spirals(seed=1 + rank)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    shared = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(shared.parameters(), lr=0.01)
    for epoch in range(1, int(os.environ.get("EPOCHS", "10")) + 1):
        for pick in torch.randperm(len(points)).split(60):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(shared(points[pick]), arms[pick])
            loss.backward()                  # waits for the others, and averages the gradients
            optimizer.step()
        print(f"rank {rank} of {world} epoch {epoch} loss {loss.item():.4f}", flush=True)
    points, arms = spirals(seed=0)
    accuracy = (model(points).argmax(1) == arms).float().mean().item()
    known = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in model.parameters())).hexdigest()[:16]
    dist.destroy_process_group()
    print(f"rank {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
