"""What a container finds in its environment, and how its command line is put together."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.environment import (
    ConfigError,
    Sources,
    command,
    environment,
    expand,
    hostname,
    references,
)
from trainmaster.cluster.kubelet.images import Image

SOURCES = Sources(
    config_maps={"settings": {"data": {"rate": "0.1", "steps": "10"}}},
    secrets={"key": {"data": {"token": "c2VjcmV0"}}},
    fields={"status.podIP": "10.88.0.2"},
    allocatable={"cpu": "8", "memory": "16Gi"},
)
MEBIBYTES = {"resource": "limits.memory", "divisor": "1Mi"}
IMAGE = Image("busybox", entrypoint=("/entry",), command=("--default",), environment={"PATH": "/bin", "LANG": "C"})


def pod(container: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": "worker-0", "namespace": "train", "uid": "u", "labels": {"role": "worker"}},
        "spec": {"nodeName": "here", "containers": [container or {"name": "main"}], **spec},
    }


def values(*variables: Object, **container: Any) -> dict[str, str]:
    made = {"name": "main", "env": list(variables), **container}
    return environment(pod(made), made, IMAGE, SOURCES)


@pytest.mark.parametrize(("expected", "text"), [
    pytest.param("a-1", "a-$(ONE)", id="a known name is replaced"),
    pytest.param("$(TWO)", "$(TWO)", id="an unknown one stays as it is"),
    pytest.param("$(ONE)", "$$(ONE)", id="two dollars are one, and no reference"),
    pytest.param("$1", "$$$(ONE)", id="three dollars are one and a reference"),
    pytest.param("$ONE ${ONE} $", "$ONE ${ONE} $", id="a shell's own references are left to the shell"),
    pytest.param("$(ONE", "$(ONE", id="without an end it is no reference"),
])
def test_references_in_text(expected: str, text: str) -> None:
    assert expected == expand(text, {"ONE": "1"})


@pytest.mark.parametrize(("expected", "container"), [
    pytest.param(["/entry", "--default"], {}, id="the image's own"),
    pytest.param(["/entry", "x"], {"args": ["x"]}, id="args replace the image's arguments"),
    pytest.param(["run"], {"command": ["run"]}, id="command replaces both"),
    pytest.param(["run", "x"], {"command": ["run"], "args": ["x"]}, id="command and args replace everything"),
    pytest.param(["sh", "-c", "echo 1"], {"command": ["sh", "-c", "echo $(ONE)"]}, id="references are replaced"),
])
def test_command(expected: list[str], container: Object) -> None:
    assert expected == command(container, IMAGE, {"ONE": "1"})


@pytest.mark.parametrize(("expected", "variable"), [
    pytest.param("plain", {"name": "X", "value": "plain"}, id="a value"),
    pytest.param("", {"name": "X"}, id="nothing is the empty text"),
    pytest.param("worker-0", {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, id="the name"),
    pytest.param("worker", {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['role']"}}},
                 id="a label"),
    pytest.param("10.88.0.2", {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                 id="the address"),
    pytest.param("0.1", {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
                 id="a key of a ConfigMap"),
    pytest.param("secret", {"name": "X", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
                 id="a key of a Secret, decoded"),
    pytest.param("8", {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                 id="a limit that is not set is what the node has"),
    pytest.param("16384", {"name": "X", "valueFrom": {"resourceFieldRef": MEBIBYTES}},
                 id="in units of the divisor"),
])
def test_variables(expected: str, variable: Object) -> None:
    assert expected == values(variable)["X"]


def test_a_variable_can_refer_to_those_before_it() -> None:
    found = values({"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C", "value": "3"})

    assert "1$(C)" == found["B"]


def test_whole_objects_come_first_and_single_variables_win() -> None:
    found = values(
        {"name": "P_rate", "value": "0.5"}, envFrom=[{"prefix": "P_", "configMapRef": {"name": "settings"}}]
    )

    assert ("0.5", "10") == (found["P_rate"], found["P_steps"])


def test_the_pod_overrides_the_image() -> None:
    found = values({"name": "LANG", "value": "C.UTF-8"})

    assert ("C.UTF-8", "/bin") == (found["LANG"], found["PATH"])


@pytest.mark.parametrize(("expected", "variable"), [
    pytest.param('configmap "none" not found', {"configMapKeyRef": {"name": "none", "key": "k"}}, id="no ConfigMap"),
    pytest.param("couldn't find key k in secret key", {"secretKeyRef": {"name": "key", "key": "k"}}, id="no such key"),
    pytest.param("is not a field", {"fieldRef": {"fieldPath": "spec.containers"}}, id="not a field for this"),
    pytest.param("neither limits", {"resourceFieldRef": {"resource": "cpu"}}, id="not a resource"),
])
def test_references_that_lead_nowhere(expected: str, variable: Object) -> None:
    with pytest.raises(ConfigError, match=expected):
        values({"name": "X", "valueFrom": variable})


def test_an_optional_reference_may_lead_nowhere() -> None:
    reference = {"name": "none", "key": "k", "optional": True}

    assert "X" not in values({"name": "X", "valueFrom": {"secretKeyRef": reference}})


def test_what_has_to_be_fetched() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
        "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, {"name": "Y"}],
    }

    assert ({"a", "c"}, {"b"}) == references(container)


@pytest.mark.parametrize(("expected", "thing"), [
    pytest.param("worker-0", pod(), id="the pod's name"),
    pytest.param("other", pod(hostname="other"), id="its own wish"),
])
def test_host_name(expected: str, thing: Object) -> None:
    assert expected == hostname(thing)


def test_a_long_name_is_cut_to_a_host_name() -> None:
    thing = pod()
    thing["metadata"]["name"] = "a" * 62 + ".b" * 20

    assert "a" * 62 == hostname(thing)
