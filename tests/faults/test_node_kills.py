"""The node agent killed at its every step: nothing is started twice, no exit code is lost, no process is left.

A real agent in a process of its own, a real SIGKILL, real pods. The steps are recorded from a clean run of each story
(node_child says what a step is), then the story is told again, dying at one of them; a second agent takes over.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trainmaster.api.core import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.auth import Authenticator, Identity
from trainmaster.cluster.apiserver.http import serve
from trainmaster.cluster.kubelet import cgroups, holder
from trainmaster.cluster.kubelet.capability import probe
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube.client import Client
from trainmaster.local import keys
from trainmaster.runtime.clock import RealClock
from trainmaster.testing.builders import pod as built
from trainmaster.testing.cluster import embedded

pytestmark = pytest.mark.machine
ROOT = Path(__file__).parents[2]
PATIENCE = 120.0


@dataclass(slots=True)
class World:
    """A cluster whose node agents die."""

    client: Client
    base: Path
    order: dict[str, object]
    agents: asyncio.subprocess.Process
    steps: dict[int, asyncio.Future[int]] = field(default_factory=dict)     # agent -> the steps it did before its end
    answers: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    marks: int = 0

    async def read(self) -> None:
        assert self.agents.stdout is not None
        async for line in self.agents.stdout:
            words = line.decode().split()
            if words[0] == "started":
                self.steps[int(words[1])] = asyncio.get_running_loop().create_future()
                self.answers.put_nowait(int(words[1]))
            elif words[0] == "ended":
                assert "-9" == words[2], f"an agent ended by itself: {words}"
                self.steps[int(words[1])].set_result(int(words[3]))

    async def agent(self, die_at: int | None = None) -> int:
        await self._say({**self.order, "die_at": die_at})
        async with asyncio.timeout(PATIENCE):
            return await self.answers.get()

    async def kill(self, pid: int) -> int:
        """End an agent; how many steps it had done."""
        if not self.steps[pid].done():
            await self._say({"kill": pid})
        async with asyncio.timeout(PATIENCE):
            return await self.steps[pid]

    async def _say(self, order: dict[str, object]) -> None:
        assert self.agents.stdin is not None
        self.agents.stdin.write(json.dumps(order).encode() + b"\n")
        await self.agents.stdin.drain()

    async def pod(
        self, script: str, restart: str = "Never", prepare: str = ":", container: Object | None = None,
        beside: str = "",
    ) -> Path:
        """Start a pod that can leave a mark each time it begins; the file of its marks."""
        self.marks += 1
        marks = self.base / "marks" / str(self.marks)
        marks.mkdir(parents=True)
        command = ("/bin/sh", "-c", f"{prepare}; echo begun >> /marks/begun; {script}")
        made = built("a", node="here", command=command, restart=restart)
        mounts = [{"name": "m", "mountPath": "/marks"}, {"name": "c", "mountPath": "/settings"}]
        made["spec"]["containers"][0] |= {"volumeMounts": mounts, **(container or {})}
        made["spec"]["volumes"] = [
            {"name": "m", "hostPath": {"path": str(marks)}}, {"name": "e", "emptyDir": {}},
            {"name": "c", "configMap": {"name": "settings", "optional": True}},
        ]
        if beside:
            made["spec"]["initContainers"] = [{
                "name": "beside", "image": "busybox", "command": ["/bin/sh", "-c", beside], "restartPolicy": "Always",
                "volumeMounts": mounts,
            }]
        await self.client.create(PODS, made)
        return marks / "begun"

    async def until(self, true: Callable[[Object | None], bool]) -> Object:
        """The pod as soon as something is true of it; None stands for its absence."""
        page = await self.client.list(PODS, "default")
        if true(page.items[0] if page.items else None):
            return page.items[0] if page.items else {}
        async with aclosing(self.client.watch(PODS, "default", revision=page.revision)) as events:
            async for event in events:
                if event.type != "BOOKMARK" and true(None if event.type == "DELETED" else event.object):
                    return event.object
        raise AssertionError("the watch ended")

    async def phase(self, *wanted: str) -> Object:
        found = await self.until(lambda one: bool(one) and (one or {})["status"].get("phase") in wanted)
        return dict(found["status"])

    async def delete(self) -> None:
        await self.client.delete(PODS, "a", "default", grace=60)
        await self.until(lambda one: one is None)


async def a_failure(world: World) -> tuple[object, ...]:
    """A pod fails; its exit code must be told, and it must have begun once."""
    begun = await world.pod("exit 7")
    status = await world.phase("Failed", "Succeeded")
    await world.delete()
    return status["phase"], _exit_code(status), begun.read_text()


async def a_restart(world: World) -> tuple[object, ...]:
    """A container fails once and then succeeds: two attempts, no more, and the count says one restart."""
    begun = await world.pod("[ $(wc -l < /marks/begun) -ge 2 ] || exit 1", restart="OnFailure")
    status = await world.phase("Failed", "Succeeded")
    await world.delete()
    return status["phase"], status["containerStatuses"][0]["restartCount"], begun.read_text()


async def a_deletion(world: World) -> tuple[object, ...]:
    """A running pod is deleted: it is asked to end, and gone from the API only after its processes are."""
    begun = await world.pod("sleep 1000 & wait", prepare="trap 'echo asked >> /marks/begun; exit 0' TERM")
    await world.phase("Running")
    while not begun.exists():  # noqa: ASYNC110  a signal before that would end it without a word
        await asyncio.sleep(0.005)
    await world.delete()
    return (begun.read_text(),)


async def a_verdict(world: World) -> tuple[object, ...]:
    """A container is found dead and ends well when asked to: it must be started again all the same, and once."""
    # In a place that is new with every attempt: whoever looks at the second early must not find the mark of the first.
    probe = {"exec": {"command": ["/bin/sh", "-c", "! test -e /tmp/dead"]}, "periodSeconds": 1, "failureThreshold": 1,
             "timeoutSeconds": 30}
    script = "[ $(wc -l < /marks/begun) -lt 2 ] || exit 0; touch /tmp/dead; sleep 1000 & wait"
    begun = await world.pod(script, "OnFailure", "trap 'exit 0' TERM", {"livenessProbe": probe})
    status = await world.phase("Failed", "Succeeded")
    await world.delete()
    return status["phase"], status["containerStatuses"][0]["restartCount"], begun.read_text()


async def hooks(world: World) -> tuple[object, ...]:
    """A preStop hook runs at least once and before the request; a postStart hook at most once."""
    def says(word: str) -> Object:
        return {"exec": {"command": ["/bin/sh", "-c", f"echo {word} >> /marks/begun"]}}

    begun = await world.pod("sleep 1000 & wait", prepare="trap 'echo asked >> /marks/begun; exit 0' TERM",
                            container={"lifecycle": {"postStart": says("after"), "preStop": says("before")}})
    await world.phase("Running")
    while not begun.exists() or "begun" not in begun.read_text():  # noqa: ASYNC110  as above
        await asyncio.sleep(0.005)
    await world.delete()
    words = begun.read_text().split()
    ends = [word for word in words if word in ("before", "asked")]
    return words.count("begun"), words.count("after") <= 1, ends[0], ends[-1], words.count("asked")


async def a_sidecar(world: World) -> tuple[object, ...]:
    """It begins before and ends after the container that it stands by, and does not count."""
    beside = "trap 'echo -beside >> /marks/begun; exit 1' TERM; echo +beside >> /marks/begun; sleep 1000 & wait"
    heard = "until grep -qs +beside /marks/begun; do sleep 0.02; done"       # it runs, but may not have got to its word
    begun = await world.pod("echo -main >> /marks/begun", prepare=heard, beside=beside)
    status = await world.phase("Failed", "Succeeded")
    await world.delete()
    return status["phase"], begun.read_text()


async def a_change(world: World) -> tuple[object, ...]:
    """The files of a running pod follow their object."""
    about = {"name": "settings", "namespace": "default"}
    settings: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"a": "one", "b": "one"}}
    await world.client.create(CONFIG_MAPS, settings)
    begun = await world.pod("until grep -q two /settings/a; do sleep 0.02; done; cat /settings/b >> /marks/begun")
    await world.phase("Running")
    await world.client.patch(CONFIG_MAPS, "settings", "default", {"data": {"a": "two", "b": "two"}})
    status = await world.phase("Failed", "Succeeded")
    await world.delete()
    await world.client.delete(CONFIG_MAPS, "settings", "default")
    return status["phase"], begun.read_text()


def _exit_code(status: Object) -> object:
    return status["containerStatuses"][0]["state"]["terminated"]["exitCode"]


Story = Callable[[World], Awaitable[tuple[object, ...]]]


async def told(world: World, story: Story, die_at: int | None) -> tuple[tuple[object, ...], int]:
    """Tell a story while the agent dies at a step and is replaced; how it ended, and the steps of the first agent."""
    first = await world.agent(die_at)

    async def replaced() -> int:
        await asyncio.shield(world.steps[first])
        return await world.agent()

    replacing = asyncio.create_task(replaced())
    try:
        async with asyncio.timeout(PATIENCE):
            end = await story(world)
            await nothing_left(world)
    finally:
        if world.steps[first].done():
            await world.kill(await replacing)
        else:
            replacing.cancel()
    return end, await world.kill(first)


async def nothing_left(world: World) -> None:
    """No file of a pod, and no process in the cluster's namespaces but the holder."""
    folders = [world.base / "run" / "pods", world.base / "logs", world.base / "volumes" / "pods"]
    while any(any(folder.iterdir()) for folder in folders if folder.is_dir()):  # noqa: ASYNC110  nobody signals it
        await asyncio.sleep(0.01)
    found = holder.find(str(world.base / "run"))
    assert found is not None
    os.close(found[0])
    while children(int(str(found[1]["pid"]))):  # noqa: ASYNC110  nor that
        await asyncio.sleep(0.01)


