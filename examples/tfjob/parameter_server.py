"""ParameterServerStrategy: the chief gives out steps, workers compute them, the parameters live on the servers.

TFJob sets TF_CONFIG. Workers and servers serve until the job ends, and it ends with the chief; cleanPodPolicy stops the
others. After every epoch the chief keeps the model on a volume, where the evaluator finds and examines it.
"""

import json
import os
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

CONFIG = json.loads(os.environ["TF_CONFIG"])
TASK = CONFIG["task"]
MODELS = Path(os.environ["MODEL_DIR"])
EPOCHS = 5


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1).astype(np.float32), arm


def scores(parameters: list, points: np.ndarray) -> tf.Tensor:
    first, second, third = parameters
    return tf.nn.relu(tf.nn.relu(tf.pad(points, [[0, 0], [0, 1]], constant_values=1.0) @ first) @ second) @ third


def train(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> list:
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    begin = np.random.default_rng(0)
    with strategy.scope():
        variables = [tf.Variable(begin.normal(0, shape[0] ** -0.5, shape).astype(np.float32))
                     for shape in ((3, 64), (64, 64), (64, 3))]
    points, arms = spirals(seed=1, count=2000)

    @tf.function
    def step() -> tf.Tensor:
        pick = tf.random.uniform((60,), 0, len(arms), tf.int32)
        with tf.GradientTape() as tape:
            found = scores(variables, tf.gather(tf.constant(points), pick))
            right = tf.gather(tf.constant(arms), pick)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(right, found))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.5 * gradient)
        return loss

    for epoch in range(1, EPOCHS + 1):
        losses = [coordinator.schedule(step) for _ in range(100)]
        coordinator.join()
        mean = np.mean([one.fetch() for one in losses[-10:]])
        print(f"chief epoch {epoch} loss {mean:.4f}, the model is on {variables[0].device}", flush=True)
        tf.train.Checkpoint(parameters=variables).write(str(MODELS / f"epoch-{epoch}"))
    return [variable.numpy() for variable in variables]


def kept(epoch: int) -> list:
    """The chief's model after this epoch, as soon as it is there."""
    while not (MODELS / f"epoch-{epoch}.index").exists():
        time.sleep(0.2)
    reader = tf.train.load_checkpoint(str(MODELS / f"epoch-{epoch}"))
    return [reader.get_tensor(f"parameters/{number}/.ATTRIBUTES/VARIABLE_VALUE") for number in range(3)]


def examine(found: list, when: str) -> None:
    points, arms = spirals(seed=0)
    accuracy = float((np.argmax(scores(found, points), axis=1) == arms).mean())
    print(f"{TASK['type']} {TASK['index']} accuracy {accuracy:.3f} {when}", flush=True)


def main() -> None:
    CONFIG["cluster"].pop("evaluator", None)         # it takes no part in the training, and nobody may wait for it
    os.environ["TF_CONFIG"] = json.dumps(CONFIG)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if TASK["type"] in ("worker", "ps"):
        # A step that waits for a parameter holds a thread, and there are as many as processors: with one, all wait.
        threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=max(4, os.cpu_count() or 1))
        server = tf.distribute.Server(resolver.cluster_spec(), job_name=TASK["type"], task_index=TASK["index"],
                                      config=threads)
        print(f"{TASK['type']} {TASK['index']} serves", flush=True)
        server.join()
    if TASK["type"] == "chief":
        examine(train(resolver), "at the end")
    for epoch in range(1, EPOCHS + 1) if TASK["type"] == "evaluator" else ():
        examine(kept(epoch), f"after epoch {epoch}")


if __name__ == "__main__":
    main()
