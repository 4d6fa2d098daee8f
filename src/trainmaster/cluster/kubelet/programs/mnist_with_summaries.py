"""Handwritten digits, every replica by itself, with summaries for TensorBoard: `tf-mnist-with-summaries` here."""

import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import lesson
import numpy as np
import tensorflow as tf


def main() -> int:
    options = parse_arguments()
    x, y, test_x, test_y = lesson.digits(0, 1)
    rng = np.random.default_rng(0)
    variables = [tf.Variable((rng.standard_normal(shape) * 0.1).astype(np.float32)) for shape in ((64, 64), (64, 10))]
    moments = [tf.Variable(tf.zeros_like(one)) for one in variables]

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits(variables, images)))
        for variable, moment, gradient in zip(variables, moments, tape.gradient(loss, variables), strict=True):
            moment.assign(0.9 * moment + gradient)
            variable.assign_sub(options.learning_rate * moment)
        return loss

    losses, accuracy = [], 0.0
    train, test = (tf.summary.create_file_writer(os.path.join(options.log_dir, name)) for name in ("train", "test"))
    for number in range(options.max_steps):
        pick = rng.integers(0, len(x), options.batch_size)
        losses.append(float(step(tf.constant(x[pick]), tf.constant(y[pick]))))
        with train.as_default():
            tf.summary.scalar("cross_entropy", losses[-1], number)
        if number % 10 == 0 or number == options.max_steps - 1:
            found = np.argmax(logits([one.numpy() for one in variables], test_x), axis=1)
            accuracy = float((found == test_y).mean())
            with test.as_default():
                tf.summary.scalar("accuracy", accuracy, number)
                tf.summary.histogram("layer1/weights", variables[0], number)
            print(f"Accuracy at step {number}: {accuracy:.3f}", flush=True)
    train.close()
    test.close()
    return lesson.verdict("worker", losses, lesson.digest(one.numpy() for one in variables), accuracy)


def logits(variables, images):
    return tf.nn.relu(images @ variables[0]) @ variables[1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max_steps", type=int, default=200)
    parser.add_argument("--learning_rate", type=float, default=0.02)
    parser.add_argument("--batch_size", type=int, default=100)
    parser.add_argument("--log_dir", default="/tmp/tensorflow/mnist/logs/mnist_with_summaries")
    return parser.parse_known_args()[0]


if __name__ == "__main__":
    sys.exit(main())