def children(pid: int) -> list[int]:
    """Living processes directly below another; the holder is the parent of whatever lost its own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


@asynccontextmanager
async def made_world() -> AsyncIterator[World]:
    clock = RealClock()
    base = Path(tempfile.mkdtemp(prefix="tm-kills-"))
    known = keys.ensure(base, clock.now())
    async with embedded(clock) as cluster:
        tokens = Authenticator({known.tokens["node"]: Identity("system:node:here", ("system:masters",))})
        listening = await serve(cluster.server, tokens, known.server_context())
        agents = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.faults.node_child", cwd=ROOT, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        order: dict[str, object] = {
            "base": str(base), "server": f"https://127.0.0.1:{listening.port}", "token": known.tokens["node"],
            "ca": known.authority.decode(),
        }
        world = World(cluster.client(), base, order, agents)
        # Without controllers nobody publishes the certificate that comes with a token.
        await world.client.patch(SERVICE_ACCOUNTS, "default", "default", {"automountServiceAccountToken": False})
        reading = asyncio.create_task(world.read())
        try:
            yield world
        finally:
            assert agents.stdin is not None
            agents.stdin.close()
            await agents.wait()
            await reading
            await listening.stop()
            assert await asyncio.to_thread(holder.end, base / "run")
            cgroups.end(base / "run")
            remove(base)


@pytest.mark.parametrize("kills", [
    pytest.param(2, id="at a few steps"),
    pytest.param(18, id="at many steps", marks=pytest.mark.faults),
    pytest.param(10_000, id="at every step", marks=[pytest.mark.faults, pytest.mark.full]),
])
@pytest.mark.parametrize(("story", "expected"), [
    pytest.param(a_failure, ("Failed", 7, "begun\n"), id="a pod fails"),
    pytest.param(a_restart, ("Succeeded", 1, "begun\nbegun\n"), id="a container restarts"),
    pytest.param(a_deletion, ("begun\nasked\n",), id="a pod is deleted"),
    pytest.param(a_verdict, ("Succeeded", 1, "begun\nbegun\n"), id="a container fails its probe"),
    pytest.param(hooks, (1, True, "before", "asked", 1), id="a pod with hooks is deleted"),
    pytest.param(a_sidecar, ("Succeeded", "+beside\nbegun\n-main\n-beside\n"), id="a pod with a sidecar"),
    pytest.param(a_change, ("Succeeded", "begun\ntwo"), id="an object changes"),
])
async def test_killed(story: Story, expected: tuple[object, ...], kills: int) -> None:
    if (why := probe()) is not None:
        pytest.skip(str(why))
    async with made_world() as world:
        end, steps = await told(world, story, None)
        assert expected == end
        stride = max(1, steps // kills)
        for die_at in range(max(1, stride // 2), steps + 1, stride):
            end, _ = await told(world, story, die_at)

            assert expected == end, f"killed at step {die_at} of {steps}"
