"""Handwritten digits, parameter servers and workers: what the image `kubeflow/tf-dist-mnist-test` runs on this machine.

Between-graph replication, as TFJob users know it: every parameter server holds a part of the variables and serves until
it is stopped; every worker computes gradients on its own share of the data and applies them to the shared variables;
worker 0 (or the chief) initialises them. The digits ship with scikit-learn, so nothing is downloaded.

Reads TF_CONFIG; without it, trains alone. Exit code 0 if the loss fell, else 1.
"""

import argparse
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import lesson
import numpy as np
import tensorflow.compat.v1 as tf


def main() -> int:
    options = parse_arguments()
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    addresses = {role: hosts for role, hosts in config.get("cluster", {}).items() if role != "evaluator"}
    task = config.get("task", {"type": "worker", "index": 0})
    role, index = task["type"], int(task["index"])
    if not addresses:
        return train(options, target="", cluster=None, role="worker", index=0, trainers=[("worker", 0)])

    cluster = tf.train.ClusterSpec(addresses)
    server = tf.train.Server(cluster, job_name=role, task_index=index, config=session_config(role, index))
    if role == "ps":
        print(f"parameter server {index} serves on {addresses[role][index]}", flush=True)
        server.join()  # never returns: the job ends when its workers have ended
    trainers = [(r, i) for r in ("chief", "master", "worker") for i in range(len(addresses.get(r, ())))]
    return train(options, server.target, cluster, role, index, trainers)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train_steps", "--training_steps", type=int, default=1000, help="of all workers together")
    parser.add_argument("--batch_size", type=int, default=50)
    parser.add_argument("--hidden_units", type=int, default=100)
    parser.add_argument("--learning_rate", type=float, default=0.005)
    return parser.parse_args()


def session_config(role: str, index: int) -> tf.ConfigProto:
    # A worker talks to the parameter servers and itself only, so that one that is late does not hold up the others.
    return tf.ConfigProto(
        device_filters=[] if role == "ps" else ["/job:ps", f"/job:{role}/task:{index}"],
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=2,
    )


def train(options, target, cluster, role, index, trainers) -> int:
    me = trainers.index((role, index))
    images, labels, test_images, test_labels = lesson.digits(me, len(trainers))
    here = f"/job:{role}/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=here, cluster=cluster) if cluster else None):
        step = tf.train.get_or_create_global_step()
        joined = tf.get_variable("joined", (), tf.int64, tf.zeros_initializer(), trainable=False)
        join = tf.assign_add(joined, 1)
        x = tf.placeholder(tf.float32, (None, 64))
        y = tf.placeholder(tf.int64, (None,))
        loss, accuracy = model(x, y, options.hidden_units)
        apply = tf.train.AdamOptimizer(options.learning_rate).minimize(loss, global_step=step)

    rng = np.random.default_rng(me)
    losses: list[float] = []
    score = 0.0
    with tf.train.MonitoredTrainingSession(
        master=target, is_chief=me == 0, config=session_config(role, index),
        hooks=[tf.train.StopAtStepHook(last_step=options.train_steps)],
        save_checkpoint_steps=None, save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        session.run_step_fn(lambda step_context: step_context.session.run(join))
        print(f"{role} {index} joined, {len(images)} digits of its own", flush=True)
        while session.run_step_fn(lambda step_context: step_context.session.run(joined)) < len(trainers):
            time.sleep(0.05)  # all start together, or the first would do the work of the others
        every = max(1, options.train_steps // (10 * len(trainers)))
        while not session.should_stop():
            pick = rng.integers(0, len(images), options.batch_size)
            value, now, _ = session.run([loss, step, apply], {x: images[pick], y: labels[pick]})
            if len(losses) % every == 0:
                print(f"{role} {index} step {now}/{options.train_steps} loss {value:.4f}", flush=True)
            losses.append(float(value))
            if me == 0 and not session.should_stop():
                score = session.run_step_fn(
                    lambda step_context: step_context.session.run(accuracy, {x: test_images, y: test_labels})
                )
    if me == 0:
        print(f"test accuracy {score:.3f} after {options.train_steps} steps of {len(trainers)} workers", flush=True)
    if len(losses) < 2:
        return 0        # it came late: the others did the work, and there is nothing to judge
    return lesson.verdict(f"{role} {index}", losses)


def model(x, y, hidden_units: int):
    w1 = tf.get_variable("hidden_weights", (64, hidden_units), initializer=tf.truncated_normal_initializer(stddev=0.1))
    b1 = tf.get_variable("hidden_biases", (hidden_units,), initializer=tf.zeros_initializer())
    w2 = tf.get_variable("digit_weights", (hidden_units, 10), initializer=tf.truncated_normal_initializer(stddev=0.1))
    b2 = tf.get_variable("digit_biases", (10,), initializer=tf.zeros_initializer())
    logits = tf.nn.relu(x @ w1 + b1) @ w2 + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    return loss, accuracy


if __name__ == "__main__":
    tf.disable_eager_execution()
    sys.exit(main())
