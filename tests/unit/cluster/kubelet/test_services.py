"""Services as pods and people on the machine see them, with real pods. The last test runs it as an ordinary user."""

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.kubelet.node import SYSTEM_PYTHON, Node, as_an_ordinary_user

from trainmaster.api.core import ENDPOINT_SLICES, PODS, SERVICES
from trainmaster.api.meta import Object
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
    " c = socket.create_connection((host, port), 60); c.sendall(b'abc'); print(c.recv(9).decode())\n"
    "u = socket.socket(2, 2); u.settimeout(60); u.connect(('web', 80)); u.send(b'xyz'); print(u.recv(9).decode())\n"
    "try: socket.create_connection(('10.96.0.98', 80), 60)\n"
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


def listened_on() -> set[tuple[str, int]]:
    """Where the agent listens in the machine's own network. (Its sockets in the cluster's are not in these tables.)"""
    ours = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            ours.add(entry.readlink().name.removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in ours:
                address, _, port = fields[1].partition(":")
                found.add((address, int(port, 16)))
    return found


async def knocked(port: int) -> bytes:
    """Ask on the machine's loopback, until somebody answers: the door opens a moment after the object is there."""
    async with asyncio.timeout(60):
        while True:
            said = b""
            with suppress(ConnectionError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(b"abc")
                    said = await reader.read()
                finally:
                    writer.close()
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
    heard = listened_on()
    assert {30099, free} <= {port for _, port in heard}
    assert {"0100007F"} == {address for address, _ in heard}, "on 127.0.0.1: nobody else can knock"
    await node.client.create(PODS, built("asker", node="here", command=(SYSTEM_PYTHON, "-c", ASK)))

    await node.phase("asker", "Succeeded", "Failed")

    assert (200, "cba\ncba\ncba\ncba\nzyx\nrefused\n10.96.0.99 80\n") == await node.log("asker")


async def test_a_port_of_the_machine_that_is_taken_is_told(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = built("a", node="here", command=("sleep", "1000"))
        taken["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": other.getsockname()[1]}]
        await node.client.create(PODS, taken)

        assert "Address already in use; it is tried again" in await node.event("PortNotOpen")


REACH = (
    "import socket, sys\n"
    "for place in sys.argv[1:]:\n"
    " host, port = place.split(':')\n"
    " try: c = socket.create_connection((host, int(port)), 9); c.sendall(b'abc'); print(c.recv(9).decode() or '-')\n"
    " except OSError as error: print(type(error).__name__)"
)


def own_address() -> str:
    """One of this machine that is not its loopback; "" if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))         # nothing is sent
        except OSError:
            return ""
        found = str(probe.getsockname()[0])
    return "" if found.startswith("127.") else found


async def test_pods_reach_the_outside_but_not_the_loopback_of_this_machine(node: Node) -> None:
    """The outside is an address of this machine that others see, too; only a pod may listen there."""
    outside = own_address()
    if not outside:
        pytest.skip("this machine has no network")

    async def reverse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(9))[::-1])
        writer.close()

    private = await asyncio.start_server(reverse, "127.0.0.1", 0)
    public = (f"import socket; s = socket.create_server(('{outside}', 0)); print('on', s.getsockname()[1])\n"
              "while True: c = s.accept()[0]; c.sendall(c.recv(9)[::-1]); c.close()")
    await node.client.create(PODS, built("b", node="here", command=(SYSTEM_PYTHON, "-uc", public), hostNetwork=True))
    await node.phase("b", "Running")
    await node.heard("b", "on ")
    there, here = (await node.log("b"))[1].split()[1], private.sockets[0].getsockname()[1]
    hidden = [f"{host}:{here}" for host in (outside, "127.0.0.1", "10.88.0.1", "10.87.255.2")]
    places = [f"{outside}:{there}", *hidden, f"169.254.169.254:{there}"]
    await node.client.create(PODS, built("a", node="here", command=(SYSTEM_PYTHON, "-c", REACH, *places)))

    await node.phase("a", "Succeeded", "Failed")

    _, said = await node.log("a")
    reached, *others = said.split()
    assert ("cba", 5, False) == (reached, len(others), "cba" in others)
    private.close()


async def test_a_pod_in_the_hosts_network(node: Node) -> None:
    """It has the machine's links, listens on the machine's loopback, and is reached by pods on the node's address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    program = (
        f"import socket; s = socket.create_server(('127.0.0.1', {free}))\n"
        "print(sorted(n for _, n in socket.if_nameindex())); print(socket.gethostname(), flush=True)\n"
        "while True: c = s.accept()[0]; c.sendall(c.recv(9)[::-1]); c.close()"
    )
    shared = built("shared", node="here", command=(SYSTEM_PYTHON, "-c", program), hostNetwork=True)
    shared["spec"]["containers"][0]["ports"] = [{"containerPort": free, "hostPort": free}]
    shared["spec"]["containers"][0]["readinessProbe"] = {
        "tcpSocket": {"port": free}, "periodSeconds": 1, "timeoutSeconds": 10}
    await node.client.create(PODS, shared)

    def ready(thing: Object) -> bool:
        return ("Ready", "True") in {(one["type"], one["status"]) for one in thing["status"].get("conditions") or ()}

    status = (await node.until("shared", ready))["status"]
    assert b"cba" == await knocked(free)
    links = sorted(name for _, name in socket.if_nameindex())
    assert (200, f"{links}\n{socket.gethostname()}\n") == await node.log("shared")
    assert ("10.88.0.1", "10.88.0.1") == (status["podIP"], status["hostIP"])
    command = (SYSTEM_PYTHON, "-c", REACH, f"10.88.0.1:{free}")
    await node.client.create(PODS, built("asker", node="here", command=command))
    await node.phase("asker", "Succeeded", "Failed")
    assert (200, "cba\n") == await node.log("asker")
    await node.client.delete(PODS, "shared", "default", grace=1)
    await node.gone("shared")


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
def test_all_of_this_as_an_ordinary_user() -> None:
    as_an_ordinary_user(__file__)
