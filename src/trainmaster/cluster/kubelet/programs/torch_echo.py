"""Says what torchrun told this replica, and that all hear each other: what `pytorch-elastic-example-echo` runs here."""

import os
import sys

import torch
import torch.distributed as dist

TOLD = ("LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "ROLE_WORLD_SIZE",
        "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID")


def main() -> int:
    for name in TOLD:
        print(f"{name}={os.environ.get(name, '')}", flush=True)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    heard = torch.tensor([float(rank)])
    dist.all_reduce(heard)
    dist.destroy_process_group()
    print(f"rank {rank} of {world} done: the ranks add up to {heard.item():.0f}", flush=True)
    return 0 if heard.item() == world * (world - 1) / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
