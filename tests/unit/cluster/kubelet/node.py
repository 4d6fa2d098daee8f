"""A node for tests: the real agent against the embedded API server, with real pods, as whoever runs the tests."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainmaster.api.core import EVENTS, PODS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import cgroups, holder
from trainmaster.cluster.kubelet.images import Image, ImageError
from trainmaster.cluster.kubelet.main import NodeSettings, NotPossible, run
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube.client import Client
from trainmaster.kube.http import HttpTransport
from trainmaster.kube.transport import Request
from trainmaster.runtime.clock import RealClock
from trainmaster.testing.builders import pod as built
from trainmaster.testing.cluster import embedded

PATIENCE = 60.0
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = 54321


class Programs:
    """Images for these tests: the programs of this machine, and one that nobody can get."""

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        if name != "here":
            say("looking")
        if name == "nowhere":
            raise ImageError("ErrImagePull", "there is no such image")
        return Image(name, environment={"PATH": "/usr/local/bin:/usr/bin:/bin"})


class Node:
    """A node and a client to its cluster."""

    def __init__(self, client: Client, base: Path) -> None:
        self.client = client
        self.settings = NodeSettings(
            "here", base / "run", base / "logs", base / "volumes", "8", "16Gi", {"example.com/gpu": "2"}, (base,)
        )
        self._agent: asyncio.Task[None] | None = None

    async def start(self, *beside: str, **settings: Any) -> None:
        """Begin; `beside`: further nodes of the same machine."""
        self.settings = replace(self.settings, **settings)
        # Without controllers nobody publishes the certificate that comes with a token.
        await self.client.patch(SERVICE_ACCOUNTS, "default", "default", {"automountServiceAccountToken": False})
        members = [self.settings, *(replace(self.settings, name=name, socket_name=f"{name}.sock") for name in beside)]
        ready = asyncio.Event()
        agent = self._agent = asyncio.create_task(
            run([(each, self.client) for each in members], images=Programs(), clock=RealClock(), ready=ready.set)
        )
        told = asyncio.create_task(ready.wait())
        await asyncio.wait([agent, told], return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        told.cancel()
        if agent.done():
            try:
                agent.result()
            except NotPossible as why:
                pytest.skip(str(why))

    async def stop(self) -> None:
        """End the agent; pods go on."""
        if self._agent is not None:
            self._agent.cancel()
            with suppress(asyncio.CancelledError):
                await self._agent
            self._agent = None

    async def pod(self, name: str, script: str, node: str = "here", **spec: Any) -> None:
        await self.client.create(PODS, built(name, node=node, command=("/bin/sh", "-c", script),
                                             labels={"app": name}, **spec))

    async def until(self, name: str, true: Callable[[Object], bool]) -> Object:
        """The pod, as soon as something is true of it."""
        async with asyncio.timeout(PATIENCE):
            page = await self.client.list(PODS, "default", fields=f"metadata.name={name}")
            for thing in page.items:
                if true(thing):
                    return thing
            watch = self.client.watch(PODS, "default", fields=f"metadata.name={name}", revision=page.revision)
            async with aclosing(watch) as events:
                async for event in events:
                    if event.type != "BOOKMARK" and true(event.object):
                        return event.object
        raise AssertionError("the watch ended")

    async def phase(self, name: str, *wanted: str) -> Object:
        return await self.until(name, lambda thing: thing["status"].get("phase") in wanted)

    async def gone(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE):
            page = await self.client.list(PODS, "default", fields=f"metadata.name={name}")
            if not page.items:
                return
            watch = self.client.watch(PODS, "default", fields=f"metadata.name={name}", revision=page.revision)
            async with aclosing(watch) as events:
                async for event in events:
                    if event.type == "DELETED":
                        return

    async def event(self, reason: str) -> str:
        """The message of the first event with this reason."""
        async with asyncio.timeout(PATIENCE):
            page = await self.client.list(EVENTS, "default")
            for thing in page.items:
                if thing["reason"] == reason:
                    return str(thing["message"])
            async with aclosing(self.client.watch(EVENTS, "default", revision=page.revision)) as events:
                async for event in events:
                    if event.object.get("reason") == reason:
                        return str(event.object["message"])
        raise AssertionError("the watch ended")

    async def log(self, name: str, container: str = "main", **query: str) -> tuple[int, str]:
        transport = HttpTransport("http://kubelet", unix_socket=self.settings.socket)
        try:
            path = f"/containerLogs/default/{name}/{container}"
            stream = await transport.open(Request("GET", path, tuple(query.items())))
            try:
                return stream.status, b"".join([chunk async for chunk in stream.chunks()]).decode()
            finally:
                await stream.close()
        finally:
            await transport.close()

    async def heard(self, name: str, word: str) -> None:
        """Wait until the pod has said something."""
        path = next(self.settings.logs.glob(f"default_{name}_*/main/0/0.log"))
        await soon(lambda: word in path.read_text())

    async def ask(self, method: str, path: str, socket: str = "kubelet.sock") -> str:
        transport = HttpTransport("http://kubelet", unix_socket=self.settings.run / socket)
        try:
            return (await transport.send(Request(method, path))).body.decode()
        finally:
            await transport.close()

    def kill_holder(self) -> None:
        """With everything in it, as a reboot would."""
        assert holder.end(self.settings.run)

    def files(self) -> list[str]:
        """What there is of pods on disk."""
        folders = (self.settings.pods, self.settings.logs, self.settings.volumes / "pods")
        return [entry.name for folder in folders if folder.is_dir() for entry in folder.iterdir()]


async def soon(true: Callable[[], bool]) -> None:
    """Wait for what no event tells: what is on disk."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110  nobody signals it
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(base: Path) -> AsyncIterator[Node]:
    async with embedded(RealClock()) as cluster:
        made = Node(cluster.client(), base)
        try:
            await made.start()
            yield made
        finally:
            await made.stop()
            await asyncio.to_thread(holder.end, made.settings.run)
            cgroups.end(made.settings.run)
            remove(base.parent)
    assert not base.parent.exists()


def as_an_ordinary_user(file: str) -> None:
    """Run the tests of a file in another process, without any privilege."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" not in subprocess.run(
        [SYSTEM_PYTHON, "--version"], capture_output=True, text=True, check=True
    ).stdout:
        pytest.skip("the system's Python is of another version than the packages here")
    root = Path(__file__).parents[4]
    home = Path(tempfile.mkdtemp(prefix="tm-home-"))
    os.chown(home, NOBODY, NOBODY)
    packages = [path for path in sys.path if path.endswith("site-packages")]
    try:
        done = subprocess.run(
            [SYSTEM_PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", f"--basetemp={home}/t", file],
            user=NOBODY, group=NOBODY, extra_groups=[], cwd=root, capture_output=True, text=True, timeout=900,
            check=False, env={
                "HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": ":".join([f"{root}/src", *packages]),
            },
        )
    finally:
        remove(home)

    assert 0 == done.returncode, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout
