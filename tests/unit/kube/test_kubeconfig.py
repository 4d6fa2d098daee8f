"""Kubeconfig files: what is read, what wins, what is refused and with which words."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainmaster.kube.credentials import Plugin
from trainmaster.kube.kubeconfig import Access, KubeconfigError, document, in_cluster, load, transport

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
NEVER = {"apiVersion": V1, "interactiveMode": "Never"}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **context: Any) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", **context}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://h:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text(f"file {name}")
    return tmp_path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(config(), Access("https://h:1", context="c"), id="the least there can be"),
        pytest.param(config(namespace="ns"), Access("https://h:1", namespace="ns", context="c"), id="a namespace"),
        pytest.param(config(user={"token": "t"}), Access("https://h:1", token="t", context="c"), id="a token"),
        pytest.param(
            config({"certificate-authority-data": encoded("x")}), Access("https://h:1", ca=b"x", context="c"),
            id="an authority inside",
        ),
        pytest.param(
            config({"certificate-authority": "ca.crt"}), Access("https://h:1", ca=b"file ca.crt", context="c"),
            id="an authority in a file beside",
        ),
        pytest.param(
            config({"certificate-authority": "ca.crt", "certificate-authority-data": encoded("x")}),
            Access("https://h:1", ca=b"x", context="c"), id="data wins over a file",
        ),
        pytest.param(
            config(user={"client-certificate": "me.crt", "client-key-data": encoded("k")}),
            Access("https://h:1", client_cert=b"file me.crt", client_key=b"k", context="c"), id="a client certificate",
        ),
        pytest.param(
            config({"insecure-skip-tls-verify": True}), Access("https://h:1", verify=False, context="c"),
            id="not to be verified",
        ),
        pytest.param(
            config({"tls-server-name": "n"}), Access("https://h:1", server_name="n", context="c"), id="another name"
        ),
        pytest.param(
            {**config(), "contexts": [{"name": "c", "context": {"cluster": "k"}}]}, Access("https://h:1", context="c"),
            id="nobody in particular",
        ),
    ],
)
def test_what_is_read(content: dict[str, Any], expected: Access, folder: Path) -> None:
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))

    assert expected == load(path)


CLUSTER = {
    "certificate-authority-data": encoded("x"), "tls-server-name": "n",
    "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}, {"name": "other"}],
}


@pytest.mark.parametrize(
    ("cluster", "given", "expected"),
    [
        pytest.param({}, {"command": "helper", **NEVER}, Plugin("helper"), id="a name is left to PATH"),
        pytest.param({}, {"command": "/bin/helper", **NEVER}, Plugin("/bin/helper"), id="a whole path"),
        pytest.param({}, {"command": "./bin/helper", **NEVER}, Plugin("FOLDER/bin/helper"), id="a path beside it"),
        pytest.param({}, {"command": "helper", "apiVersion": V1BETA1}, Plugin("helper", api_version=V1BETA1),
                     id="the older version, which need not say whether it talks"),
        pytest.param({}, {"command": "helper", "args": ["a", 1], "env": [{"name": "N", "value": "v"}],
                          "installHint": "get it", **NEVER},
                     Plugin("helper", ("a", "1"), (("N", "v"),), hint="get it"), id="arguments, environment, a hint"),
        pytest.param(CLUSTER, {"command": "helper", "provideClusterInfo": True, **NEVER},
                     Plugin("helper", cluster={
                         "server": "https://h:1", "tls-server-name": "n", "certificate-authority-data": encoded("x"),
                         "config": {"audience": "a"},
                     }), id="it wants to know for which cluster"),
    ],
)
def test_a_program_for_credentials(
    cluster: dict[str, Any], given: dict[str, Any], expected: Plugin, folder: Path
) -> None:
    path = folder / "config"
    path.write_text(yaml.safe_dump(config(cluster, {"exec": given})))
    found = load(path).plugin

    assert found is not None
    assert expected == replace(found, command=found.command.replace(str(folder), "FOLDER"))


def test_a_token_that_is_there_wins_over_a_program(folder: Path) -> None:
    path = folder / "config"
    path.write_text(yaml.safe_dump(config(user={"token": "t", "exec": {"command": "x", **NEVER}})))

    assert ("t", None) == (load(path).token, load(path).plugin)


def test_a_token_file_is_named_and_not_read(folder: Path) -> None:
    path = folder / "config"
    path.write_text(yaml.safe_dump(config(user={"tokenFile": "token"})))

    assert (folder / "token", "") == (load(path).token_file, load(path).token)


def test_a_context_can_be_chosen(folder: Path) -> None:
    content = config()
    content["contexts"].append({"name": "other", "context": {"cluster": "k2"}})
    content["clusters"].append({"name": "k2", "cluster": {"server": "https://h:2"}})
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))

    assert "https://h:2" == load(path, "other").server


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "No such file", id="no file"),
        pytest.param("{", "not valid YAML", id="no YAML"),
        pytest.param("just text", "not a kubeconfig", id="something else"),
        pytest.param({}, "no current-context", id="no context chosen"),
        pytest.param({**config(), "current-context": "x"}, "no entry 'x' under contexts", id="unknown context"),
        pytest.param({**config(), "users": []}, "no entry 'u' under users .found: none", id="unknown user"),
        pytest.param(config({"server": "h:1"}), "expected an https:// address", id="no address"),
        pytest.param(config({"certificate-authority-data": "%%"}), "not base64", id="broken data"),
        pytest.param(config({"certificate-authority": "none"}), "No such file", id="a file that is missing"),
        pytest.param(config(user={"exec": {"apiVersion": V1}}), "exec of context 'c': no command", id="no program"),
        pytest.param(config(user={"exec": {"command": "x", "apiVersion": "v1alpha1"}}),
                     "apiVersion is 'v1alpha1', expected client", id="a program of another time"),
        pytest.param(config(user={"exec": {"command": "x", "env": ["a"], **NEVER}}), "env is not a list",
                     id="an environment that is none"),
        pytest.param(config(user={"exec": {"command": "x", "apiVersion": V1}}), "interactiveMode is missing",
                     id="a program that may or may not want to talk"),
        pytest.param(config(user={"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Always"}}),
                     "without a terminal", id="a program that wants to talk"),
        pytest.param(config(user={"auth-provider": {"name": "x"}}), "'auth-provider'", id="an old provider"),
        pytest.param(config(user={"username": "x"}), "'username'", id="a password"),
        pytest.param(config({"proxy-url": "http://p"}), "'proxy-url'", id="a proxy"),
    ],
)
def test_what_is_refused(content: dict[str, Any] | str | None, words: str, folder: Path) -> None:
    path = folder / "config"
    if content is not None:
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))

    with pytest.raises(KubeconfigError, match=words):
        load(path)


def test_credentials_show_neither_in_a_repr_nor_in_an_error(folder: Path) -> None:
    access = Access("https://h:1", token="sesame", client_key=b"sesame", ca=b"sesame")
    assert "sesame" not in repr(access)

    path = folder / "config"
    path.write_text("users: [{token: sesame")
    with pytest.raises(KubeconfigError) as caught:
        load(path)
    assert "sesame" not in f"{caught.value}{caught.value.__cause__}"


def test_certificates_that_cannot_be_used_are_told_with_the_context() -> None:
    with pytest.raises(KubeconfigError, match="context 'c': the certificate authority"):
        transport(Access("https://h:1", ca=b"nonsense", context="c"))


def test_what_we_write_we_can_read(folder: Path) -> None:
    path = folder / "config"
    path.write_text(yaml.safe_dump(document("https://127.0.0.1:6443", b"ca", "token")))

    assert Access("https://127.0.0.1:6443", ca=b"ca", token="token", context="trainmaster") == load(path)


@pytest.mark.parametrize(
    ("host", "server"),
    [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")],
    ids=["an IPv4 address", "an IPv6 address"],
)
def test_inside_a_pod_its_account_is_used(host: str, server: str, tmp_path: Path) -> None:
    for name, text in (("token", "t"), ("ca.crt", "ca"), ("namespace", "ns\n")):
        (tmp_path / name).write_text(text)
    access = in_cluster({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}, tmp_path)

    assert Access(server, ca=b"ca", namespace="ns", context="in-cluster", token_file=tmp_path / "token") == access


@pytest.mark.parametrize(
    "environment",
    [{}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}],
    ids=["no pod", "a pod without an account"],
)
def test_outside_of_a_pod_there_is_no_account(environment: dict[str, str], tmp_path: Path) -> None:
    assert in_cluster(environment, tmp_path) is None
