"""XGBoost: rank 0 keeps track of the others, every replica has rows of its own, and all get the same model.

XGBoostJob sets MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE.
"""

import hashlib
import os

import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1), arm


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    tracker = None
    if rank == 0:
        tracker = RabitTracker(n_workers=world, host_ip="0.0.0.0", port=port, sortby="task")
        tracker.start()
    with collective.CommunicatorContext(
        dmlc_communicator="rabit", dmlc_tracker_uri=address, dmlc_tracker_port=port, dmlc_task_id=str(rank),
        dmlc_retry=60,
    ):
        data = xgb.DMatrix(*spirals(seed=1 + rank))
        options = {"objective": "multi:softprob", "num_class": 3, "max_depth": 4, "nthread": 1}
        losses: dict = {}
        booster = xgb.train(options, data, 30, evals=[(data, "train")], evals_result=losses, verbose_eval=False)
    if tracker is not None:
        tracker.wait_for(timeout=60)
    for number, loss in enumerate(losses["train"]["mlogloss"], start=1):
        if number % 10 == 0:
            print(f"rank {rank} of {world} round {number} loss {loss:.4f}", flush=True)
    points, arms = spirals(seed=0)
    accuracy = float((booster.predict(xgb.DMatrix(points)).argmax(1) == arms).mean())
    known = hashlib.sha256("".join(booster.get_dump()).encode()).hexdigest()[:16]
    print(f"rank {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
