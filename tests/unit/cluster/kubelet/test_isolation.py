"""What pods ask of their isolation and do not get: refused where it would protect, told where it would share."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.environment import ConfigError
from trainmaster.cluster.kubelet.isolation import check_container, notes, trouble


def pod(**spec: Any) -> Object:
    return {"spec": {"containers": [{"name": "main"}], **spec}}


@pytest.mark.parametrize(("words", "security"), [
    pytest.param('seccompProfile "a.json" is not on this node',
                 {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}, id="a filter of its own"),
    pytest.param('appArmorProfile "p" is not on this node',
                 {"appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}, id="a profile of its own"),
    pytest.param("procMount Unmasked", {"procMount": "Unmasked"}, id="a bare /proc"),
])
def test_what_a_container_cannot_have(words: str, security: Object) -> None:
    with pytest.raises(ConfigError, match=words):
        check_container(security)


@pytest.mark.parametrize("security", [
    pytest.param({}, id="nothing"),
    pytest.param({"seccompProfile": {"type": "RuntimeDefault"}}, id="whatever the runtime has"),
    pytest.param({"seccompProfile": {"type": "Unconfined"}, "procMount": "Default"}, id="what is so anyhow"),
    pytest.param({"seLinuxOptions": {"level": "s0"}}, id="labels, which a kubelet without SELinux ignores, too"),
])
def test_what_a_container_may_ask_for(security: Object) -> None:
    check_container(security)


@pytest.mark.parametrize(("expected", "users", "rootless"), [
    pytest.param(True, False, False, id="root has none"),
    pytest.param(False, False, True, id="an ordinary user's pods are in one"),
    pytest.param(False, True, False, id="the host's"),
    pytest.param(False, None, False, id="nothing was said"),
])
def test_a_user_namespace(expected: bool, users: bool | None, rootless: bool) -> None:
    assert expected == bool(trouble(pod(hostUsers=users), rootless=rootless))


@pytest.mark.parametrize(("words", "thing"), [
    pytest.param([], pod(hostNetwork=True), id="nothing to tell"),
    pytest.param(["hostPID", "hostIPC"], pod(hostPID=True, hostIPC=True), id="namespaces of the machine"),
    pytest.param(["seccompProfile RuntimeDefault"], pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
                 id="a filter for all containers"),
    pytest.param(["appArmorProfile RuntimeDefault"], pod(initContainers=[
        {"name": "a", "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}]), id="a profile for one"),
])
def test_what_is_told(words: list[str], thing: Object) -> None:
    told = notes(thing)

    assert len(words) == len([part for part in told.split("; ") if part])
    assert all(word in told for word in words)
