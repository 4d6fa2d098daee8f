"""Handwritten digits under torchrun, with replicas that may come and go: what `…-example-imagenet` runs here.

After every epoch rank 0 writes a checkpoint, and everybody begins from the newest one: when a replica comes or goes,
torchrun starts all of them again, and no more than an epoch is lost.
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
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    who = f"rank {rank} of {world}"
    x, y, test_x, test_y = map(torch.from_numpy, lesson.digits(rank, world))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    begun, losses = resumed(options.checkpoint_file, model)
    shared = DistributedDataParallel(model)         # sends rank 0's parameters to all
    epochs = torch.tensor([begun])
    dist.broadcast(epochs, 0)
    print(f"{who} begins after epoch {epochs.item()} with {len(x)} digits of its own", flush=True)
    optimizer = torch.optim.SGD(shared.parameters(), lr=options.lr, momentum=0.9)
    for epoch in range(int(epochs.item()), options.epochs):
        torch.manual_seed(100 * epoch + rank)
        for pick in torch.randperm(len(x)).split(options.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(shared(x[pick]), y[pick])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{who} epoch {epoch + 1} loss {losses[-1]:.4f}", flush=True)
        if rank == 0:
            state = {"epoch": epoch + 1, "losses": losses, "model": model.state_dict()}
            torch.save(state, options.checkpoint_file + ".new")
            os.replace(options.checkpoint_file + ".new", options.checkpoint_file)
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    dist.destroy_process_group()
    if not losses:
        return 0                                    # all had been done before this replica came
    return lesson.verdict(who, losses, lesson.digest(one.detach().numpy() for one in model.parameters()), accuracy)


def resumed(path: str, model: nn.Module) -> tuple[int, list[float]]:
    if not os.path.exists(path):
        return 0, []
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    return int(state["epoch"]), list(state["losses"])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--checkpoint-file", default="checkpoint.pth.tar")
    return parser.parse_known_args()[0]


if __name__ == "__main__":
    sys.exit(main())
