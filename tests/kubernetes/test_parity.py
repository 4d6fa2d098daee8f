"""Our operator does what the Go operator did, on the same server, a real kube-apiserver, with the rights that it ships.

It runs as the service account of `deploy/operator`, and the server writes down what it asks for: nothing may be
refused, and no right may be left over. JAXJobs have a definition that prunes what it does not know, as a cluster that
swaps operators may have.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.kubernetes import control_plane as real
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries
from tests.spec import parity

from trainmaster.api.core import DEFINITIONS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS, SERVICES, VALIDATING_WEBHOOKS
from trainmaster.api.groups import GROUPS
from trainmaster.api.groups import definitions as group_definitions
from trainmaster.api.meta import Object, Resource, name_of
from trainmaster.api.schema import definitions
from trainmaster.kube.client import Client
from trainmaster.kube.kubeconfig import document
from trainmaster.operator import door, rights

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif(not parity.scenarios(), reason=f"the recordings are not in {parity.KIT}"),
]

SERVERS = ("kube-apiserver", pytest.param("kube-apiserver-1.24.17", marks=pytest.mark.full))
SLICE = ("seed-*", "*-success", "*-suspend-resume", "*-exit-code-*", "*-clean-*", "*-evicted", "*-fails-never",
         "tf-recreated", "tf-scale-up", "tf-template-*", "tf-omitted-everything", "tf-delete*", "gang-*",
         "pytorch-elastic*", "pytorch-masterless*", "paddle-collective", "*-refused", "*-managed-by-other",
         "*-immutable")
# What lasts as long as it lasted when it was recorded.
TIMED = ("tf-ttl", "tf-deadline")
# A server before 1.25 does not warn of fields that it does not know; the recordings are of a newer one.
OLD = [{"scenario": "*xgb*-rabit-test", "path": "steps*.warnings", "rule": "1.1", "why": "nobody warns of these yet"}]
POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts:kubeflow"]}, {"level": "None"}],
}


@dataclass(frozen=True, slots=True)
class Watched:
    """A place to play, and what the operator asked for there."""

    place: parity.Place
    log: Path
    old: bool

    def asked(self) -> list[Object]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture(scope="module", params=SERVERS)
def watched(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    folder, server = tmp_path_factory.mktemp("parity"), str(request.param)
    programs = binaries("etcd", server, "kube-controller-manager")
    (folder / "policy.json").write_text(json.dumps(POLICY))
    more = (
        f"--audit-policy-file={folder / 'policy.json'}", f"--audit-log-path={folder / 'audit.log'}",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    )
    with real.running(programs, folder / "control-plane", *more, apiserver=server) as plane:
        door_port = real.free_port()
        token = asyncio.run(install(plane.kubeconfig(), door_port))
        account = folder / "operator.kubeconfig"
        account.write_text(json.dumps(document(plane.server, plane.certificate.read_bytes(), token)))
        account.chmod(0o600)
        plane.start_controllers("garbage-collector-controller", "namespace-controller")
        operator = [
            sys.executable, "-m", "trainmaster.cli.main", "operator", f"--kubeconfig={account}", "--leader-elect",
            f"--webhook-server-port={door_port}",
        ]
        yield Watched(parity.Place(plane.kubeconfig(), folder, operator, {}), folder / "audit.log",
                      old=server != SERVERS[0])


async def install(kubeconfig: Path, door_port: int) -> str:
    """Definitions, account and roles, as an administrator brings them; a token of the account."""
    async with connected(kubeconfig) as client:
        for definition in (*definitions(), *group_definitions()):
            await client.create(DEFINITIONS, pruning(definition) if "jaxjobs" in name_of(definition) else definition)
        await client.create(NAMESPACES, {"metadata": {"name": rights.NAMESPACE}})
        for wanted in rights.documents():
            await client.create(resource_of(wanted), wanted)
        empty = {"name": "training-operator-webhook-cert", "namespace": rights.NAMESPACE}
        await client.create(SECRETS, {"metadata": empty})
        # There is no network of a cluster that leads to pods: the Service of the webhook leads to loopback.
        await client.create(SERVICES, {"metadata": {"name": rights.ACCOUNT, "namespace": rights.NAMESPACE},
                                       "spec": {"type": "ExternalName", "externalName": "localhost"}})
        wanted = door.configuration(rights.NAMESPACE, rights.ACCOUNT)
        for each in wanted["webhooks"]:
            each["clientConfig"]["service"]["port"] = door_port
        await client.create(VALIDATING_WEBHOOKS, wanted)
        return await token_of(client)


async def token_of(client: Client) -> str:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = await client.create(
        SERVICE_ACCOUNTS, asked, namespace=rights.NAMESPACE, name=rights.ACCOUNT, subresource="token"
    )
    return str(answer["status"]["token"])


def resource_of(wanted: Object) -> Resource:
    group, _, version = wanted["apiVersion"].rpartition("/")
    kind = wanted["kind"]
    return Resource(group, version, f"{kind.lower()}s", kind, namespaced=not kind.startswith("Cluster"))


def pruning(definition: Object) -> Object:
    """The definition of somebody who does not know our memory."""
    for version in definition["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["postMortem"]
    return definition


@pytest.fixture(scope="module")
def differing(watched: Watched) -> dict[str, list[str]]:
    return parity.differing(parity.chosen(SLICE), watched.place, settle=0.5) | in_time(watched)


def in_time(watched: Watched) -> dict[str, list[str]]:
    """The differences of those that depend on when in a second a job began: it is written down in whole seconds, and
    decides whether a deadline falls before or after a look. So each is played up to three times.
    """
    left = parity.chosen(TIMED)
    found: dict[str, list[str]] = {}
    for _ in range(3):
        found = parity.differing(left, watched.place, settle=1.0) if left else {}
        left = list(found)
    return found


def test_a_slice_of_the_scenarios(differing: dict[str, list[str]]) -> None:
    assert {} == differing


@pytest.mark.usefixtures("differing")
def test_no_right_is_missing(watched: Watched) -> None:
    refused = {
        f"{entry['verb']} {entry['requestURI']}: {entry['annotations'].get('authorization.k8s.io/reason')}"
        for entry in watched.asked()
        # A namespace that is being deleted takes nothing any more: that is 403 too, but not for want of a right.
        if entry["responseStatus"]["code"] == 403 and entry["annotations"]["authorization.k8s.io/decision"] != "allow"
    }

    assert set() == refused


@pytest.mark.usefixtures("differing")
def test_no_right_is_left_over(watched: Watched) -> None:
    """Of the kinds of job, and of pod groups, what is asked of one stands for all."""
    alike = {(one.group, one.plural): what for what, all_ in (("jobs", rights.JOBS), ("groups", GROUPS))
             for one in all_}

    def place(group: str, plural: str) -> str:
        name, _, subresource = plural.partition("/")
        return f"{alike.get((group, name), f'{group}/{name}')}/{subresource}"

    used = {
        (place(about.get("apiGroup", ""), f"{about['resource']}/{about.get('subresource', '')}"), entry["verb"])
        for entry in watched.asked() if (about := entry.get("objectRef"))
    }
    unused = {
        f"{verb} {place(group, plural)}: {right.why}" for group, plural, verb, right in rights.granted()
        if right.when == rights.ALWAYS and (place(group, plural), verb) not in used
    }

    assert set() == unused


@pytest.mark.usefixtures("differing")
def test_where_a_foreign_definition_prunes_it_the_memory_is_an_annotation(watched: Watched) -> None:
    noted = [
        entry for entry in watched.asked()
        if entry["verb"] == "patch" and (entry.get("objectRef") or {}).get("resource") == "jaxjobs"
    ]

    assert noted
    assert {200} == {entry["responseStatus"]["code"] for entry in noted}


@pytest.mark.full
def test_all_scenarios(watched: Watched) -> None:
    """As slowly as they were recorded: deadlines and times to live end in the same steps."""
    timed = parity.chosen(TIMED)
    wanted = [name for name in parity.scenarios() if name not in timed]

    also = OLD if watched.old else ()
    assert {} == parity.differing(wanted, watched.place, settle=1.0, also=also) | in_time(watched)
