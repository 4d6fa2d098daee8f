"""What access and admission cost: the same operations on a server that asks nobody and on one that asks everybody.

    python benchmarks/apiserver/access.py [--rounds N]

Both are the embedded server, on disk and with TLS, at the same time. One takes any request and changes no pod; on the
other a service account with a signed token asks, whose roles are found among three hundred bindings, and a pod meets
the life cycle of namespaces, service accounts, priority classes, a LimitRange, quotas (of another namespace), and the
judge of training jobs. They take turns, block by block; of all blocks the middle ratio counts.

New pods come as people write them, so that admission has something to add. What is read and changed is the same on
both servers: the open one got it as the other had completed it, else the bytes of its service account's volume would
count as the cost of asking.
"""

import argparse
import asyncio
import itertools
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from goals import Line, tell
from ours import RESULTS, Running

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import server as served
from trainmaster.cluster.apiserver.admission import Admission
from trainmaster.cluster.apiserver.auth import Authenticator, Identity
from trainmaster.cluster.apiserver.authorization import Decision
from trainmaster.cluster.apiserver.http import serve
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rbac import Attributes
from trainmaster.cluster.store import Store
from trainmaster.local import keys, memory
from trainmaster.local.control_plane import ADMIN, JOBS_AT_THE_DOOR, loop_runner
from trainmaster.runtime.clock import RealClock

import client  # type: ignore[import-not-found]  # isort: skip  of the load generator
from server import PODS, pod, running  # type: ignore[import-not-found]  # isort: skip  as above

LIMIT = 1.15
BLOCK, LISTS, LISTED = 80, 8, 500
CONNECTIONS = 8
OTHERS = 300           # bindings of other people
SPACE = "bench"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Work = Callable[[int], Awaitable[object]]


class Everybody:
    """May do everything."""

    def decide(self, _who: Identity, _wanted: Attributes) -> Decision:
        return Decision(True)


class Nothing(Admission):
    """Leaves pods as they come."""

    async def housed(self, _kind: Kind, _thing: Object) -> None:
        return

    def completing(self, _kind: Kind, _thing: Object) -> None:
        return


async def one(folder: Path, guarded: str) -> None:
    """A server, until it is told to end."""
    made = keys.ensure(folder / "pki", (clock := RealClock()).now())
    store = Store.open(folder / "cluster.db")
    if guarded == "guarded":
        server = served.ApiServer(store, clock=clock, account_key=made.account_key, judges=[JOBS_AT_THE_DOOR])
    else:
        with patch.multiple(served, Admission=Nothing, Either=lambda *_: Everybody()):
            server = served.ApiServer(store, clock=clock, account_key=made.account_key)
    await server.start()
    listening = await serve(server, Authenticator({made.tokens["admin"]: ADMIN}), made.server_context())
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    memory.settle()
    (folder / "new").write_text(f"https://127.0.0.1:{listening.port} {made.tokens['admin']}")
    (folder / "new").rename(folder / "access")
    await stop.wait()
    await server.close()
    await listening.stop()
    await store.close()


@contextmanager
def started(guarded: str) -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="trainmaster-bench-") as name:
        folder, began = Path(name), time.perf_counter()
        (folder / "pki").mkdir()
        process = subprocess.Popen([sys.executable, __file__, "--serve", name, guarded])
        try:
            while not (folder / "access").exists():
                if process.poll() is not None:
                    raise RuntimeError("the server ended")
                time.sleep(0.05)
            url, token = (folder / "access").read_text().split()
            yield Running(url, token, str(folder / "pki" / "ca.crt"), process.pid, time.perf_counter() - began)
        finally:
            process.terminate()
            process.wait(30)


