"""PaddlePaddle, collectively: every replica learns from points of its own, and all end with the same model.

Started by `python -m paddle.distributed.launch`, which reads the PADDLE_ variables that PaddleJob sets.
"""

import hashlib

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1).astype(np.float32), arm


def main() -> None:
    paddle.set_device("cpu")
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    paddle.seed(0)                   # everybody begins with the same parameters
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    points, arms = spirals(seed=1 + rank)
    mine = np.random.default_rng(rank)
    for number in range(1, 101):
        pick = mine.integers(0, len(arms), 60)
        loss = nn.functional.cross_entropy(model(paddle.to_tensor(points[pick])), paddle.to_tensor(arms[pick]))
        (loss / world).backward()
        for one in model.parameters():
            dist.all_reduce(one.grad)
        optimizer.step()
        optimizer.clear_grad()
        if number % 20 == 0:
            print(f"rank {rank} of {world} step {number} loss {float(loss):.4f}", flush=True)
    points, arms = spirals(seed=0)
    accuracy = float((np.argmax(model(paddle.to_tensor(points)).numpy(), axis=1) == arms).mean())
    known = hashlib.sha256(b"".join(one.numpy().tobytes() for one in model.parameters())).hexdigest()[:16]
    print(f"rank {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
