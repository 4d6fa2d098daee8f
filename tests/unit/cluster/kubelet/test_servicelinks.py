"""Variables about services."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.servicelinks import service_links


def service(name: str, address: str, *ports: Object, namespace: str = "train") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": address, "ports": list(ports)}}


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "a", "namespace": "train"}, "spec": spec}


API = service("kubernetes", "10.96.0.1", {"name": "https", "port": 443}, namespace="default")
API_VARIABLES = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443", "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp", "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
}


@pytest.mark.parametrize(("expected", "thing", "services"), [
    pytest.param(API_VARIABLES, pod(), [API], id="the API server, in every namespace"),
    pytest.param(API_VARIABLES, pod(enableServiceLinks=False), [API, service("db", "10.96.0.2", {"port": 1})],
                 id="also for a pod that wants no others"),
    pytest.param(API_VARIABLES, pod(), [API, service("db", "10.96.0.2", {"port": 1}, namespace="other")],
                 id="not those of another namespace"),
    pytest.param(API_VARIABLES, pod(), [API, service("workers", "None", {"port": 1}), service("x", "")],
                 id="nor those without an address"),
    pytest.param(API_VARIABLES, pod(), [service("kubernetes", "10.96.0.9", {"name": "https", "port": 443}), API],
                 id="nobody else can be the API server"),
    pytest.param({
        "MY_DB_SERVICE_HOST": "10.96.0.2", "MY_DB_SERVICE_PORT": "5432", "MY_DB_SERVICE_PORT_PG_X": "5432",
        "MY_DB_PORT": "tcp://10.96.0.2:5432", "MY_DB_PORT_5432_TCP": "tcp://10.96.0.2:5432",
        "MY_DB_PORT_5432_TCP_PROTO": "tcp", "MY_DB_PORT_5432_TCP_PORT": "5432", "MY_DB_PORT_5432_TCP_ADDR": "10.96.0.2",
        "MY_DB_PORT_53_UDP": "udp://10.96.0.2:53", "MY_DB_PORT_53_UDP_PROTO": "udp", "MY_DB_PORT_53_UDP_PORT": "53",
        "MY_DB_PORT_53_UDP_ADDR": "10.96.0.2",
    }, pod(), [service("my-db", "10.96.0.2", {"name": "pg-x", "port": 5432}, {"port": 53, "protocol": "UDP"})],
        id="all of a service's ports"),
])
def test_variables(expected: dict[str, str], thing: Object, services: list[Object]) -> None:
    assert expected == service_links(thing, services)


def test_a_pod_in_the_hosts_network_finds_the_api_server_there() -> None:
    found = service_links(pod(), [API], ("127.0.0.1", 6443))

    assert ("127.0.0.1", "6443") == (found["KUBERNETES_SERVICE_HOST"], found["KUBERNETES_SERVICE_PORT"])
