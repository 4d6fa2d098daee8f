"""Two clusters that should behave alike: a real control plane with our operator, and the embedded one.

Both have a namespace `training` whose pods a fake kubelet keeps "running", so that jobs live their whole life on both
without a process being started. On the real one, everything of ours comes in as a user would bring it: the definitions
through kubectl, the operator as a program with a kubeconfig.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes import fake_kubelet, node_images
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.processes import processes

from trainmaster.api.core import NAMESPACES, SERVICE_ACCOUNTS
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists
from trainmaster.local import nodes, parts
from trainmaster.local.asked import NONE, Asked
from trainmaster.local.home import Home

SIMULATED = {"cpu": "64", "memory": "64Gi", "ephemeral-storage": "100Gi"}      # by a node that only pretends
NAMESPACE = "training"
PROGRAMS = ("etcd", "kube-apiserver", "kubectl", "kube-controller-manager")  # of the real one
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Cluster:
    name: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl, pointed at one cluster, with a home of its own for what it caches."""

    program: Path
    cluster: Cluster
    home: Path

    def command(self, *arguments: str) -> list[str]:
        return [str(self.program), f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={NAMESPACE}", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever the end is."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def output(self, *arguments: str, stdin: str = "") -> str:
        """What it prints; it must succeed."""
        done = self(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> dict[str, object]:
        found = json.loads(self.output(*arguments, "-o", "json"))
        assert isinstance(found, dict)
        return found


@contextlib.contextmanager
def real(plane: ControlPlane, kubectl: Path, folder: Path) -> Iterator[Cluster]:
    """`plane` with our definitions, our operator and Kubernetes' own garbage collector."""
    cluster = Cluster("kube-apiserver", plane.kubeconfig("operator"))
    with processes(folder) as started:
        install = Kubectl(kubectl, cluster, folder)
        documents = subprocess.run(trainmaster("crds"), capture_output=True, text=True, timeout=PATIENCE, check=True)
        install.output("apply", "-f", "-", stdin=documents.stdout)
        install.output("wait", "--for=condition=Established", "crd", "--all", "--timeout=100s")
        # Only now: the garbage collector looks for new kinds every 30 seconds, and at its start.
        plane.start_controllers("garbage-collector-controller", "namespace-controller")
        started.start("operator", trainmaster("operator", f"--kubeconfig={cluster.kubeconfig}"))
        started.start("kubelet", kubelet_command(cluster, "--bind"))
        # Published a moment after it is established; nothing else tells when.
        started.wait("operator", lambda: install("explain", "tfjob").returncode == 0)
        yield cluster


@contextlib.contextmanager
def embedded(folder: Path, simulated: int = 0) -> Iterator[Cluster]:
    """The control plane that `trainmaster up` starts, with a home of its own and without a node that runs anything."""
    home = Home(folder / "home")
    home.make()
    # The machine is called as the kubelet that pretends, so that the way to the logs of its pods leads here.
    (home.run / nodes.RECORD).write_text(json.dumps({"names": [fake_kubelet.NAME]}))
    part = parts.control_plane(home)
    with processes(folder) as started:
        environment = {**os.environ, "TRAINMASTER_HOME": str(home.path)}
        # The real cluster has no gang scheduler either.
        asked = Asked(gang_scheduler=NONE, simulated_nodes=simulated, simulated_offers=SIMULATED)
        started.start(part.name, [sys.executable, "-m", part.module, asked.words()], environment)
        started.wait(part.name, lambda: "server" in (part.facts() or {}))
        yield Cluster("embedded", home.kubeconfig)


@contextlib.contextmanager
def embedded_with_kubelet(folder: Path) -> Iterator[Cluster]:
    with embedded(folder) as cluster, processes(folder) as started:
        started.start("kubelet", kubelet_command(cluster))  # our scheduler binds
        yield cluster


@contextlib.contextmanager
def with_node(folder: Path, binaries: Path) -> Iterator[Cluster]:
    """All that `trainmaster up` starts, with a node that runs processes and knows the images of Kubernetes' tests."""
    home = Home(folder / "home")
    home.make()
    node_images.write(home.images, binaries, folder)
    environment = {**os.environ, "TRAINMASTER_HOME": str(home.path)}

    def said(*arguments: str) -> None:
        done = subprocess.run(trainmaster(*arguments), env=environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    said("up")
    try:
        yield Cluster("embedded", home.kubeconfig)
    finally:
        said("down")


async def prepare(cluster: Cluster) -> None:
    """The node, the namespace, and an account that gives its pods no token: the real server gives none."""
    async with connected(cluster.kubeconfig) as client:
        await fake_kubelet.register(client)
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await without_token(client, NAMESPACE)


async def without_token(client: Client, namespace: str, name: str = "default") -> None:
    """Have the account, made by a controller or not, and its pods as on a server without the accounts plug-in."""
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    with contextlib.suppress(AlreadyExists):
        await client.create(SERVICE_ACCOUNTS, made)
    await client.patch(SERVICE_ACCOUNTS, name, namespace, {"automountServiceAccountToken": False})


def trainmaster(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "trainmaster.cli.main", *arguments]


def kubelet_command(cluster: Cluster, *arguments: str, namespace: str = NAMESPACE) -> list[str]:
    return [sys.executable, str(fake_kubelet.__file__), str(cluster.kubeconfig), namespace, *arguments]
