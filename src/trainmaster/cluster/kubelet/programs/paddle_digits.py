"""Handwritten digits with PaddlePaddle, collectively over gloo, under `python -m paddle.distributed.launch`."""

import sys

import lesson
import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn


def main() -> int:
    paddle.set_device("cpu")
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    who = f"rank {rank} of {world}"
    x, y, test_x, test_y = lesson.digits(rank, world)
    print(f"{who} learns from {len(x)} digits of its own", flush=True)
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = paddle.optimizer.SGD(0.3, parameters=model.parameters())
    rng, losses = np.random.default_rng(rank), []
    for number in range(100):
        pick = rng.integers(0, len(x), 32)
        loss = nn.functional.cross_entropy(model(paddle.to_tensor(x[pick])), paddle.to_tensor(y[pick]))
        (loss / world).backward()
        for one in model.parameters():
            if world > 1:
                dist.all_reduce(one.grad)
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
        if number % 20 == 0:
            print(f"{who} step {number + 1} loss {losses[-1]:.4f}", flush=True)
    found = np.argmax(model(paddle.to_tensor(test_x)).numpy(), axis=1)
    known = lesson.digest(one.numpy() for one in model.parameters())
    return lesson.verdict(who, losses, known, float((found == test_y).mean()))


if __name__ == "__main__":
    sys.exit(main())
