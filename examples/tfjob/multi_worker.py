"""MultiWorkerMirroredStrategy: chief and workers hold copies of the model and average their gradients in every step.

TFJob sets TF_CONFIG. The chief keeps the model on a volume, where the evaluator waits for it and examines it.
"""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

CONFIG = json.loads(os.environ["TF_CONFIG"])
ROLE, INDEX = CONFIG["task"]["type"], CONFIG["task"]["index"]
MODEL = Path(os.environ["MODEL_DIR"], "model")


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1).astype(np.float32), arm


def scores(parameters: list, points: np.ndarray) -> tf.Tensor:
    first, second, third = parameters
    return tf.nn.relu(tf.nn.relu(tf.pad(points, [[0, 0], [0, 1]], constant_values=1.0) @ first) @ second) @ third


def train() -> list:
    os.environ["TF_CONFIG"] = json.dumps(
        {**CONFIG, "cluster": {role: hosts for role, hosts in CONFIG["cluster"].items() if role != "evaluator"}}
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    begin = np.random.default_rng(0)
    with strategy.scope():
        values = [begin.normal(0, shape[0] ** -0.5, shape).astype(np.float32) for shape in ((3, 64), (64, 64), (64, 3))]
        variables = [tf.Variable(one) for one in values]
        speeds = [tf.Variable(tf.zeros_like(one)) for one in values]

    @tf.function
    def step(points: tf.Tensor, arms: tf.Tensor) -> tf.Tensor:
        def replica(points: tf.Tensor, arms: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(arms, scores(variables, points)))
            gradients = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, variables))
            for variable, speed, gradient in zip(variables, speeds, gradients, strict=True):
                speed.assign(0.9 * speed + gradient)
                variable.assign_sub(0.1 * speed)
            return loss

        return strategy.reduce("mean", strategy.run(replica, args=(points, arms)), axis=None)

    seed = 0 if ROLE == "chief" else 1 + INDEX
    points, arms = spirals(seed=1 + seed)
    mine = np.random.default_rng(seed)
    for number in range(1, 201):
        pick = mine.integers(0, len(arms), 60)
        loss = step(tf.constant(points[pick]), tf.constant(arms[pick]))
        if number % 20 == 0:
            print(f"{ROLE} {INDEX} step {number} loss {float(loss):.4f}", flush=True)
    if ROLE == "chief":
        tf.train.Checkpoint(parameters=variables).write(str(MODEL))
    return [variable.numpy() for variable in variables]


def kept() -> list:
    """The chief's model, as soon as it is there."""
    while not MODEL.with_suffix(".index").exists():
        time.sleep(0.5)
    reader = tf.train.load_checkpoint(str(MODEL))
    return [reader.get_tensor(f"parameters/{number}/.ATTRIBUTES/VARIABLE_VALUE") for number in range(3)]


def main() -> None:
    found = kept() if ROLE == "evaluator" else train()
    points, arms = spirals(seed=0)
    accuracy = float((np.argmax(scores(found, points), axis=1) == arms).mean())
    known = hashlib.sha256(b"".join(one.tobytes() for one in found)).hexdigest()[:16]
    print(f"{ROLE} {INDEX} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