async def populated(server: Running) -> str:
    """What a cluster has that is in use; the token of an account that may work in one namespace."""
    async with client.Client(*server.target, CONNECTIONS) as api:
        for name in (SPACE, "other"):
            await api.create("/api/v1/namespaces", {"metadata": {"name": name}})
            await api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}, True)
        place = f"/api/v1/namespaces/{SPACE}"
        await api.create(f"{place}/serviceaccounts", {"metadata": {"name": "load"}})
        rules = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["*"]}]
        await api.create(f"{RBAC}/namespaces/{SPACE}/roles", {"metadata": {"name": "load"}, "rules": rules})
        for number in range(OTHERS):
            other = {"kind": "User", "name": f"user-{number}"}
            await api.create(f"{RBAC}/namespaces/{SPACE}/rolebindings", binding(f"b-{number}", "view", other))
        whose = {"kind": "ServiceAccount", "name": "load", "namespace": SPACE}
        await api.create(f"{RBAC}/namespaces/{SPACE}/rolebindings", binding("load", "load", whose, "Role"))
        await api.create(f"{place}/limitranges", {"metadata": {"name": "bounds"}, "spec": {"limits": [
            {"type": "Container", "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "64"}}]}})
        await api.create("/api/v1/namespaces/other/resourcequotas", {"metadata": {"name": "few"},
                                                                    "spec": {"hard": {"pods": "10"}}})
        await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
            "metadata": {"name": "usual"}, "value": 100, "globalDefault": True})
        asked = await api.request("POST", f"{place}/serviceaccounts/load/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    return str(asked["status"]["token"])


def binding(name: str, role: str, subject: Object, kind: str = "ClusterRole") -> Object:
    return {"metadata": {"name": name}, "subjects": [subject],
            "roleRef": {"kind": kind, "name": role, "apiGroup": RBAC.split("/")[2]}}


@dataclass(slots=True)
class Side:
    """One of the two servers, and somebody at work on it."""

    server: Running
    api: Any
    seen: list[Object] = field(default_factory=list)      # the pods that stay
    turn: Iterator[int] = field(default_factory=itertools.count)

    def operations(self) -> dict[str, tuple[int, Work]]:
        """How many of each are a block, and what one is."""
        place, api = PODS.format(SPACE), self.api

        async def status(i: int) -> None:
            now = running(self.seen[i])
            now["status"]["message"] = f"step {next(self.turn)}"      # what says nothing new is no write
            self.seen[i] = await api.replace(f"{place}/{name(i)}/status", now)

        async def patch(i: int) -> None:
            self.seen[i] = await api.merge(f"{place}/{name(i)}", {"metadata": {"annotations": {
                "step": str(next(self.turn))}}})

        return {
            "create": (BLOCK, lambda i: api.create(place, pod(f"new-{i}"))),
            "get": (4 * BLOCK, lambda i: api.get(f"{place}/{name(i)}")),
            "patch": (BLOCK, patch),
            "update-status": (BLOCK, status),
            "list": (LISTS, lambda _i: api.raw("GET", place)),
            "delete": (BLOCK, lambda i: api.delete(f"{place}/new-{i}")),
        }

    async def block(self, count: int, work: Work) -> tuple[float, float]:
        """Seconds, and seconds of the server's CPU, for each of so many."""
        numbers = iter(range(count))

        async def worker() -> None:
            for i in numbers:
                await work(i)

        began, cpu = time.perf_counter(), self.server.cpu()
        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
        return (time.perf_counter() - began) / count, (self.server.cpu() - cpu) / count


def name(number: int) -> str:
    return f"pod-{number}"


@asynccontextmanager
async def side(server: Running, pods: Iterable[Object], *, guarded: bool) -> AsyncIterator[Side]:
    token = await populated(server)
    async with client.Client(server.url, token if guarded else server.token, server.authority, CONNECTIONS) as api:
        yield Side(server, api, [await api.create(PODS.format(SPACE), each) for each in pods])


def as_sent(seen: Object) -> Object:
    """A pod of one server as somebody would send it whole to another."""
    known = {key: seen["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": known, "spec": seen["spec"]}


async def measured(rounds: int) -> list[Line]:
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    async with AsyncExitStack() as stack:
        guarded = await stack.enter_async_context(side(
            stack.enter_context(started("guarded")), (pod(name(number)) for number in range(LISTED)), guarded=True))
        bare = await stack.enter_async_context(side(
            stack.enter_context(started("open")), map(as_sent, guarded.seen), guarded=False))
        for round_, what in itertools.product(range(rounds + 1), bare.operations()):
            taken = {}
            for each in (bare, guarded) if round_ % 2 else (guarded, bare):
                taken[each is guarded] = await each.block(*each.operations()[what])
            if round_:                       # the first is for warming up
                found.setdefault(what, []).append((*taken[False], *taken[True]))
    return [line for what, blocks in found.items() for line in lines(what, blocks)]


def lines(what: str, blocks: list[tuple[float, float, float, float]]) -> Iterator[Line]:
    wall, cpu, guarded_wall, guarded_cpu = ([block[at] for block in blocks] for at in range(4))
    yield Line(f"{what}, CPU", ratio(guarded_cpu, cpu), "×", LIMIT,
               note=f"{1000 * statistics.median(guarded_cpu):.2f} to {1000 * statistics.median(cpu):.2f} ms")
    yield Line(f"{what}, time", ratio(guarded_wall, wall), "×", LIMIT,
               note=f"{1 / statistics.median(guarded_wall):.0f} to {1 / statistics.median(wall):.0f} /s")


def ratio(these: list[float], those: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(these, those, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        loop_runner()(one(Path(asked.serve[0]), asked.serve[1]))
        return 0
    found = asyncio.run(measured(asked.rounds))
    remark = f"At {CONNECTIONS} connections; the middle of {asked.rounds} blocks, with access and admission to without."
    return 0 if tell("With access and admission", found, RESULTS, remark) else 1


if __name__ == "__main__":
    sys.exit(main())
