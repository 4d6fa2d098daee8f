"""Handwritten digits with MXNet's parameter server: what `mxjob/mxnet` runs on this machine, in all three roles.

Reads DMLC_ROLE and the other DMLC_ variables, as MXJob sets them. As scheduler and server, `import mxnet` itself serves
until the workers are done, and then ends the program.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
print(f"{os.environ.get('DMLC_ROLE', 'worker')} begins", flush=True)

import lesson
import mxnet as mx


def main() -> int:
    store = mx.kv.create("dist_sync" if os.environ.get("DMLC_ROLE") else "local")
    rank, world = store.rank, store.num_workers
    who = f"worker {rank} of {world}"
    x, y, test_x, test_y = lesson.digits(rank, world)
    print(f"{who} learns from {len(x)} digits of its own", flush=True)
    mx.random.seed(0)
    shapes = [(64, 64), (64,), (64, 10), (10,)]
    parameters = [mx.nd.random.normal(scale=0.1, shape=one) if len(one) == 2 else mx.nd.zeros(one) for one in shapes]
    for number, one in enumerate(parameters):
        store.init(str(number), one)
        store.pull(str(number), out=one)            # everybody begins where worker 0 does
        one.attach_grad()
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.2 / world))
    losses = []
    for number in range(100):
        pick = mx.nd.random.randint(0, len(x), shape=32).asnumpy()
        with mx.autograd.record():
            loss = loss_of(parameters, mx.nd.array(x[pick]), mx.nd.array(y[pick])).mean()
        loss.backward()
        for key, one in enumerate(parameters):
            store.push(str(key), one.grad)          # the server waits for all workers, adds up and takes the step
            store.pull(str(key), out=one)
        losses.append(float(loss.asscalar()))
        if number % 20 == 0:
            print(f"{who} step {number + 1} loss {losses[-1]:.4f}", flush=True)
    found = logits(parameters, mx.nd.array(test_x)).argmax(axis=1).asnumpy()
    known = lesson.digest(one.asnumpy() for one in parameters)
    return lesson.verdict(who, losses, known, float((found == test_y).mean()))


def logits(parameters, x):
    w1, b1, w2, b2 = parameters
    return mx.nd.dot(mx.nd.relu(mx.nd.dot(x, w1) + b1), w2) + b2


def loss_of(parameters, x, y):
    return -mx.nd.pick(mx.nd.log_softmax(logits(parameters, x)), y, axis=1)


if __name__ == "__main__":
    sys.exit(main())
