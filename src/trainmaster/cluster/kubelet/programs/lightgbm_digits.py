"""Even or odd digits with LightGBM over its sockets: what `lightgbm-dist-py-test` runs on this machine.

Reads MASTER_ADDR, MASTER_PORT, WORKER_ADDRS, WORKER_PORT, RANK and WORLD_SIZE, as XGBoostJob sets them. Options of the
program it stands for that LightGBM knows are passed on, but for those that name files.
"""

import os
import socket
import sys
import time

import lesson
import lightgbm as lgb

FILES = ("data", "valid_data", "job_type", "output_model", "is_save_binary_file", "use_two_round_loading",
         "metric_freq", "is_training_metric")


def main() -> int:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    who = f"rank {rank} of {world}"
    options = {"objective": "binary", "num_trees": 30, "num_leaves": 15, "learning_rate": 0.1, "tree_learner": "data"}
    options |= given(sys.argv[1:])
    x, y, test_x, test_y = lesson.digits(rank if options["tree_learner"] != "feature" else 0,
                                         world if options["tree_learner"] != "feature" else 1)
    print(f"{who} learns from {len(x)} digits with tree_learner={options['tree_learner']}", flush=True)
    history: dict = {}
    data = lgb.Dataset(x, y % 2)
    booster = lgb.train(
        {**options, **peers(rank, world), "metric": "binary_logloss", "num_threads": 1, "verbosity": -1,
         "deterministic": True, "seed": 7},
        data, valid_sets=[data], valid_names=["train"],
        callbacks=[lgb.record_evaluation(history), lambda env: said(who, env)],
    )
    accuracy = float(((booster.predict(test_x) > 0.5) == test_y % 2).mean())
    trees = booster.model_to_string().split("parameters:")[0]
    return lesson.verdict(who, history["train"]["binary_logloss"], lesson.digest([trees]), accuracy)


def said(who: str, env) -> None:
    if env.iteration % 10 == 0:
        print(f"{who} round {env.iteration + 1} loss {env.evaluation_result_list[0][2]:.4f}", flush=True)


def peers(rank: int, world: int) -> dict[str, object]:
    """Who takes part. LightGBM wants addresses, so the names are looked up, until all are known."""
    if world == 1:
        return {"tree_learner": "serial"}
    hosts = [(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])]
    hosts += [(name, os.environ["WORKER_PORT"]) for name in os.environ["WORKER_ADDRS"].split(",") if name]
    machines = ",".join(f"{address(name)}:{port}" for name, port in hosts)
    return {"num_machines": world, "machines": machines, "local_listen_port": int(hosts[rank][1]),
            "pre_partition": True, "time_out": 5}


def address(name: str) -> str:
    for _ in range(600):
        try:
            return socket.gethostbyname(name)
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"{name} did not appear within five minutes")


def given(words: list[str]) -> dict[str, object]:
    pairs = (word.removeprefix("--").partition("=") for word in words if word.startswith("--"))
    return {name: number(value) for name, _, value in pairs if name not in FILES and name != "metric"}


def number(value: str) -> object:
    """LightGBM's Python reads some options itself, and wants numbers there."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


if __name__ == "__main__":
    sys.exit(main())
