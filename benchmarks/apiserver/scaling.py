"""Cost grows with what is asked for, not with what is stored: the same requests at 1,000, 10,000 and 50,000 pods.

    python benchmarks/apiserver/scaling.py [SIZE ...]

Judged by CPU time of the server per request, which other work on the machine disturbs least.
"""

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Iterator

from goals import Line, tell
from ours import RESULTS, Running, running

import client  # type: ignore[import-not-found]  # isort: skip  of the load generator
from server import PODS, pod  # type: ignore[import-not-found]  # isort: skip

SIZES = (1_000, 10_000, 50_000)
CONNECTIONS = 8
REQUESTS = 400
LISTS = 100
ROUNDS = 5               # of which the middle one counts: what the server does by itself falls into one of them
GROWTH = 1.5             # CPU per request at the largest size, compared to the smallest
MEMORY = 90.0            # MB with 1,000 pods
ALL, FEW = "/api/v1/pods", "few"


def main() -> int:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    with running() as server:
        found = asyncio.run(measured(server, sizes))
    return 0 if tell("What is stored does not count", lines(found), RESULTS, "CPU of the server per request.") else 1


def lines(found: dict[int, dict[str, float]]) -> Iterator[Line]:
    smallest, *_, largest = found
    for name in found[smallest]:
        if name == "memory":
            continue
        costs = ", ".join(f"{figures[name]:.2f} ms at {size:,}" for size, figures in found.items())
        yield Line(name, found[largest][name] / found[smallest][name], "×", GROWTH, note=costs)
    for size, figures in found.items():
        yield Line(f"memory with {size:,} pods", figures["memory"], "MB", MEMORY if size == SIZES[0] else None)


async def measured(server: Running, sizes: tuple[int, ...]) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    stored = 0
    async with client.Client(*server.target, CONNECTIONS) as api:
        for name in ("many", FEW):
            thing = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await api.create("/api/v1/namespaces", thing)
        for index in range(20):
            await api.create(PODS.format(FEW), pod(f"kept-{index}"))
        for size in sizes:
            await each(lambda i: api.create(PODS.format("many"), pod(f"pod-{i}")), range(stored, size))
            stored = size
            await asyncio.sleep(2)            # controllers have seen them too
            found[size] = {"memory": server.memory(), **await costs(server, api, size)}
            print(size, found[size], flush=True)
    return found


async def costs(server: Running, api: client.Client, size: int) -> dict[str, float]:
    """Milliseconds of CPU per request."""
    folder, other = PODS.format("many"), PODS.format(FEW)
    step = max(1, size // REQUESTS)

    async def followed(_index: int) -> None:
        """A watch from now on until its first event, which another request makes.

        From now: one that resumes long ago is asked for what happened since, which is something else.
        """
        now = (await api.get(other, limit="1"))["metadata"]["resourceVersion"]
        query = {"watch": "1", "resourceVersion": now, "fieldSelector": "metadata.name=kept-0"}
        async with api.watch_session.get(other, params=query) as response:
            await api.merge(f"{other}/kept-0", noted(now))
            await asyncio.wait_for(response.content.readline(), 30)

    work: dict[str, tuple[Callable[[int], Awaitable[object]], int]] = {
        "get": (lambda i: api.get(f"{folder}/pod-{i * step % size}"), REQUESTS),
        "patch": (lambda i: api.merge(f"{folder}/pod-{i * step % size}", noted(f"{size}-{i}")), REQUESTS),
        "create": (lambda i: api.create(folder, pod(f"new-{i}")), REQUESTS),
        "delete": (lambda i: api.delete(f"{folder}/new-{i}"), REQUESTS),
        "list of a small namespace": (lambda _: api.raw("GET", other), LISTS),
        "page of 500": (lambda _: api.raw("GET", ALL, limit="500"), LISTS),
        "watch, one event": (followed, LISTS),
    }
    found = {}
    for name, (act, count) in work.items():
        rounds = []
        for start in range(0, count, count // ROUNDS):
            before = server.cpu()
            await each(act, range(start, start + count // ROUNDS))
            rounds.append(1000 * (server.cpu() - before) / (count // ROUNDS))
        found[name] = statistics.median(rounds)
    return found


def noted(text: str) -> dict[str, object]:
    return {"metadata": {"annotations": {"n": text}}}


async def each(act: Callable[[int], Awaitable[object]], numbers: range) -> None:
    upcoming = iter(numbers)

    async def worker() -> None:
        for number in upcoming:
            await act(number)

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    sys.exit(main())
