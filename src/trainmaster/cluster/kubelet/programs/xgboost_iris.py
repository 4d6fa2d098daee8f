"""Irises with XGBoost: what `xgboost-dist-iris` and `xgboost-dist-rabit-test` run on this machine.

Reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as XGBoostJob sets them. Rank 0 keeps track of the others, and
trains too. Takes the options of the program it stands for; a model is kept in a file, and object stores are refused.
"""

import argparse
import os
import sys

import lesson
import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker


def main() -> int:
    options = parse_arguments()
    if options.model_storage_type != "local":
        print(f"models in '{options.model_storage_type}' are not for this program, which knows no object store: "
              "use --model_storage_type=local with a path on a volume", file=sys.stderr)
        return 1
    return predict(options) if options.job_type == "Predict" else train(options)


def train(options: argparse.Namespace) -> int:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    port = int(os.environ.get("MASTER_PORT", "9991"))
    tracker = None
    if rank == 0:
        tracker = RabitTracker(n_workers=world, host_ip="0.0.0.0", port=port, sortby="task")
        tracker.start()
    with collective.CommunicatorContext(
        dmlc_communicator="rabit", dmlc_tracker_uri=os.environ.get("MASTER_ADDR", "127.0.0.1"), dmlc_tracker_port=port,
        dmlc_task_id=str(rank), dmlc_retry=60, dmlc_timeout=120,
    ):
        who = f"rank {collective.get_rank()} of {collective.get_world_size()}"
        x, y, test_x, test_y = lesson.irises(rank, world)
        print(f"{who} learns from {len(x)} irises of its own", flush=True)
        data, history = xgb.DMatrix(x, y), {}
        booster = xgb.train(
            parameters(options), data, options.n_estimators, evals=[(data, "train")], evals_result=history,
            verbose_eval=False, callbacks=[Said(who)],
        )
        model = "".join(booster.get_dump())
        agreed = collective.broadcast(model, 0) == model
    if tracker is not None:
        tracker.wait_for(timeout=60)
    if rank == 0 and options.model_path:
        os.makedirs(os.path.dirname(options.model_path) or ".", exist_ok=True)
        booster.save_model(options.model_path + ".ubj")
    accuracy = float((classes(booster, test_x) == test_y).mean())
    if not agreed:
        print(f"{who} has another model than rank 0", flush=True)
        return 1
    return lesson.verdict(who, history["train"]["mlogloss"], lesson.digest([model]), accuracy)


def predict(options: argparse.Namespace) -> int:
    booster = xgb.Booster(model_file=options.model_path + ".ubj")
    _, _, test_x, test_y = lesson.irises(0, 1)
    print(f"test accuracy {float((classes(booster, test_x) == test_y).mean()):.3f}", flush=True)
    return 0


def classes(booster, x):
    return np.argmax(booster.predict(xgb.DMatrix(x)), axis=1)


class Said(xgb.callback.TrainingCallback):
    """A line per round."""

    def __init__(self, who: str) -> None:
        super().__init__()
        self.who = who

    def after_iteration(self, model, epoch, evals_log) -> bool:
        print(f"{self.who} round {epoch + 1} loss {evals_log['train']['mlogloss'][-1]:.4f}", flush=True)
        return False


def parameters(options: argparse.Namespace) -> dict[str, object]:
    """Defaults, and what `--xgboost_parameter=name:value,name:value` says; the value may have colons itself."""
    found = {"objective": "multi:softprob", "num_class": 3, "max_depth": 4, "nthread": 1, "tree_method": "hist",
             "learning_rate": options.learning_rate, "eval_metric": "mlogloss"}
    for pair in options.xgboost_parameter.strip("\"'").split(","):
        name, colon, value = pair.partition(":")
        if colon:
            found[name.strip()] = value.strip()
    return found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job_type", default="Train")
    parser.add_argument("--xgboost_parameter", default="")
    parser.add_argument("--n_estimators", type=int, default=10)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--model_path", default="")
    parser.add_argument("--model_storage_type", default="local")
    return parser.parse_known_args()[0]


if __name__ == "__main__":
    sys.exit(main())
