"""Services as pods and people on the machine see them, with real pods. The last test runs it as an ordinary user."""

import asyncio
import os
import socket
from typing import Any

import pytest
from tests.unit.cluster.kubelet.node import SYSTEM_PYTHON, Node, as_an_ordinary_user

from trainmaster.api.core import PODS, SERVICES
from trainmaster.api.meta import Object
from trainmaster.cluster.network.forwarding import ENDPOINT_SLICES
from trainmaster.testing.builders import pod as built

SERVE = (
    "import socket, threading; s = socket.create_server(('', 8080)); u = socket.socket(2, 2); u.bind(('', 8080))\n"
    "def datagrams():\n"
    " while True: d, a = u.recvfrom(9); u.sendto(d[::-1], a)\n"
    "threading.Thread(target=datagrams, daemon=True).start(); print('ready', flush=True)\n"
    "while True: c = s.accept()[0]; c.sendall(c.recv(9)[::-1]); c.close()"
)
ASK = (
    "import os, socket\n"
    "for host, port in (('web', 80), ('10.96.0.99', 80), ('web.default.svc', 80), ('10.88.0.1', 30099)):\n"
    " c = socket.create_connection((host, port), 9); c.sendall(b'abc'); print(c.recv(9).decode())\n"
    "u = socket.socket(2, 2); u.settimeout(9); u.connect(('web', 80)); u.send(b'xyz'); print(u.recv(9).decode())\n"
    "try: socket.create_connection(('10.96.0.98', 80), 9)\n"
    "except ConnectionRefusedError: print('refused')\n"
    "print(os.environ['WEB_SERVICE_HOST'], os.environ['WEB_SERVICE_PORT'])"
)


def service(name: str, address: str, **spec: Any) -> Object:
    ports = [{"name": "a", "port": 80, "targetPort": 8080},
             {"name": "b", "port": 80, "targetPort": 8080, "protocol": "UDP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterIP": address, "selector": {"app": name}, "ports": ports, **spec}}


def endpoint_slice(name: str, address: str) -> Object:
    ports = [{"name": "a", "port": 8080, "protocol": "TCP"}, {"name": "b", "port": 8080, "protocol": "UDP"}]
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": ports,
        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }


async def knocked(port: int) -> bytes:
    """Ask on the machine's loopback, until somebody answers: the door opens a moment after the object is there."""
    async with asyncio.timeout(30):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"abc")
                said = await reader.read()
                writer.close()
            except ConnectionError:
                said = b""
            if said:
                return said
            await asyncio.sleep(0.02)


async def test_a_service_by_its_address_its_name_and_its_node_port(node: Node) -> None:
    node_port = {"type": "NodePort", "ports": [
        {"name": "a", "port": 80, "targetPort": 8080, "nodePort": 30099},
        {"name": "b", "port": 80, "targetPort": 8080, "protocol": "UDP"}]}
    await node.client.create(SERVICES, service("web", "10.96.0.99", **node_port))
    await node.client.create(SERVICES, service("nobody", "10.96.0.98"))
    server = built("server", node="here", command=(SYSTEM_PYTHON, "-c", SERVE), labels={"app": "web"})
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    server["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": free}]
    await node.client.create(PODS, server)
    await node.phase("server", "Running")
    await node.heard("server", "ready")
    address = (await node.client.get(PODS, "server", "default"))["status"]["podIP"]
    await node.client.create(ENDPOINT_SLICES, endpoint_slice("web", address))
    assert b"cba" == await knocked(30099), "on this machine, by the node port"
    assert b"cba" == await knocked(free), "and by the host port"
    await node.client.create(PODS, built("asker", node="here", command=(SYSTEM_PYTHON, "-c", ASK)))

    await node.phase("asker", "Succeeded", "Failed")

    assert (200, "cba\ncba\ncba\ncba\nzyx\nrefused\n10.96.0.99 80\n") == await node.log("asker")


async def test_a_port_of_the_machine_that_is_taken_is_told(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = built("a", node="here", command=("sleep", "1000"))
        taken["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": other.getsockname()[1]}]
        await node.client.create(PODS, taken)

        assert "Address already in use; it is tried again" in await node.event("PortNotOpen")


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
def test_all_of_this_as_an_ordinary_user() -> None:
    as_an_ordinary_user(__file__)
