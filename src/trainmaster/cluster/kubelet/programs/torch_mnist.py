"""Handwritten digits with DistributedDataParallel: what `pytorch-mnist` and `pytorch-dist-mnist` run on this machine.

Reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as PyTorchJob and torchrun set them; without, trains alone. Takes
the options of the programs it stands for.
"""

import argparse
import os
import sys

import lesson
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> int:
    options = parse_arguments()
    distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if distributed:
        dist.init_process_group(backend_for(options.backend))
    rank, world = (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)
    who = f"rank {rank} of {world}"
    x, y, test_x, test_y = map(torch.from_numpy, lesson.digits(rank, world))
    print(f"{who} learns from {len(x)} digits of its own", flush=True)

    torch.manual_seed(options.seed)
    model = network()
    shared = DistributedDataParallel(model) if distributed else model
    optimizer = torch.optim.SGD(shared.parameters(), lr=options.lr, momentum=options.momentum)
    losses = []
    torch.manual_seed(options.seed + 1 + rank)      # from here on, every replica goes its own way through its data
    for epoch in range(1, options.epochs + 1):
        for number, pick in enumerate(torch.randperm(len(x)).split(options.batch_size)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(shared(x[pick].reshape(-1, 1, 8, 8)), y[pick])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if number % options.log_interval == 0:
                print(f"{who} epoch {epoch} step {len(losses)} loss {losses[-1]:.4f}", flush=True)
    with torch.no_grad():
        accuracy = (model(test_x.reshape(-1, 1, 8, 8)).argmax(1) == test_y).float().mean().item()
    known = lesson.digest(one.detach().numpy() for one in model.parameters())
    if options.save_model and rank == 0:
        torch.save(model.state_dict(), "mnist_cnn.pt")
    if distributed:
        dist.destroy_process_group()
    return lesson.verdict(who, losses, known, accuracy)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--save-model", action="store_true")
    options, others = parser.parse_known_args()
    if others:
        print(f"options without meaning here: {' '.join(others)}", flush=True)
    return options


def backend_for(wanted: str) -> str:
    there = {"gloo": True, "mpi": dist.is_mpi_available(), "nccl": torch.cuda.is_available()}
    if there.get(wanted, False):
        return wanted
    print(f"backend {wanted} cannot be had on this machine, gloo stands in", flush=True)
    return "gloo"


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )


if __name__ == "__main__":
    sys.exit(main())
