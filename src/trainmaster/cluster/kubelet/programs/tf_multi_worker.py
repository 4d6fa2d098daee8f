"""Handwritten digits with MultiWorkerMirroredStrategy: what `tf-distributed-worker` and `dist_mnist.py` of the image
`tensorflow/tensorflow` run on this machine.

Reads TF_CONFIG; without it, trains alone. With a directory as argument (or in CHECKPOINT_DIR) the chief keeps the model
there, and an evaluator examines it.
"""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import lesson
import numpy as np
import tensorflow as tf

STEPS, BATCH = 100, 32
CONFIG = json.loads(os.environ.get("TF_CONFIG") or "{}")
TASK = CONFIG.get("task") or {"type": "worker", "index": 0}
WHO = f"{TASK['type']} {TASK['index']}"


def main() -> int:
    directory = next((word for word in sys.argv[1:] if not word.startswith("-")), os.environ.get("CHECKPOINT_DIR", ""))
    if TASK["type"] == "evaluator":
        return evaluate(directory)
    addresses = {role: hosts for role, hosts in CONFIG.get("cluster", {}).items() if role != "evaluator"}
    if addresses:
        os.environ["TF_CONFIG"] = json.dumps({"cluster": addresses, "task": TASK})
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if addresses else tf.distribute.get_strategy()
    roles = ("chief", "master", "worker")
    trainers = [(role, index) for role in roles for index in range(len(addresses.get(role, ())))]
    me = trainers.index((TASK["type"], int(TASK["index"]))) if trainers else 0
    return train(strategy, me, max(1, len(trainers)), directory)


def train(strategy, me: int, world: int, directory: str) -> int:
    x, y, test_x, test_y = lesson.digits(me, world)
    print(f"{WHO} is {me} of {world} and learns from {len(x)} digits of its own", flush=True)
    rng = np.random.default_rng(0)
    with strategy.scope():
        shapes = ((64, 64), (64, 10))
        variables = [tf.Variable((rng.standard_normal(shape) * 0.1).astype(np.float32)) for shape in shapes]

    @tf.function
    def step(images, labels):
        def replica(images, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits(variables, images)))
            gradients = tape.gradient(loss, variables)
            if world > 1:
                gradients = tf.distribute.get_replica_context().all_reduce("mean", gradients)
            for variable, gradient in zip(variables, gradients, strict=True):
                variable.assign_sub(0.3 * gradient)
            return loss

        return strategy.reduce("mean", strategy.run(replica, args=(images, labels)), axis=None)

    mine, losses = np.random.default_rng(me), []
    for number in range(STEPS):
        pick = mine.integers(0, len(x), BATCH)
        losses.append(float(step(tf.constant(x[pick]), tf.constant(y[pick]))))
        if number % 20 == 0:
            print(f"{WHO} step {number + 1} loss {losses[-1]:.4f}", flush=True)
    if directory and me == 0:
        tf.train.Checkpoint(hidden=variables[0], out=variables[1]).write(os.path.join(directory, "model"))
    values = [variable.numpy() for variable in variables]
    return lesson.verdict(WHO, losses, lesson.digest(values), accuracy_of(values, test_x, test_y))


def evaluate(directory: str) -> int:
    """Wait for the chief's model, and examine it."""
    if not directory:
        print("an evaluator needs the directory where the chief keeps its model", file=sys.stderr)
        return 1
    path = os.path.join(directory, "model")
    while not os.path.exists(path + ".index"):
        time.sleep(0.2)
    reader = tf.train.load_checkpoint(path)
    values = [reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE") for name in ("hidden", "out")]
    _, _, test_x, test_y = lesson.digits(0, 1)
    known = lesson.digest(values)
    print(f"{WHO} done: test accuracy {accuracy_of(values, test_x, test_y):.3f}, parameters {known}", flush=True)
    return 0


def logits(variables, images):
    return tf.nn.relu(images @ variables[0]) @ variables[1]


def accuracy_of(values, x, y) -> float:
    return float((np.argmax(logits(values, x), axis=1) == y).mean())


if __name__ == "__main__":
    sys.exit(main())
