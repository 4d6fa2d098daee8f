"""What Go writes as protobuf, we read as the JSON that Go writes for the same object.

Three judges: the real kube-apiserver, which answers the same question in both forms; the files with which Kubernetes
keeps its own wire format compatible, one per kind with every field set; and a Go program that fills the Go types at
random, sparse and full, because only it meets every zero value of every type.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson
import pytest
import yaml
from tests.kubernetes.control_plane import ControlPlane

from trainmaster.api.meta import Json, Object, Resource, name_of, revision_of
from trainmaster.cluster.apiserver import builtin, protobuf
from trainmaster.kube.kubeconfig import load, transport
from trainmaster.kube.transport import Request, Response, Transport

pytestmark = pytest.mark.kubernetes

HERE = Path(__file__).parent
GENERATOR = HERE.parents[1] / "tools" / "kubernetes_shapes.py"
RICH: list[Object] = list(yaml.safe_load_all((HERE / "objects.yaml").read_text()))
TIERS_A_AND_B = {
    "Namespace", "Node", "Pod", "Service", "Endpoints", "EndpointSlice", "ConfigMap", "Secret", "ServiceAccount",
    "Event", "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "ResourceQuota", "LimitRange",
    "PriorityClass", "Lease", "Job", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
    "CustomResourceDefinition", "Deployment", "ReplicaSet", "StatefulSet", "CronJob", "HorizontalPodAutoscaler",
    "PodDisruptionBudget", "NetworkPolicy", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}
NAMESPACE = "default"


@pytest.fixture
async def wire(control_plane: ControlPlane) -> AsyncIterator[Transport]:
    carrier = transport(load(control_plane.kubeconfig()))
    try:
        yield carrier
    finally:
        await carrier.close()


async def ask(
    wire: Transport, method: str, path: str, thing: Object | None = None, accept: str = "application/json"
) -> Response:
    headers = {"accept": accept, "content-type": "application/json"}
    return await wire.send(Request(method, path, (), headers, b"" if thing is None else json.dumps(thing).encode()))


async def both_forms(wire: Transport, path: str) -> tuple[Object, Object]:
    """The same answer as the JSON that the server writes and as what we make of its protobuf."""
    for _ in range(20):     # a definition changes by itself until it is established
        plain = orjson.loads((await ask(wire, "GET", path)).body)
        packed = await ask(wire, "GET", path, accept=protobuf.MEDIA_TYPE)
        assert packed.headers["content-type"] == protobuf.MEDIA_TYPE
        ours = protobuf.decode(packed.body)
        if revision_of(plain) == revision_of(ours):
            break
    return plain, ours


def place_of(thing: Object) -> Resource:
    found = (each.resource for each in builtin.served()[thing["apiVersion"]] if each.resource.kind == thing["kind"])
    return next(found)


def path_of(thing: Object, name: str = "", part: str = "") -> str:
    place = place_of(thing)
    return place.path(NAMESPACE if place.namespaced else "", name, part)


def title(thing: Object) -> str:
    return f"{thing['apiVersion']} {thing['kind']}"


def without_types(things: list[Object]) -> list[Object]:
    return [{name: value for name, value in thing.items() if name not in {"apiVersion", "kind"}} for thing in things]


def test_there_is_a_rich_object_of_every_kind_of_tiers_a_and_b() -> None:
    assert TIERS_A_AND_B == {thing["kind"] for thing in RICH}
    assert {"v1", "events.k8s.io/v1"} == {thing["apiVersion"] for thing in RICH if thing["kind"] == "Event"}


async def ensure(wire: Transport, thing: Object) -> None:
    """Make the object with its status, unless a test before this one did."""
    made = await ask(wire, "POST", path_of(thing), thing)
    assert made.status in {201, 409}, made.body
    if "status" in thing:
        current = orjson.loads((await ask(wire, "GET", path_of(thing, name_of(thing)))).body)
        wanted = {**current, "status": {**current.get("status", {}), **thing["status"]}}
        written = await ask(wire, "PUT", path_of(thing, name_of(thing), "status"), wanted)
        assert written.status == 200, written.body


@pytest.mark.parametrize("thing", RICH, ids=title)
async def test_an_object_is_the_same_in_both_forms(thing: Object, wire: Transport) -> None:
    await ensure(wire, thing)

    expected, ours = await both_forms(wire, path_of(thing, name_of(thing)))

    if thing["kind"] == "StatefulSet":
        # The types of embedded objects are not on the wire at all; the server adds them after decoding.
        claims = expected["spec"]["volumeClaimTemplates"]
        expected["spec"]["volumeClaimTemplates"] = without_types(claims)
    assert expected == ours


@pytest.mark.parametrize("path", [
    pytest.param("/api/v1/namespaces/default/pods", id="a list with items"),
    pytest.param("/apis/batch/v1/namespaces/kube-public/jobs", id="a list without items"),
    pytest.param("/apis/apps/v1/namespaces/default/deployments/rich-deployment/scale", id="a scale"),
    pytest.param("/api/v1/namespaces/default/pods/nobody", id="a failure"),
])
async def test_other_answers_are_the_same_in_both_forms(path: str, wire: Transport) -> None:
    for kind in ("Pod", "Deployment"):
        await ensure(wire, next(thing for thing in RICH if thing["kind"] == kind))

    expected, ours = await both_forms(wire, path)

    if expected.get("items") == []:
        expected["items"] = None    # on the wire, no list and an empty one are the same: nothing
    assert expected == ours


@pytest.mark.parametrize(("path", "thing"), [
    pytest.param("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "fieldSelector": {"requirements": [
            {"key": "metadata.name", "operator": "In", "values": ["a"]}]}}},
    }, id="may I"),
    pytest.param("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"},
    }, id="what may I"),
    pytest.param("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "u", "groups": ["a"], "extra": {"k": ["v", ""]},
                 "nonResourceAttributes": {"path": "/", "verb": "get"}},
    }, id="may they"),
    pytest.param("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    }, id="who am I"),
    pytest.param("/apis/authentication.k8s.io/v1/tokenreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "wrong", "audiences": ["a"]},
    }, id="whose token is this"),
])
async def test_reviews_are_the_same_in_both_forms(path: str, thing: Object, wire: Transport) -> None:
    plain = orjson.loads((await ask(wire, "POST", path, thing)).body)
    packed = protobuf.decode((await ask(wire, "POST", path, thing, accept=protobuf.MEDIA_TYPE)).body)

    assert steady(plain) == steady(packed)


def steady(review: Object) -> Object:
    """Each request is answered at a moment of its own, and rules come in no particular order."""
    review["metadata"].pop("creationTimestamp", None)
    review["metadata"].pop("managedFields", None)
    for rules in ("resourceRules", "nonResourceRules"):
        if found := review.get("status", {}).get(rules):
            review["status"][rules] = sorted(found, key=orjson.dumps)
    return review


@pytest.fixture(scope="session")
def modules() -> dict[str, Path]:
    """Folders of the Go modules of this release of Kubernetes."""
    if shutil.which("go") is None:
        if os.environ.get("TRAINMASTER_NO_GO") == "1":
            pytest.skip("TRAINMASTER_NO_GO=1: there is no Go here, so its types are not compared with ours")
        pytest.fail("these tests need Go; TRAINMASTER_NO_GO=1 leaves them out and says so", pytrace=False)
    wanted = [f"k8s.io/{name}@v0.{builtin.version().partition('.')[2]}" for name in ("api", "apiextensions-apiserver")]
    done = subprocess.run(["go", "mod", "download", "-json", *wanted], capture_output=True, text=True, check=True)
    answers = json.loads("[" + done.stdout.replace("}\n{", "},\n{") + "]")
    return {answer["Path"]: Path(answer["Dir"]) for answer in answers}


def test_the_committed_table_is_what_the_sources_give(modules: dict[str, Path]) -> None:
    assert modules
    done = subprocess.run([sys.executable, GENERATOR, "--check"], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


def test_the_files_of_kubernetes_itself_are_read_as_meant(modules: dict[str, Path]) -> None:
    """Each kind with every field set, as this release and the three before it write it."""
    folders = [*(modules["k8s.io/api"] / "testdata").iterdir(),
               modules["k8s.io/apiextensions-apiserver"] / "pkg" / "apis" / "testdata" / "HEAD"]
    read, wrong = 0, []
    for path in sorted(path for folder in folders for path in folder.glob("*.pb")):
        if ".after_roundtrip" in path.name:
            continue
        later = path.with_name(f"{path.stem}.after_roundtrip.json")     # what this release still knows of an older one
        expected = orjson.loads((later if later.exists() else path.with_suffix(".json")).read_bytes())
        if builtin.shape_of(expected.get("apiVersion", ""), expected.get("kind", "")) is not None:
            read += 1
            if expected != protobuf.decode(path.read_bytes()):
                wrong.append(f"{path.parent.name}/{path.name}")

    assert read > 300
    assert [] == wrong


@pytest.fixture(scope="session")
def pairs(modules: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Go program beside this file, compiled; Go keeps what it compiled, so the second time is quick."""
    assert modules
    folder = tmp_path_factory.mktemp("pairs")
    release = f"v0.{builtin.version().partition('.')[2]}"
    names = ("api", "apimachinery", "client-go", "apiextensions-apiserver", "kube-aggregator")
    lines = ["module build.invalid/pairs", "go 1.26.0", *(f"require k8s.io/{name} {release}" for name in names)]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
    shutil.copy(HERE / "pairs" / "main.go", folder)
    flags = ["-mod=mod", "-trimpath", "-buildvcs=false", "-o", "pairs"]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    command = ["go", "build", *flags, "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"the Go program could not be built: {done.stderr[-2000:]}", pytrace=False)
    yield folder / "pairs"
    (folder / "pairs").unlink()


def test_random_objects_of_every_kind_are_read_as_go_reads_them(pairs: Path) -> None:
    """From all zeros to all full: what Go reads from its own protobuf and writes as JSON is what we make of it."""
    seen: set[tuple[str, str]] = set()
    wrong: list[str] = []
    with subprocess.Popen([pairs, "-count", "20"], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        for line in program.stdout:
            packed, _, shown = line.partition(b" ")
            expected = orjson.loads(shown)
            kind = expected["apiVersion"], expected["kind"]
            if builtin.shape_of(*kind) is not None:
                seen.add(kind)
                found = protobuf.decode(base64.b64decode(packed))
                if difference := first_difference(expected, found, ""):
                    wrong.append(f"{kind}: {difference}")

    assert program.returncode == 0
    assert {(version, kind) for version, kinds in builtin.kinds().items() for kind in kinds} <= seen
    assert [] == wrong[:20]


def first_difference(expected: Json, found: Json, path: str) -> str:
    if type(expected) is not type(found):
        return f"{path}: expected {expected!r}, found {found!r}"
    if isinstance(expected, dict):
        if keys := expected.keys() ^ found.keys():
            return f"{path}: not in both: {sorted(keys)}"
        inside = (first_difference(expected[key], found[key], f"{path}.{key}") for key in expected)
        return next(filter(None, inside), "")
    if isinstance(expected, list) and len(expected) == len(found):
        inside = (first_difference(expected[at], found[at], f"{path}[{at}]") for at in range(len(expected)))
        return next(filter(None, inside), "")
    return "" if expected == found else f"{path}: expected {expected!r}, found {found!r}"
