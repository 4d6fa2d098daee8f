"""Cost grows with what is asked for, not with what is stored: the same requests at 1,000, 10,000 and 50,000 pods.

    python benchmarks/apiserver/scaling.py [SIZE ...]

Judged by CPU time of the server per request. Other work on the machine disturbs even that, by the caches and the memory
it takes: so there is a server for every size, they take turns round by round, and what counts is the middle of the
ratios within a round.
"""

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

from goals import Line, tell
from ours import RESULTS, Running, running

import client  # type: ignore[import-not-found]  # isort: skip  of the load generator
from server import PODS, pod  # type: ignore[import-not-found]  # isort: skip  as above

SIZES = (1_000, 10_000, 50_000)
CONNECTIONS = 8
REQUESTS = 40            # of one kind, in a round
LISTS = 16
ROUNDS = 15
GROWTH = 1.5             # CPU per request at the largest size, compared to the smallest
MEMORY = 90.0            # MB with 1,000 pods
ALL, FEW = "/api/v1/pods", "few"


Costs = dict[str, float]             # milliseconds of CPU by kind of request


@dataclass(frozen=True, slots=True)
class Filled:
    """A server with so many pods in it."""

    size: int
    server: Running
    api: client.Client


def main() -> int:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    with ExitStack() as stack:
        found, memory = asyncio.run(measured({size: stack.enter_context(running()) for size in sizes}))
    told = [*lines(found), *(
        Line(f"memory with {size:,} pods", memory[size], "MB", MEMORY if size == SIZES[0] else None) for size in sizes)]
    remark = "CPU of the server per request; one server per size, in turns."
    return 0 if tell("What is stored does not count", told, RESULTS, remark) else 1


def lines(found: Sequence[dict[int, Costs]]) -> Iterator[Line]:
    """`found` is what the rounds found, by size."""
    smallest, *_, largest = found[0]
    for name in found[0][smallest]:
        growth = statistics.median(each[largest][name] / each[smallest][name] for each in found)
        costs = ", ".join(f"{statistics.median(each[size][name] for each in found):.2f} ms at {size:,}"
                          for size in found[0])
        yield Line(name, growth, "×", GROWTH, note=costs)


async def measured(servers: dict[int, Running]) -> tuple[list[dict[int, Costs]], dict[int, float]]:
    async with AsyncExitStack() as stack:
        filled = []
        for size, server in servers.items():
            api = await stack.enter_async_context(client.Client(*server.target, CONNECTIONS))
            filled.append(await fill(Filled(size, server, api)))
        await asyncio.sleep(2)            # controllers have seen them too
        memory = {one.size: one.server.memory() for one in filled}
        print(memory, flush=True)
        rounds = []
        for number in range(1 + ROUNDS):      # the first is to warm up
            rounds.append({one.size: await costs(one, number) for one in filled})
            print(number, rounds[-1], flush=True)
    return rounds[1:], memory


async def fill(one: Filled) -> Filled:
    for name in ("many", FEW):
        thing = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await one.api.create("/api/v1/namespaces", thing)
    for index in range(20):
        await one.api.create(PODS.format(FEW), pod(f"kept-{index}"))
    await each(lambda i: one.api.create(PODS.format("many"), pod(f"pod-{i}")), range(one.size))
    return one


async def costs(one: Filled, number: int) -> Costs:
    """Milliseconds of CPU per request, in one round."""
    size, api = one.size, one.api
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
        "get": (lambda i: api.get(f"{folder}/pod-{(i * step + number) % size}"), REQUESTS),
        "patch": (lambda i: api.merge(f"{folder}/pod-{(i * step + number) % size}", noted(f"{number}-{i}")), REQUESTS),
        "create": (lambda i: api.create(folder, pod(f"new-{i}")), REQUESTS),
        "delete": (lambda i: api.delete(f"{folder}/new-{i}"), REQUESTS),
        "list of a small namespace": (lambda _: api.raw("GET", other), LISTS),
        "page of 500": (lambda _: api.raw("GET", ALL, limit="500"), LISTS),
        "watch, one event": (followed, LISTS),
    }
    found = {}
    for name, (act, count) in work.items():
        before = one.server.cpu()
        await each(act, range(count))
        found[name] = 1000 * (one.server.cpu() - before) / count
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
