"""DNS for pods: which names there are, and that no bytes can make the server raise, loop or answer an answer."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Object
from trainmaster.cluster.network.names import AAAA, ANY, CNAME, PTR, SRV, A, Zone, answer, build

NO_ERROR, FORMAT_ERROR, NAME_ERROR, NOT_IMPLEMENTED = 0, 1, 3, 4
SUFFIX = "svc.cluster.local"


def pod(name: str, address: str, *, ready: bool = True, phase: str = "Running", labels: dict[str, str] | None = None,
        **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "train", "labels": labels or {"app": "t"}},
        "spec": spec,
        "status": {
            "podIP": address, "phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def service(name: str, headless: bool = True, namespace: str = "train", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "None" if headless else "10.96.0.5", "selector": {"app": "t"}, **spec},
    }


ZONE = build(
    [
        service("workers", ports=[{"name": "http", "port": 80}]),
        service("front", headless=False, ports=[{"name": "web", "port": 80, "targetPort": 8080}]),
        service("early", publishNotReadyAddresses=True),
        service("empty", selector={"app": "nobody"}),
        service("idle", clusterIP="10.96.0.6", selector={"app": "nobody"}),
        service("elsewhere", namespace="other"),
        service("foreign", selector={}),
        service("outside", type="ExternalName", externalName="db.example.com"),
        service("indirect", type="ExternalName", externalName=f"front.train.{SUFFIX}."),
    ],
    [
        pod("w-0", "10.88.0.2", hostname="w-0", subdomain="workers"),
        pod("w-1", "10.88.0.3"),
        pod("slow", "10.88.0.4", ready=False),
        pod("done", "10.88.0.5", phase="Succeeded"),
        pod("other", "10.88.0.6", labels={"app": "x"}),
    ],
    [
        {"metadata": {"name": "foreign-1", "namespace": "train", "labels": {"kubernetes.io/service-name": "foreign"}},
         "addressType": "IPv4", "endpoints": [
             {"addresses": ["10.9.8.7"], "hostname": "db"},
             {"addresses": ["10.9.8.6"], "conditions": {"ready": False}}]},
    ],
)


def encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def query(name: str, kind: int = A, number: int = 0, flags: int = 0x0100, extra: bytes = b"") -> bytes:
    head = struct.pack("!HHHHHH", number, flags, 1, 0, 0, 1 if extra else 0)
    return head + encoded(name) + struct.pack("!HH", kind, 1) + extra


def code(reply: bytes) -> int:
    return reply[3] & 0xF


def records(reply: bytes) -> list[tuple[int, bytes]]:
    """Type and data of the answers."""
    at = 12
    while reply[at]:
        at += 1 + reply[at]
    at += 5
    found = []
    for _ in range(struct.unpack_from("!H", reply, 6)[0]):
        while reply[at] and reply[at] < 0xC0:          # an owner that is written out, up to its last byte but one
            at += 1 + reply[at]
        at -= 0 if reply[at] else 1
        kind, _, _, length = struct.unpack_from("!HHIH", reply, at + 2)
        found.append((kind, reply[at + 12:at + 12 + length]))
        at += 12 + length
    return found


def addresses(reply: bytes) -> list[str]:
    return [".".join(map(str, data)) for kind, data in records(reply) if kind == A]


@pytest.mark.parametrize(("expected", "name"), [
    pytest.param(["10.88.0.2", "10.88.0.3"], f"workers.train.{SUFFIX}", id="a headless service: its ready pods"),
    pytest.param(["10.88.0.2", "10.88.0.3"], f"WORKERS.Train.{SUFFIX}", id="names have no case"),
    pytest.param(["10.96.0.5"], f"front.train.{SUFFIX}", id="a service with an address of its own: that"),
    pytest.param(["10.96.0.6"], f"idle.train.{SUFFIX}", id="also when nobody is behind it"),
    pytest.param(["10.88.0.3"], f"10-88-0-3.front.train.{SUFFIX}", id="its pods have names below it all the same"),
    pytest.param(["10.88.0.2", "10.88.0.3", "10.88.0.4"], f"early.train.{SUFFIX}",
                 id="not ready ones if it asks for them"),
    pytest.param(["10.88.0.2"], f"w-0.workers.train.{SUFFIX}", id="a pod by host name below its subdomain"),
    pytest.param(["10.88.0.3"], f"10-88-0-3.workers.train.{SUFFIX}", id="a pod without one by its address"),
    pytest.param(["10.9.8.7"], f"foreign.train.{SUFFIX}", id="without a selector: whom its slices list"),
    pytest.param(["10.9.8.7"], f"db.foreign.train.{SUFFIX}", id="by the name they give, too"),
    pytest.param(["10.88.0.9"], "10-88-0-9.train.pod.cluster.local", id="a pod's own name says its address"),
])
def test_addresses(expected: list[str], name: str) -> None:
    reply = answer(query(name), ZONE)

    assert (NO_ERROR, expected) == (code(reply), addresses(reply))


@pytest.mark.parametrize(("expected", "name", "kind"), [
    pytest.param(NO_ERROR, f"workers.train.{SUFFIX}", AAAA,
                 id="AAAA of a known name: no records, but the name is there"),
    pytest.param(NO_ERROR, f"idle.train.{SUFFIX}", AAAA, id="so with a service that has an address"),
    pytest.param(NO_ERROR, f"train.{SUFFIX}", A, id="a name on the way to another is there"),
    pytest.param(NO_ERROR, "cluster.local", A, id="so is the domain itself"),
    pytest.param(NAME_ERROR, f"empty.train.{SUFFIX}", A, id="a headless service without pods is not"),
    pytest.param(NAME_ERROR, f"elsewhere.other.{SUFFIX}", A, id="pods of another namespace do not count"),
    pytest.param(NAME_ERROR, "workers", A, id="a short name needs the search list"),
    pytest.param(NAME_ERROR, "example.com", A, id="the outside world is not known"),
    pytest.param(NAME_ERROR, "", A, id="nor the root"),
    pytest.param(NAME_ERROR, "1-2-3.train.pod.cluster.local", A, id="not an address"),
    pytest.param(NAME_ERROR, "1-2-3-999.train.pod.cluster.local", A, id="not an address either"),
    pytest.param(NAME_ERROR, "5.0.88.10.in-addr.arpa", PTR, id="an address of nobody"),
])
def test_names_without_records(expected: int, name: str, kind: int) -> None:
    reply = answer(query(name, kind), ZONE)

    assert (expected, []) == (code(reply), records(reply))


def test_an_address_has_a_name() -> None:
    reply = answer(query("2.0.88.10.in-addr.arpa", PTR), ZONE)

    assert [(PTR, encoded(f"w-0.workers.train.{SUFFIX}"))] == records(reply)


def test_a_named_port_leads_to_every_pod() -> None:
    found = records(answer(query(f"_http._tcp.workers.train.{SUFFIX}", SRV), ZONE))

    expected = [encoded(f"{host}.workers.train.{SUFFIX}") for host in ("w-0", "10-88-0-3")]
    assert expected == [data[6:] for kind, data in found if kind == SRV]
    assert {80} == {struct.unpack_from("!H", data, 4)[0] for _, data in found}


def test_a_named_port_of_a_service_with_an_address_leads_to_the_service() -> None:
    found = records(answer(query(f"_web._tcp.front.train.{SUFFIX}", SRV), ZONE))

    assert [(SRV, struct.pack("!HHH", 0, 100, 80) + encoded(f"front.train.{SUFFIX}"))] == found
    assert [(PTR, encoded(f"front.train.{SUFFIX}"))] == records(answer(query("5.0.96.10.in-addr.arpa", PTR), ZONE))


@pytest.mark.parametrize(("expected", "name", "kind"), [
    pytest.param([(CNAME, encoded("db.example.com"))], "outside", A, id="a name of the outside world is told"),
    pytest.param([(CNAME, encoded("db.example.com"))], "outside", AAAA, id="whatever is asked"),
    pytest.param([(CNAME, encoded(f"front.train.{SUFFIX}")), (A, bytes((10, 96, 0, 5)))], "indirect", A,
                 id="of a name of the cluster the address is told too"),
])
def test_external_names(expected: list[tuple[int, bytes]], name: str, kind: int) -> None:
    reply = answer(query(f"{name}.train.{SUFFIX}", kind), ZONE)

    assert (NO_ERROR, expected) == (code(reply), records(reply))


def test_clients_take_turns() -> None:
    firsts = {addresses(answer(query(f"workers.train.{SUFFIX}", number=number), ZONE))[0] for number in (4, 5)}

    assert {"10.88.0.2", "10.88.0.3"} == firsts


def test_any_is_answered_with_what_there_is() -> None:
    assert 2 == len(records(answer(query(f"workers.train.{SUFFIX}", ANY), ZONE)))


@pytest.mark.parametrize(("expected", "data"), [
    pytest.param(None, b"", id="nothing"),
    pytest.param(None, b"\0" * 11, id="less than a head"),
    pytest.param(None, query("a.b", flags=0x8180), id="an answer: never answered, or two servers talk for ever"),
    pytest.param(NOT_IMPLEMENTED, query("a.b", flags=0x2800), id="an update"),
    pytest.param(FORMAT_ERROR, struct.pack("!HHHHHH", 1, 0, 0, 0, 0, 0), id="no question"),
    pytest.param(FORMAT_ERROR, struct.pack("!HHHHHH", 1, 0, 2, 0, 0, 0) + b"\0" * 10, id="two questions"),
    pytest.param(FORMAT_ERROR, query("a.b")[:-3], id="a question that breaks off"),
    pytest.param(FORMAT_ERROR, struct.pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1",
                 id="a name that points at itself"),
    pytest.param(FORMAT_ERROR, struct.pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\x3f" + b"a" * 20,
                 id="a label that is too short"),
    pytest.param(FORMAT_ERROR, query(".".join(["a" * 60] * 5)), id="a name that is too long"),
    pytest.param(FORMAT_ERROR, query("a.b")[:-2] + b"\0\3", id="another class than the internet"),
    pytest.param(FORMAT_ERROR, struct.pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\x03a.b\0\0\1\0\1",
                 id="a dot inside a label"),
])
def test_bytes_that_are_no_question(expected: int | None, data: bytes) -> None:
    reply = answer(data, ZONE)

    assert expected == (code(reply) if reply else None)


@given(st.one_of(st.binary(max_size=300), st.builds(lambda tail: query("a.b")[:12] + tail, st.binary(max_size=300))))
def test_no_bytes_can_upset_it(data: bytes) -> None:
    reply = answer(data, ZONE)

    assert reply == b"" or (reply[:2] == data[:2] and reply[2] & 0x80)


MANY = Zone(addresses={"many": tuple(f"10.88.1.{n}" for n in range(200))})
EDNS = b"\0" + struct.pack("!HHIH", 41, 4096, 0, 0)


@pytest.mark.parametrize(("cut", "fits", "extra", "stream"), [
    pytest.param(True, 512, b"", False, id="a plain answer has 512 bytes and says that there is more"),
    pytest.param(False, 4096, EDNS, False, id="a client that takes more gets more"),
    pytest.param(False, 65535, b"", True, id="by TCP all of it"),
])
def test_long_answers(cut: bool, fits: int, extra: bytes, stream: bool) -> None:
    reply = answer(query("many", extra=extra), MANY, stream=stream)

    assert (cut, True) == (bool(reply[2] & 0x02), len(reply) <= fits)
    assert cut or len(records(reply)) == 200
