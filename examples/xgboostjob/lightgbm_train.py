"""LightGBM over its sockets, as an XGBoostJob: every replica has rows of its own, and all get the same model.

XGBoostJob sets MASTER_ADDR, MASTER_PORT, WORKER_ADDRS, WORKER_PORT, RANK and WORLD_SIZE.
"""

import hashlib
import os
import socket
import time

import lightgbm as lgb
import numpy as np


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1), arm


def address(name: str) -> str:
    """LightGBM wants addresses. A replica that has not begun has none yet."""
    while True:
        try:
            return socket.gethostbyname(name)
        except OSError:
            time.sleep(0.5)


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    hosts = [(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])]
    hosts += [(name, os.environ["WORKER_PORT"]) for name in os.environ["WORKER_ADDRS"].split(",")]
    data = lgb.Dataset(*spirals(seed=1 + rank))
    losses: dict = {}
    booster = lgb.train(
        {"objective": "multiclass", "num_class": 3, "num_leaves": 15, "verbosity": -1, "num_threads": 1,
         "tree_learner": "data", "pre_partition": True, "num_machines": world,
         "machines": ",".join(f"{address(name)}:{port}" for name, port in hosts),
         "local_listen_port": int(hosts[rank][1])},
        data, 30, valid_sets=[data], valid_names=["train"], callbacks=[lgb.record_evaluation(losses)],
    )
    for number, loss in enumerate(losses["train"]["multi_logloss"], start=1):
        if number % 10 == 0:
            print(f"rank {rank} of {world} round {number} loss {loss:.4f}", flush=True)
    points, arms = spirals(seed=0)
    accuracy = float((np.argmax(booster.predict(points), axis=1) == arms).mean())
    known = hashlib.sha256(booster.model_to_string().split("parameters:")[0].encode()).hexdigest()[:16]
    print(f"rank {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
