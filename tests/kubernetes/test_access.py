"""The table of access cases on a real kube-apiserver and on ours: the same answers, in the same words.

Everybody in the table is impersonated, so one administrator asks for all. The real server gets the controller that
gathers `admin`, `edit` and `view`; ours has gathered them from the start.
"""

import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector
from multidict import CIMultiDict
from tests.conformance import access_cases
from tests.conformance.access_cases import CASES, groups_of
from tests.kubernetes import control_plane as real
from tests.kubernetes.access import connected
from tests.kubernetes.clusters import Cluster
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.waiting import until

from trainmaster.api.core import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES
from trainmaster.api.meta import Resource
from trainmaster.kube.client import Client
from trainmaster.kube.kubeconfig import load

pytestmark = pytest.mark.kubernetes
ROLES = Resource(access_cases.RBAC, "v1", "roles", "Role")
BINDINGS = Resource(access_cases.RBAC, "v1", "rolebindings", "RoleBinding")
TOOL = Path(__file__).parents[2] / "tools" / "kubernetes_roles.py"


@pytest.fixture(scope="module")
def guarded(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real server of its own: others' roles would change the answers."""
    programs = binaries("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
    with real.running(programs, tmp_path_factory.mktemp("guarded")) as plane:
        yield plane


def test_the_roles_we_ship_are_those_of_kubernetes(guarded: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(guarded.binaries), prepend=":")
    done = subprocess.run([sys.executable, TOOL, guarded.kubeconfig(), "--check"], check=False, timeout=60)

    assert done.returncode == 0, f"run {TOOL.name} and look at what changed"


async def prepare(client: Client) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": access_cases.NAMESPACE}})
    for resource, things in ((CLUSTER_ROLES, access_cases.CLUSTER_ROLES), (ROLES, access_cases.ROLES),
                             (CLUSTER_ROLE_BINDINGS, access_cases.CLUSTER_BINDINGS), (BINDINGS, access_cases.BINDINGS)):
        for thing in things:
            place = {"namespace": access_cases.NAMESPACE} if resource.namespaced else {}
            await client.create(resource, {**thing, "metadata": {**thing["metadata"], **place}})


async def until_gathered(client: Client) -> None:
    """The real one gathers a moment after its start."""
    async def gathered() -> object:
        return (await client.get(CLUSTER_ROLES, "admin")).get("rules")

    await until(gathered, "the role `admin` has rules")


async def asked(kubeconfig: Path) -> dict[str, tuple[bool, str]]:
    """For each question whether it was let through, and if not, in which words."""
    access = load(kubeconfig)
    context = ssl.create_default_context(cadata=(access.ca or b"").decode())
    answers = {}
    async with ClientSession(access.server, connector=TCPConnector(ssl=context)) as session:
        for case in CASES:
            media, body = case.body
            headers = CIMultiDict({"Authorization": f"Bearer {access.token}", "Impersonate-User": case.who})
            headers.extend([("Impersonate-Group", group) for group in groups_of(case.who)])
            if media:
                headers["Content-Type"] = media
            sent = session.request(case.method, case.path, params=case.query, headers=headers, data=body or None)
            async with sent as answer:
                refused = answer.status == 403
                answers[str(case)] = (not refused, (await answer.json())["message"] if refused else "")
    return answers


async def test_the_same_answers_in_the_same_words(guarded: ControlPlane, embedded_server: Cluster) -> None:
    guarded.start_controllers("clusterrole-aggregation-controller")
    found = []
    for kubeconfig in (guarded.kubeconfig(), embedded_server.kubeconfig):
        async with connected(kubeconfig) as client:
            await prepare(client)
            await until_gathered(client)
        found.append(await asked(kubeconfig))
    theirs, ours = found

    assert {str(case): case.allowed for case in CASES} == {case: allowed for case, (allowed, _) in theirs.items()}
    assert theirs == ours
