"""Rank 0 sends every other rank a tensor and gets its square back: what `pytorch-dist-sendrecv-test` runs here."""

import sys

import torch
import torch.distributed as dist


def main() -> int:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    right = True
    if rank == 0:
        for other in range(1, world):
            sent = torch.full((3, 3), float(other))
            dist.send(sent, other)
            back = torch.empty(3, 3)
            dist.recv(back, other)
            right = right and torch.equal(back, sent @ sent)
            print(f"rank 0 sent {sent[0, 0]:.0f}s to rank {other} and got {back[0, 0]:.0f}s back", flush=True)
    else:
        got = torch.empty(3, 3)
        dist.recv(got, 0)
        dist.send(got @ got, 0)
        print(f"rank {rank} of {world} got {got[0, 0]:.0f}s and sent back their square", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} of {world} done: {'all as it should be' if right else 'an answer was wrong'}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
