"""Connects to service addresses in a network namespace of its own and tells where it came out. For test_nftables and
test_doors: once with rules of the kernel alone, once with doors that find no nftables.
"""

import asyncio
import errno
import json
import os
import socket
import sys
import threading

from trainmaster.cluster.network.doors import Doors
from trainmaster.cluster.network.forwarding import Door, Forward
from trainmaster.cluster.network.netlink import Netlink
from trainmaster.cluster.network.nftables import NETLINK_NETFILTER, Nftables, Refused
from trainmaster.runtime.clock import RealClock

ONE, TWO = ("10.88.0.1", 1001), ("10.88.0.1", 1002)
TCP, UDP = Door("10.96.0.9", 80, "TCP"), Door("10.96.0.9", 80, "UDP")


def serve(name: bytes, backend: tuple[str, int]) -> None:
    listener = socket.create_server(backend)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(backend)

    def streams() -> None:
        while True:
            client, _ = listener.accept()
            client.sendall(name)
            client.close()

    def packets() -> None:
        while True:
            _, address = datagrams.recvfrom(100)
            datagrams.sendto(name, address)

    for body in (streams, packets):
        threading.Thread(target=body, daemon=True).start()


def asked(door: Door = TCP) -> str:
    kind = socket.SOCK_STREAM if door.protocol == "TCP" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as client:
        client.settimeout(30)
        try:
            client.connect((door.address, door.port))
            if door.protocol == "UDP":
                client.send(b"who")
            return client.recv(100).decode()
        except OSError as error:
            return type(error).__name__


class WithoutNftables:
    """A network like ours, but for one thing."""

    async def open_socket(
        self, family: int, kind: int, protocol: int = 0, bind: tuple[str, int] | None = None
    ) -> socket.socket:
        if protocol == NETLINK_NETFILTER:
            raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")
        made = socket.socket(family, kind, protocol)
        if bind:
            made.bind(bind)
            if kind == socket.SOCK_STREAM:
                made.listen()
        return made


async def by_hand() -> dict[str, object]:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}]
    service = {"metadata": {"name": "web", "namespace": "x"}, "spec": {"clusterIP": "10.96.0.9", "ports": ports}}
    endpoints = [{"addresses": ["10.88.0.1"], "conditions": {"ready": True}}]
    slices = [{
        "metadata": {"name": "web-1", "namespace": "x", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": name, "port": 1001} for name in "ab"],
    }]
    services = [service]
    doors = Doors(lambda: services, lambda: slices, list, api=None, clock=RealClock(), complain=lambda *_: None)
    opened = asyncio.Event()
    running = asyncio.create_task(doors.run(WithoutNftables(), os.getpid(), opened.set))
    await opened.wait()
    said: dict[str, object] = {"to one": await asyncio.to_thread(asked)}
    said["datagrams"] = await asyncio.to_thread(asked, UDP)
    opened.clear()
    services.clear()
    doors.changed()
    await opened.wait()
    said["gone"] = await asyncio.to_thread(asked)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return said


def main() -> None:
    link = Netlink()
    link.raise_loopback()
    bridge = link.make_bridge("tm0", bytes((2, 0, 0, 0, 0, 1)))
    link.add_address(bridge, "10.88.0.1", 16)
    link.add_route("10.96.0.0/16", bridge)
    if sys.argv[1:] == ["by hand"]:
        serve(b"one", ONE)
        print(json.dumps(asyncio.run(by_hand())))
        return
    rules = Nftables(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER), "10.96.0.0/16")
    try:
        rules.begin()
    except Refused as refused:
        print(json.dumps({"refused": str(refused)}))
        return
    serve(b"one", ONE)
    serve(b"two", TWO)
    said: dict[str, object] = {}
    rules.update({TCP: Forward((ONE,)), UDP: Forward((ONE,))})
    said["to one"] = [asked() for _ in range(5)]
    said["datagrams"] = [asked(UDP)]
    rules.update({TCP: Forward((ONE, TWO))})
    said["to either"] = sorted({asked() for _ in range(60)})
    rules.update({TCP: Forward((ONE, TWO), 60)})
    said["stays"] = len(stayed := {asked() for _ in range(30)})
    rules.update({TCP: Forward((ONE, TWO), 60), UDP: Forward((TWO,))})
    said["stays after a change"] = len(stayed | {asked() for _ in range(30)})
    rules.update({TCP: Forward()})
    said["nobody"] = asked()
    rules.update({TCP: Forward((ONE,))})
    rules.update({})
    said["gone"] = asked()
    addresses = [f"10.96.{number // 250 + 1}.{number % 250 + 1}" for number in range(1000)]
    many = {Door(address, 80, "TCP"): Forward((ONE, TWO)) for address in addresses}
    said["a thousand"] = rules.update(many)
    rules.begin()
    said["begun again"] = asked(next(iter(many)))
    print(json.dumps(said))


main()
