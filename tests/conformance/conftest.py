"""The embedded API server on a TLS port, and the real kubectl pointed at it."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from tests.conformance import environments
from tests.kubernetes.fake_kubelet import FakeKubelet
from tools import kubernetes_binaries

from trainmaster.cluster.apiserver.auth import Authenticator, Identity
from trainmaster.cluster.apiserver.http import Listening, serve
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.controllers import main as controllers
from trainmaster.cluster.store import Store
from trainmaster.kube import kubeconfig
from trainmaster.kube.client import Client
from trainmaster.kube.http import HttpTransport
from trainmaster.local import keys
from trainmaster.runtime.clock import RealClock

OLD, NEWEST = "1.20", kubernetes_binaries.KUBERNETES
PATIENCE = 120.0      # for a kubectl, which may wait for a minute itself
ADMIN = Identity("admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class Done:
    """What a program that ended said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Runs a kubectl with a home and a cache of its own."""

    program: str
    home: Path
    old: bool = False  # 1.20: validates by itself, says some things in other words

    def command(self, *arguments: str) -> list[str]:
        return [self.program, f"--cache-dir={self.home / 'cache'}", *arguments]

    @property
    def all_fields(self) -> list[str]:
        """The option without which managed fields are not shown; the old one shows them always."""
        return [] if self.old else ["--show-managed-fields"]

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.home),
                "KUBECONFIG": str(self.home / "kubeconfig")}

    async def __call__(self, *arguments: str, given: str = "", editor: str = "") -> Done:
        process = await asyncio.create_subprocess_exec(
            *self.command(*arguments), env={**self.environment, "KUBE_EDITOR": editor}, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(given.encode())
        return Done(process.returncode or 0, out.decode(), err.decode())

    async def output(self, *arguments: str, given: str = "", editor: str = "") -> str:
        """Its standard output; the test fails if it did."""
        done = await self(*arguments, given=given, editor=editor)
        assert done.code == 0, f"kubectl {' '.join(arguments)}: {done.err}"
        return done.out


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running server, a client inside it, and what a client outside needs."""

    server: ApiServer
    client: Client
    url: str
    authority: bytes
    token: str
    listening: Listening


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> keys.Keys:
    """Certificates and tokens, once for all tests."""
    return keys.ensure(tmp_path_factory.mktemp("keys"), datetime.now(UTC))


@pytest.fixture
def kubelet_socket(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


@pytest.fixture
async def cluster(made: keys.Keys, kubelet_socket: Path) -> AsyncIterator[Cluster]:
    store = Store.open(None)
    node = HttpTransport("http://kubelet", unix_socket=kubelet_socket)
    server = ApiServer(store, clock=RealClock(), node=lambda _name: node, reach=lambda _name: node.plain())
    await server.start()
    token = made.tokens["admin"]
    listening = await serve(server, Authenticator({token: ADMIN}), made.server_context())
    client = Client(InProcess(server, ADMIN))
    yield Cluster(server, client, f"https://127.0.0.1:{listening.port}", made.authority, token, listening)
    await server.close()
    await listening.stop()
    await node.close()
    await store.close()


@pytest.fixture
async def at_work(cluster: Cluster) -> AsyncIterator[None]:
    """The controllers of the API, and somebody who says of every pod that it runs."""
    work = asyncio.gather(
        controllers.run(lambda _name: cluster.client, RealClock(), authority=cluster.authority),
        FakeKubelet(cluster.client, "default", binds=True).run())
    yield
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def program_of(version: str) -> str | None:
    """A kubectl; what is missing is fetched or, of the newest, built."""
    if version == NEWEST:
        try:
            return str(kubernetes_binaries.ensure(["kubectl"], kubernetes_binaries.cache()) / "kubectl")
        except kubernetes_binaries.NoGo as why:
            if os.environ.get("TRAINMASTER_NO_GO") != "1":
                raise
            pytest.skip(f"TRAINMASTER_NO_GO=1: {why}")
    return str(environments.debian_kubectl()) if version == OLD else shutil.which("kubectl")


@pytest.fixture(params=[
    pytest.param("", id="kubectl here"),
    pytest.param(OLD, id="kubectl 1.20"),
    pytest.param(NEWEST, id="the newest kubectl", marks=pytest.mark.kubernetes),
])
def kubectl(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Kubectl:
    """The kubectl of this machine, the oldest that is still handed out, and the newest."""
    old = request.param == OLD
    program = program_of(request.param)
    if program is None:
        pytest.skip("there is no kubectl on this machine's PATH")
    document = kubeconfig.document(cluster.url, cluster.authority, cluster.token)
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    return Kubectl(program, tmp_path, old=old)
