"""Which cluster is meant: one order, and never another cluster in silence."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from trainmaster.kube import kubeconfig
from trainmaster.kube.kubeconfig import KubeconfigError
from trainmaster.sdk.errors import NoCluster
from trainmaster.sdk.reach import means_embedded, reach


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person with an embedded cluster that is down, and no other."""
    (tmp_path / "cluster" / "run").mkdir(parents=True)
    write(tmp_path / "cluster" / "kubeconfig", "https://embedded:1")
    return tmp_path


@pytest.fixture
def up(home: Path) -> Iterator[None]:
    lock = os.open(home / "cluster" / "run" / "control-plane.lock", os.O_CREAT | os.O_RDWR)
    os.write(lock, json.dumps({"pid": 1, "server": "https://embedded:1"}).encode())
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield
    os.close(lock)


def write(path: Path, server: str, context: str = "") -> Path:
    document = kubeconfig.document(server, b"x", "t")
    if context:
        document["current-context"] = document["contexts"][0]["name"] = context
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "TRAINMASTER_HOME": str(home / "cluster"), **more}


def test_nothing_at_all_says_how_to_get_one(home: Path) -> None:
    with pytest.raises(NoCluster, match="`trainmaster up`, or name another with --kubeconfig"):
        reach(None, None, environment(home))


@pytest.mark.usefixtures("up")
def test_the_embedded_one_if_it_is_up_even_beside_another(home: Path) -> None:
    write(home / ".kube" / "config", "https://theirs:1", "prod")
    found = reach(None, None, environment(home))

    assert ("the embedded cluster (https://embedded:1)", "") == (found.called, found.surprise)


def test_while_it_is_down_another_is_taken_aloud(home: Path) -> None:
    write(home / ".kube" / "config", "https://theirs:1", "prod")
    found = reach(None, None, environment(home))

    assert "the cluster of context prod (https://theirs:1)" == found.called
    assert "The embedded cluster is down; this is the cluster of context prod" in found.surprise


@pytest.mark.usefixtures("up")
def test_what_is_named_wins(home: Path) -> None:
    one, two = write(home / "one", "https://one:1", "first"), write(home / "two", "https://two:1", "second")
    variable = environment(home, KUBECONFIG=str(one))

    assert "https://one:1" == reach(None, None, variable).access.server
    assert "https://two:1" == reach(two, None, variable).access.server
    assert "" == reach(two, None, variable).surprise


@pytest.mark.usefixtures("up")
def test_of_several_files_the_one_that_has_the_context(home: Path) -> None:
    one, two = write(home / "one", "https://one:1", "first"), write(home / "two", "https://two:1", "second")
    several = environment(home, KUBECONFIG=f"{home / 'none'}:{one}:{two}")

    assert "https://one:1" == reach(None, None, several).access.server
    assert "https://two:1" == reach(None, "second", several).access.server
    with pytest.raises(KubeconfigError, match="no entry 'third'"):
        reach(None, "third", several)


def test_naming_the_embedded_one_while_it_is_down_is_no_cluster(home: Path) -> None:
    write(home / ".kube" / "config", "https://theirs:1", "prod")
    with pytest.raises(NoCluster, match="is down"):
        reach(None, None, environment(home, KUBECONFIG=str(home / "cluster" / "kubeconfig")))
    (home / "cluster" / "kubeconfig").unlink()      # never started
    with pytest.raises(NoCluster, match="is down"):
        reach(None, None, environment(home, KUBECONFIG=str(home / "cluster" / "kubeconfig")))


@pytest.mark.usefixtures("up")
def test_a_context_means_the_file_that_has_it(home: Path) -> None:
    write(home / ".kube" / "config", "https://theirs:1", "prod")

    assert "https://theirs:1" == reach(None, "prod", environment(home)).access.server
    assert "https://embedded:1" == reach(None, "trainmaster", environment(home)).access.server


@pytest.mark.usefixtures("up")
def test_a_context_that_no_file_has_is_said_to_be_the_reason(home: Path) -> None:
    with pytest.raises(NoCluster, match=r"No cluster has the context 'prod': there is no ~/.kube/config"):
        reach(None, "prod", environment(home))


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """What a pod finds of its account."""
    (tmp_path / "ca.crt").write_bytes(b"a certificate")
    (tmp_path / "token").write_text("a token")
    return tmp_path


IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.usefixtures("up")
def test_in_a_pod_the_embedded_one_if_it_is_up(home: Path, account: Path) -> None:
    assert "https://embedded:1" == reach(None, None, environment(home, **IN_A_POD), account).access.server


def test_in_a_pod_the_cluster_of_the_pod_before_that_of_a_file(home: Path, account: Path) -> None:
    write(home / ".kube" / "config", "https://theirs:1", "prod")
    found = reach(None, None, environment(home, **IN_A_POD), account)

    assert ("the cluster of this pod (https://10.0.0.1:443)", "") == (found.called, found.surprise)


@pytest.mark.parametrize(("given", "context", "variables", "meant"), [
    pytest.param(None, None, {}, True, id="nothing is named"),
    pytest.param(None, "trainmaster", {}, True, id="its context is named"),
    pytest.param(None, None, IN_A_POD, True, id="nothing is named, in a pod"),
    pytest.param("cluster/kubeconfig", None, {}, True, id="its file is named"),
    pytest.param(None, None, {"KUBECONFIG": "none:cluster/kubeconfig"}, True, id="its file is the first that is there"),
    pytest.param(None, "prod", {}, False, id="another context is named"),
    pytest.param("theirs", None, {}, False, id="another file is named"),
    pytest.param(None, None, {"KUBECONFIG": "theirs"}, False, id="another file is in the environment"),
    pytest.param("cluster/kubeconfig", None, {"KUBECONFIG": "theirs"}, True, id="what is given wins"),
])
def test_the_embedded_one_is_started_if(
        home: Path, given: str | None, context: str | None, variables: dict[str, str], *, meant: bool) -> None:
    write(home / "theirs", "https://theirs:1", "prod")
    below = {name: ":".join(str(home / each) for each in value.split(":")) if name == "KUBECONFIG" else value
             for name, value in variables.items()}

    assert meant is means_embedded(home / given if given else None, context, environment(home, **below))
