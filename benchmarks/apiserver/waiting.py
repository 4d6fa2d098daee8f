"""Who waits for whom: requests behind lists of 10,000 pods, and healthy watchers beside stuck ones.

    python benchmarks/apiserver/waiting.py [PODS]

A request waits behind whatever the server's loop does between its arrival and its answer. That is measured as CPU time
of that thread, so that the verdict is about the server and not about who else uses the machine; the time on the clock
is told beside it.
"""

import asyncio
import socket
import ssl
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from goals import Line, tell
from ours import RESULTS, Running, running

import client  # type: ignore[import-not-found]  # isort: skip  of the load generator
from server import PODS, pod, quantiles  # type: ignore[import-not-found]  # isort: skip  as above

COUNT = 10_000
LISTS = 8
LONGEST = 20.0            # ms of work that a request may wait behind
SECONDS = 6.0             # of asking
HEALTHY, STUCK = 20, 5
EVENTS, RATE = 1500, 250
LARGE = 30_000            # bytes of an event: enough of them fill every buffer on the way to one who does not read
GIVEN_UP = 90.0           # seconds until a stuck watcher must be gone
FORMS = {
    "plain": ({}, {}),
    "as tables": ({"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, {}),
    "metadata": ({"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}, {}),
    "by a label that all have": ({}, {"labelSelector": "app=bench"}),
    "by a label that none has": ({}, {"labelSelector": "app=none"}),
}
MAPS = "/api/v1/namespaces/many/configmaps"


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    with running() as server:
        found = asyncio.run(measured(server, count))
    return 0 if tell("Nobody waits for somebody else", found, RESULTS) else 1


async def measured(server: Running, count: int) -> list[Line]:
    async with client.Client(*server.target, 8) as api, client.Client(*server.target, 2) as other:
        await api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
        upcoming = iter(range(count))

        async def fill() -> None:
            for index in upcoming:
                await api.create(PODS.format("many"), pod(f"pod-{index}"))

        await asyncio.gather(*(fill() for _ in range(8)))
        await asyncio.sleep(2)
        return [line async for line in behind_lists(server, api, other, count)] + \
            [line async for line in beside_stuck(server, api, other)]


async def behind_lists(server: Running, api: client.Client, other: client.Client, count: int) -> AsyncIterator[Line]:
    yield waited("get alone", await gets(server, other, asyncio.create_task(asyncio.sleep(SECONDS))))
    for name, (headers, query) in FORMS.items():
        lists = asyncio.create_task(listed(api, headers, query))
        yield waited(f"get behind lists of {count:,} pods, {name}", await gets(server, other, lists))


def waited(what: str, found: list[tuple[float, float]]) -> Line:
    took, work = zip(*found, strict=True)
    clock = quantiles(list(took))
    return Line(f"{what}: most work before the answer", 1000 * max(work), "ms", LONGEST,
                note=f"{len(found)} gets; on the clock p50 {clock['p50']}, p99 {clock['p99']}, "
                     f"longest {1000 * max(took):.0f} ms")


async def listed(api: client.Client, headers: dict[str, str], query: dict[str, str]) -> None:
    for _ in range(LISTS):
        async with api.session.get(PODS.format("many"), headers=headers, params=query) as response:
            async for _chunk in response.content.iter_any():
                await asyncio.sleep(0)       # both are in this process: the reader of lists leaves room as well


async def gets(server: Running, api: client.Client, until: "asyncio.Task[None]") -> list[tuple[float, float]]:
    """Seconds on the clock and seconds of work of the server's loop, for each get."""
    found: list[tuple[float, float]] = []
    while not until.done() or len(found) < 2:
        began, work = time.perf_counter(), server.loop_cpu()
        await api.raw("GET", "/api/v1/namespaces/many")
        found.append((time.perf_counter() - began, server.loop_cpu() - work))
        await asyncio.sleep(0.002)
    await until
    return found


async def beside_stuck(server: Running, api: client.Client, other: client.Client) -> AsyncIterator[Line]:
    usual = await watches(other)
    alone = await told(api, "alone")
    async with stuck(server):
        beside = await told(api, "beside")
        began = time.monotonic()
        while await watches(other) > usual and time.monotonic() - began < GIVEN_UP + 10:  # noqa: ASYNC110  only asked
            await asyncio.sleep(1)
        dropped = time.monotonic() - began
    yield Line("event to a healthy watcher, p99 alone", middle(alone), "ms", note="of the middle second")
    yield Line(f"the same beside {STUCK} stuck ones", middle(beside) / middle(alone), "×", 1.5,
               note=f"{middle(beside):.2f} ms")
    heard = sum(map(len, (*alone.values(), *beside.values())))
    yield Line("events that healthy watchers missed", 2 * HEALTHY * EVENTS - heard, "", 0)
    yield Line("stuck watchers gone after", dropped, "s", GIVEN_UP)


def middle(late: dict[int, list[float]]) -> float:
    """The p99 of each second, and of these the middle: the machine has bad seconds of its own."""
    return float(statistics.median(quantiles(each)["p99"] for each in late.values()))


async def told(api: client.Client, prefix: str) -> dict[int, list[float]]:
    """How long each event took to each healthy watcher, from before its request was sent; by the second of that."""
    now = (await api.get(MAPS))["metadata"]["resourceVersion"]
    sent: dict[str, float] = {}
    late: dict[int, list[float]] = defaultdict(list)

    async def follow() -> None:
        heard, rest = 0, b""
        async with api.watch_session.get(MAPS, params={"watch": "1", "resourceVersion": now}) as response:
            while heard < EVENTS:
                chunk = await asyncio.wait_for(response.content.readany(), 30)
                if not chunk:
                    return                   # dropped: the missing ones are counted
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    name = line[line.index(b'"name":"') + 8:].split(b'"', 1)[0].decode()
                    late[int(sent[name] - began)].append(time.perf_counter() - sent[name])
                    heard += 1

    following = [asyncio.create_task(follow()) for _ in range(HEALTHY)]
    await asyncio.sleep(1)
    began = time.perf_counter()
    creating = []
    for index in range(EVENTS):
        await asyncio.sleep(max(0.0, began + index / RATE - time.perf_counter()))
        name = f"{prefix}-{index}"
        sent[name] = time.perf_counter()
        thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x" * 300}}
        creating.append(asyncio.create_task(api.create(MAPS, thing)))
    await asyncio.gather(*creating)
    await asyncio.gather(*following, return_exceptions=True)
    return late


@asynccontextmanager
async def stuck(server: Running) -> AsyncIterator[None]:
    """Watchers of events that are large, who ask and never read. They fill up while the small events go on."""
    place = urlsplit(server.url)
    context = ssl.create_default_context(cafile=server.authority)
    writers = []
    for _ in range(STUCK):
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        await asyncio.get_running_loop().sock_connect(small, (place.hostname, place.port))
        _, writer = await asyncio.open_connection(sock=small, ssl=context, server_hostname=place.hostname, limit=1024)
        writer.write(f"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: {place.netloc}\r\n"
                     f"Authorization: Bearer {server.token}\r\n\r\n".encode())
        await writer.drain()
        writers.append(writer)
    async with client.Client(*server.target, 2) as api:
        await api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}})
        for index in range(100):
            thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"l-{index}"},
                     "data": {"x": "x" * LARGE}}
            await api.create("/api/v1/namespaces/large/configmaps", thing)
    try:
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def watches(api: client.Client) -> float:
    text = (await api.raw("GET", "/metrics")).decode()
    return next(float(line.split()[-1]) for line in text.splitlines()
                if line.startswith("trainmaster_apiserver_watches "))


if __name__ == "__main__":
    sys.exit(main())
