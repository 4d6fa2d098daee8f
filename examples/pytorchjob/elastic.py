"""Elastic training under torchrun: replicas may come and go, and the model goes on from the last checkpoint.

When a replica comes or goes, torchrun starts the script anew in all of them; whoever is rank 0 then has to find the
checkpoint, so it is kept on a volume that all see. PyTorchJob sets PET_RDZV_ENDPOINT and others for torchrun.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CHECKPOINT = Path(os.environ.get("CHECKPOINT_DIR", ".")) / "model.pt"


def spirals(seed: int, count: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    points = np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1)
    return torch.tensor(points, dtype=torch.float32), torch.tensor(arm)


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    done = torch.zeros(1, dtype=torch.int64)
    if rank == 0 and CHECKPOINT.exists():
        state = torch.load(CHECKPOINT, weights_only=True)
        model.load_state_dict(state["model"])
        done[0] = state["epoch"]
    dist.broadcast(done, 0)
    shared = DistributedDataParallel(model)          # gives everybody rank 0's parameters
    optimizer = torch.optim.Adam(shared.parameters(), lr=0.01)
    points, arms = spirals(seed=1 + rank)
    print(f"rank {rank} of {world} begins after epoch {int(done)}", flush=True)
    for epoch in range(int(done) + 1, int(os.environ.get("EPOCHS", "10")) + 1):
        for pick in torch.randperm(len(points)).split(60):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(shared(points[pick]), arms[pick])
            loss.backward()
            optimizer.step()
        print(f"rank {rank} of {world} epoch {epoch} loss {loss.item():.4f}", flush=True)
        if rank == 0:
            new = CHECKPOINT.with_suffix(".new")
            torch.save({"epoch": epoch, "model": model.state_dict()}, new)
            new.replace(CHECKPOINT)                  # whoever reads finds the old one or the new one, whole
    points, arms = spirals(seed=0)
    accuracy = (model(points).argmax(1) == arms).float().mean().item()
    known = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in model.parameters())).hexdigest()[:16]
    dist.destroy_process_group()
    print(f"rank {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
