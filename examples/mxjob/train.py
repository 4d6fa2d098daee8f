"""MXNet with its parameter server: workers push gradients, the server adds them up and takes the step for all.

MXJob sets DMLC_ROLE and the other DMLC_ variables. As scheduler and server, `import mxnet` itself serves until the
workers are done, and then ends the program.
"""

import hashlib

import mxnet as mx
import numpy as np


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1).astype(np.float32), arm


def scores(parameters: list, points: np.ndarray) -> mx.nd.NDArray:
    w1, b1, w2, b2, w3 = parameters
    hidden = mx.nd.relu(mx.nd.dot(mx.nd.array(points), w1) + b1)
    return mx.nd.dot(mx.nd.relu(mx.nd.dot(hidden, w2) + b2), w3)


def main() -> None:
    store = mx.kv.create("dist_sync")
    rank, world = store.rank, store.num_workers
    begin = np.random.default_rng(0)
    shapes = ((2, 64), (64,), (64, 64), (64,), (64, 3))
    parameters = [mx.nd.array(begin.normal(0, shape[0] ** -0.5, shape) if len(shape) == 2 else np.zeros(shape))
                  for shape in shapes]
    for key, one in enumerate(parameters):
        store.init(key, one)
        one.attach_grad()
    store.set_optimizer(mx.optimizer.Adam(learning_rate=0.01, rescale_grad=1 / world))
    points, arms = spirals(seed=1 + rank)
    mine = np.random.default_rng(rank)
    for number in range(1, 101):
        pick = mine.integers(0, len(arms), 60)
        with mx.autograd.record():
            loss = -mx.nd.pick(mx.nd.log_softmax(scores(parameters, points[pick])), mx.nd.array(arms[pick])).mean()
        loss.backward()
        for key, one in enumerate(parameters):
            store.push(key, one.grad)
            store.pull(key, out=one)
        if number % 20 == 0:
            print(f"worker {rank} of {world} step {number} loss {float(loss.asscalar()):.4f}", flush=True)
    points, arms = spirals(seed=0)
    accuracy = float((scores(parameters, points).asnumpy().argmax(1) == arms).mean())
    known = hashlib.sha256(b"".join(one.asnumpy().tobytes() for one in parameters)).hexdigest()[:16]
    print(f"worker {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
