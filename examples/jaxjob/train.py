"""JAX on several processes: the batch is spread over them, and XLA adds up the gradients.

JAXJob sets COORDINATOR_ADDRESS, COORDINATOR_PORT, PROCESS_ID and NUM_PROCESSES.
"""

import hashlib
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def spirals(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Points on the three arms of a spiral: which arm is each on?"""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, count), rng.uniform(0.1, 1, count)
    angle = 2.1 * arm + 4 * along + rng.normal(0, 0.1, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1).astype(np.float32), arm


def scores(parameters: list, points: jax.Array) -> jax.Array:
    first, second, third = parameters
    return jax.nn.relu(jax.nn.relu(jnp.pad(points, ((0, 0), (0, 1)), constant_values=1.0) @ first) @ second) @ third


def loss_of(parameters: list, points: jax.Array, arms: jax.Array) -> jax.Array:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores(parameters, points)), arms[:, None], axis=1))


@jax.jit
def step(parameters: list, speeds: list, points: jax.Array, arms: jax.Array) -> tuple[list, list, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(parameters, points, arms)
    speeds = [0.9 * speed + gradient for speed, gradient in zip(speeds, gradients, strict=True)]
    return [one - 0.1 * speed for one, speed in zip(parameters, speeds, strict=True)], speeds, loss


def main() -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}", int(os.environ["NUM_PROCESSES"]),
        int(os.environ["PROCESS_ID"]),
    )
    rank, world = jax.process_index(), jax.process_count()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spread, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    begin = np.random.default_rng(0)
    shapes = ((3, 64), (64, 64), (64, 3))
    values = [(begin.normal(0, shape[0] ** -0.5, shape)).astype(np.float32) for shape in shapes]
    parameters = [jax.device_put(one, everywhere) for one in values]
    speeds = [jax.device_put(np.zeros_like(one), everywhere) for one in values]
    points, arms = spirals(seed=1 + rank)
    mine = np.random.default_rng(rank)
    for number in range(1, 201):
        pick = mine.integers(0, len(arms), 60)
        parameters, speeds, loss = step(
            parameters, speeds, jax.make_array_from_process_local_data(spread, points[pick]),
            jax.make_array_from_process_local_data(spread, arms[pick]),
        )
        if number % 20 == 0:
            print(f"process {rank} of {world} step {number} loss {float(loss):.4f}", flush=True)
    own = [np.asarray(one.addressable_data(0)) for one in parameters]
    points, arms = spirals(seed=0)
    accuracy = float((np.argmax(scores(own, points), axis=1) == arms).mean())
    known = hashlib.sha256(b"".join(one.tobytes() for one in own)).hexdigest()[:16]
    print(f"process {rank} of {world} accuracy {accuracy:.3f} parameters {known}", flush=True)


if __name__ == "__main__":
    main()
