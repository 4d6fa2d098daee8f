#!/usr/bin/env python3
"""As much of `dig` as Kubernetes' tests of cluster DNS use, for machines that have no `dig`.

    dig [+short] [+search] [+tcp|+notcp] [+noall] [+answer] [@SERVER] [-x ADDRESS] NAME [TYPE]

It asks the servers in /etc/resolv.conf itself, over UDP or TCP as told, and prints the answers. The C library would not
do in its place: it cannot be told the transport, and it knows no SRV.
"""

import secrets
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

TYPES = {"A": 1, "CNAME": 5, "PTR": 12, "AAAA": 28, "SRV": 33}
NAMES = {number: name for name, number in TYPES.items()}
SECONDS = 5.0
MANY_DOTS = 5       # as Kubernetes writes it: fewer, and the search list comes first


def main(words: Sequence[str]) -> int:
    plain = [word for word in words if not word.startswith(("+", "@", "-"))]
    kind = next((word for word in plain if word in TYPES), "A")
    name = next(word for word in plain if word not in TYPES)
    if "-x" in words:
        name, kind = ".".join(reversed(name.split("."))) + ".in-addr.arpa.", "PTR"
    servers, search = resolver(Path("/etc/resolv.conf").read_text())
    servers = [word[1:] for word in words if word.startswith("@")] or servers
    for full in candidates(name, search if "+search" in words else []):
        found = list(ask(servers[0], full, TYPES[kind], by_tcp="+tcp" in words))
        for owner, number, text in found:
            print(text if "+short" in words else f"{owner}\tIN\t{NAMES.get(number, number)}\t{text}")
        if found:
            break
    return 0


def resolver(text: str) -> tuple[list[str], list[str]]:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    searches = [line[1:] for line in lines if line[0] == "search"]
    return [line[1] for line in lines if line[0] == "nameserver"], searches[-1] if searches else []


def candidates(name: str, search: Sequence[str]) -> list[str]:
    longer = [f"{name}.{domain}" for domain in search]
    if name.endswith("."):
        return [name]
    return [name, *longer] if name.count(".") >= MANY_DOTS else [*longer, name]


def ask(server: str, name: str, kind: int, *, by_tcp: bool) -> Iterator[tuple[str, int, str]]:
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack("!HH", kind, 1)
    query = struct.pack("!HHHHHH", secrets.randbits(16), 0x0100, 1, 0, 0, 0) + question
    answer = over_tcp(server, query) if by_tcp else over_udp(server, query)
    place = 12 + len(question)
    for _ in range(struct.unpack_from("!H", answer, 6)[0]):
        owner, place = read_name(answer, place)
        number, _, _, length = struct.unpack_from("!HHIH", answer, place)
        place += 10
        yield owner, number, value(answer, number, place, length)
        place += length


def over_udp(server: str, query: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect((server, 53))
        sock.send(query)
        return sock.recv(4096)


def over_tcp(server: str, query: bytes) -> bytes:
    with socket.create_connection((server, 53), timeout=SECONDS) as sock, sock.makefile("rb") as answer:
        sock.sendall(struct.pack("!H", len(query)) + query)
        return answer.read(struct.unpack("!H", answer.read(2))[0])


def value(message: bytes, number: int, place: int, length: int) -> str:
    if number == TYPES["A"]:
        return socket.inet_ntop(socket.AF_INET, message[place : place + 4])
    if number == TYPES["AAAA"]:
        return socket.inet_ntop(socket.AF_INET6, message[place : place + 16])
    if number in (TYPES["CNAME"], TYPES["PTR"]):
        return read_name(message, place)[0]
    if number == TYPES["SRV"]:
        return " ".join([*map(str, struct.unpack_from("!HHH", message, place)), read_name(message, place + 6)[0]])
    return message[place : place + length].hex()


def read_name(message: bytes, place: int) -> tuple[str, int]:
    """A name, whose end may be that of another one, and the place after it."""
    labels: list[str] = []
    after = 0
    while (length := message[place]) != 0:
        if length >= 0xC0:
            after = after or place + 2
            place = struct.unpack_from("!H", message, place)[0] & 0x3FFF
        else:
            labels.append(message[place + 1 : place + 1 + length].decode())
            place += 1 + length
    return ".".join([*labels, ""]), after or place + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
