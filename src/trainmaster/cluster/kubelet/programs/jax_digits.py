"""Handwritten digits with JAX on several processes: what `jaxjob-simple` runs on this machine.

Reads COORDINATOR_ADDRESS, COORDINATOR_PORT, PROCESS_ID and NUM_PROCESSES, as JAXJob sets them. The batch is spread over
the processes, so that XLA itself adds up the gradients.
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import lesson

jax.config.update("jax_cpu_collectives_implementation", "gloo")
world = int(os.environ.get("NUM_PROCESSES", "1"))
if world > 1:
    jax.distributed.initialize(
        f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}", world, int(os.environ["PROCESS_ID"])
    )

import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

BATCH = 32


def logits(parameters, x):
    w1, b1, w2, b2 = parameters
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def loss_of(parameters, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, x)), y[:, None], axis=1))


@jax.jit
def step(parameters, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    return [one - 0.3 * gradient for one, gradient in zip(parameters, gradients, strict=True)], loss


def main() -> int:
    rank = jax.process_index()
    who = f"process {rank} of {world}"
    print(f"{who} sees {jax.device_count()} devices, {jax.local_device_count()} of them its own", flush=True)
    x, y, test_x, test_y = lesson.digits(rank, world)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spread, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    begin = [jax.random.normal(keys[0], (64, 64)) * 0.1, jnp.zeros(64), jax.random.normal(keys[1], (64, 10)) * 0.1,
             jnp.zeros(10)]
    parameters = [jax.device_put(np.asarray(one), everywhere) for one in begin]
    rng, losses = np.random.default_rng(rank), []
    for number in range(100):
        pick = rng.integers(0, len(x), BATCH)
        parameters, loss = step(
            parameters, jax.make_array_from_process_local_data(spread, x[pick]),
            jax.make_array_from_process_local_data(spread, y[pick]),
        )
        losses.append(float(loss))
        if number % 20 == 0:
            print(f"{who} step {number + 1} loss {losses[-1]:.4f}", flush=True)
    mine = [np.asarray(one.addressable_data(0)) for one in parameters]
    accuracy = float((np.argmax(logits(mine, test_x), axis=1) == test_y).mean())
    return lesson.verdict(who, losses, lesson.digest(mine), accuracy)


if __name__ == "__main__":
    sys.exit(main())
