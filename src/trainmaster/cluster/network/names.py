"""DNS for pods: the zone as data, and an answer as a function of a query and the zone. Pure.

Names are those of Kubernetes: `svc.ns.svc.cluster.local` and, through a pod's search list, every shorter form of it;
`hostname.subdomain.ns.svc.cluster.local`; `10-88-0-5.ns.pod.cluster.local`. A service with an address of its own is
answered with that, a headless one with the addresses of its ready pods, an external one with its other name. Queries
come from programs we do not control, so whatever the bytes are, `answer` returns.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.api.meta import Key, Object, labels_of, name_of, namespace_of
from trainmaster.cluster.network.forwarding import SERVICE_NAME

DOMAIN = "cluster.local"
TTL = 5                 # seconds, as CoreDNS: names follow pods

HEADLESS = "None"
_REVERSE = (".88.10.in-addr.arpa", ".96.10.in-addr.arpa")      # addresses of pods and services

A, CNAME, PTR, AAAA, SRV, ANY = 1, 5, 12, 28, 33, 255
_OPT = 41
_IN = 1
NO_ERROR, FORMAT_ERROR, NAME_ERROR, NOT_IMPLEMENTED = 0, 1, 3, 4
_PLAIN_LIMIT = 512      # bytes of a UDP answer to a client that does not say it takes more
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Target:
    """Where an SRV record points."""

    port: int
    host: str


@dataclass(frozen=True, slots=True)
class Zone:
    """Everything that can be asked, by lower-case name without the last dot."""

    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)      # () for a name without any
    pointers: Mapping[str, str] = field(default_factory=dict)                   # reverse name -> name
    services: Mapping[str, tuple[Target, ...]] = field(default_factory=dict)    # _port._tcp.svc... -> targets
    aliases: Mapping[str, str] = field(default_factory=dict)                    # names that stand for another
    parents: frozenset[str] = frozenset()                                       # names on the way to others


@dataclass(frozen=True, slots=True)
class _Host:
    """Somebody behind a service: the label below the service's name, and whether it asked for that."""

    label: str
    address: str
    asked: bool


def build(services: Iterable[Object], pods: Iterable[Object], slices: Iterable[Object] = ()) -> Zone:
    """The zone for these services and pods. Who is behind a service without a selector is told by its slices."""
    drawn = _Drawn()
    by_service: dict[Key, list[Object]] = {}
    for one in slices:
        by_service.setdefault(Key(namespace_of(one), labels_of(one).get(SERVICE_NAME, "")), []).append(one)
    by_namespace: dict[str, list[Object]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("podIP") and not _over(pod):
            by_namespace.setdefault(namespace_of(pod), []).append(pod)
    for service in services:
        spec = service.get("spec") or {}
        name = f"{name_of(service)}.{namespace_of(service)}.svc.{DOMAIN}".lower()
        if spec.get("type") == "ExternalName":
            drawn.aliases[name] = str(spec.get("externalName") or "").rstrip(".").lower()
        else:
            listed = by_service.get(Key(namespace_of(service), name_of(service)), [])
            backing = _backing(service, by_namespace.get(namespace_of(service), [])) or _listed(service, listed)
            drawn.service(name, spec, backing)
    return Zone(
        drawn.addresses, drawn.pointers, drawn.targets, drawn.aliases, _parents([*drawn.addresses, *drawn.aliases])
    )


@dataclass(slots=True)
class _Drawn:
    """A zone that is being made."""

    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pointers: dict[str, str] = field(default_factory=dict)
    targets: dict[str, tuple[Target, ...]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def service(self, name: str, spec: Object, backing: list[_Host]) -> None:
        """A headless one without pods is not there, as in CoreDNS. Pods have names below either sort."""
        hosts = [self._host(name, one) for one in backing]
        own = str(spec.get("clusterIP") or HEADLESS)
        if own != HEADLESS:
            self.addresses[name] = (own,)
            self.pointers[_reverse(own)] = name
        elif backing:
            self.addresses[name] = tuple(one.address for one in backing)
        self._ports(name, spec.get("ports") or (), hosts if own == HEADLESS else [name])

    def _host(self, name: str, one: _Host) -> str:
        host = f"{one.label}.{name}".lower()
        self.addresses[host] = (*self.addresses.get(host, ()), one.address)
        if _reverse(one.address) not in self.pointers or one.asked:
            self.pointers[_reverse(one.address)] = host      # of several names the one it asked for
        return host

    def _ports(self, name: str, ports: Iterable[Object], hosts: list[str]) -> None:
        for port in ports:
            if port.get("name") and hosts:
                key = f"_{port['name']}._{str(port.get('protocol') or 'TCP').lower()}.{name}".lower()
                self.targets[key] = tuple(Target(int(port.get("port") or 0), host) for host in hosts)


def _parents(names: Iterable[str]) -> frozenset[str]:
    found: set[str] = {DOMAIN}
    for name in names:
        parent = name.partition(".")[2]
        while parent.endswith(DOMAIN) and parent not in found:
            found.add(parent)
            parent = parent.partition(".")[2]
    return frozenset(found)


def answer(query: bytes, zone: Zone, *, stream: bool = False) -> bytes:
    """The answer to one DNS message; b"" for something that is no query at all. Never raises."""
    if len(query) < 12:
        return b""
    number, flags, questions, _, _, additional = struct.unpack_from("!HHHHHH", query)
    if flags & 0x8000:
        return b""                                           # an answer: answering it could go on for ever
    if flags & 0x7800:
        return _message(number, flags, NOT_IMPLEMENTED, b"", (), stream=stream)
    parsed = _question(query) if questions == 1 else None
    if parsed is None:
        return _message(number, flags, FORMAT_ERROR, b"", (), stream=stream)
    name, kind, end = parsed
    room = _room(query, end) if additional else None
    found = _find(name.lower(), kind, zone, number)
    code, records = (NAME_ERROR, []) if found is None else (NO_ERROR, found)
    return _message(number, flags, code, query[12:end], records, stream=stream, room=room)


def elsewhere(query: bytes, zone: Zone) -> tuple[bool, str]:
    """Whether a query is not for us to answer; and the name outside that our answer's alias points to, if it does.

    Names of one word are never asked outside: they are pods' and services', looked for in one domain too many.
    """
    parsed = _question(query) if len(query) > 12 and query[4:6] == b"\0\1" and not query[2] & 0xF8 else None
    if parsed is None:
        return False, ""
    name = parsed[0].lower()
    if not _is_ours(name):
        return "." in name, ""
    target = zone.aliases.get(name, "") if parsed[1] in (A, ANY) else ""
    return False, target if target and not _is_ours(target) else ""


def with_more(reply: bytes, records: list[bytes]) -> bytes:
    """An answer with further records, which is as long as it may be."""
    if not records or reply[10:12] != b"\0\0" or len(reply) + sum(map(len, records)) > _PLAIN_LIMIT:
        return reply
    count = struct.unpack_from("!H", reply, 6)[0] + len(records)
    return reply[:6] + struct.pack("!H", count) + reply[8:] + b"".join(records)


def _is_ours(name: str) -> bool:
    return name == DOMAIN or name.endswith((f".{DOMAIN}", *_REVERSE))


def _find(name: str, kind: int, zone: Zone, number: int) -> list[bytes] | None:
    """The records of a name; None when the name does not exist."""
    if name in zone.pointers:
        return [_record(PTR, encoded(zone.pointers[name]))] if kind in (PTR, ANY) else []
    if name in zone.services:
        if kind not in (SRV, ANY):
            return []
        return [_record(SRV, struct.pack("!HHH", 0, 100, one.port) + encoded(one.host)) for one in zone.services[name]]
    if name in zone.aliases:
        return _aliased(zone.aliases[name], kind, zone, number)
    addresses = zone.addresses.get(name)
    if addresses is None:
        addresses = _pod_address(name)
    if addresses is None:
        # A name on the way to one that exists is there, but empty; else a resolver would stop looking below it.
        return [] if name in zone.parents else None
    if kind not in (A, ANY):
        return []
    turn = number % len(addresses) if addresses else 0       # clients take the first: let them take turns
    return [_record(A, bytes(map(int, one.split(".")))) for one in (*addresses[turn:], *addresses[:turn])]


def _aliased(target: str, kind: int, zone: Zone, number: int) -> list[bytes]:
    """The other name, and what is known here of it."""
    alias = _record(CNAME, encoded(target))
    known = _find(target, kind, zone, number) if target not in zone.aliases and kind in (A, ANY) else None
    owner = encoded(target)
    return [alias, *(owner + one[2:] for one in known or ())]


def _pod_address(name: str) -> tuple[str, ...] | None:
    """`10-88-0-5.ns.pod.cluster.local` says its own address."""
    head, _, rest = name.partition(".")
    parts = head.split("-")
    if not rest.endswith(f".pod.{DOMAIN}") or len(parts) != 4:
        return None
    if all(part.isascii() and part.isdecimal() and len(part) <= 3 and int(part) < 256 for part in parts):
        return (".".join(str(int(part)) for part in parts),)
    return None


def _question(query: bytes) -> tuple[str, int, int] | None:
    """Name and type of the one question, and where it ends; None when it cannot be read."""
    labels: list[str] = []
    at, total = 12, 0
    while True:
        if at >= len(query):
            return None
        length = query[at]
        at += 1
        if length == 0:
            break
        total += length + 1
        if length > 63 or total > 254 or at + length > len(query):     # above 63: a pointer, which no question needs
            return None
        labels.append(query[at:at + length].decode("latin-1"))
        at += length
    if at + 4 > len(query):
        return None
    kind, group = struct.unpack_from("!HH", query, at)
    if group not in (_IN, ANY) or any("." in label for label in labels):
        return None
    return ".".join(labels), kind, at + 4


def _room(query: bytes, end: int) -> int | None:
    """How large an answer the client takes, if it says so in an EDNS record right after the question."""
    if len(query) >= end + 11 and query[end] == 0:
        kind, size = struct.unpack_from("!HH", query, end + 1)
        if kind == _OPT:
            return max(_PLAIN_LIMIT, min(_LARGEST, int(size)))
    return None


def _message(
    number: int, flags: int, code: int, question: bytes, records: Iterable[bytes], *, stream: bool,
    room: int | None = None,
) -> bytes:
    extra = b"\0" + struct.pack("!HHIH", _OPT, _LARGEST, 0, 0) if room is not None else b""
    limit = 65535 if stream else (room or _PLAIN_LIMIT)
    body, count, cut = b"", 0, 0
    for record in records:
        if 12 + len(question) + len(body) + len(record) + len(extra) > limit:
            cut = 0x0200                                     # truncated: ask again by TCP
            break
        body += record
        count += 1
    # An authoritative answer, recursion wanted as asked and offered, so that no resolver looks elsewhere.
    head = 0x8000 | (flags & 0x7900) | 0x0400 | 0x0080 | cut | code
    counts = struct.pack("!HHHHHH", number, head, 1 if question else 0, count, 0, 1 if extra else 0)
    return counts + question + body + extra


def _record(kind: int, data: bytes) -> bytes:
    return b"\xc0\x0c" + struct.pack("!HHIH", kind, _IN, TTL, len(data)) + data


def encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".")) + b"\0"


def _listed(service: Object, slices: Iterable[Object]) -> list[_Host]:
    """Who is behind a service that somebody else looks after."""
    spec = service.get("spec") or {}
    found = []
    for one in slices if not spec.get("selector") else ():
        for endpoint in one.get("endpoints") or () if one.get("addressType", "IPv4") == "IPv4" else ():
            ready = (endpoint.get("conditions") or {}).get("ready") is not False
            if ready or spec.get("publishNotReadyAddresses"):
                address, label = str(endpoint["addresses"][0]), str(endpoint.get("hostname") or "")
                found.append(_Host(label or address.replace(".", "-"), address, bool(label)))
    return found


def _backing(service: Object, pods: list[Object]) -> list[_Host]:
    spec = service.get("spec") or {}
    selector = spec.get("selector") or {}
    if not selector:
        return []
    unready_too = bool(spec.get("publishNotReadyAddresses"))
    return [
        _Host(_host_label(pod, service), str(pod["status"]["podIP"]), _has_own_name(pod, service)) for pod in pods
        if selector.items() <= labels_of(pod).items() and (unready_too or _ready(pod))
    ]


def _host_label(pod: Object, service: Object) -> str:
    """The pod's own label below a service: its host name if it asks for one there, else its address."""
    if _has_own_name(pod, service):
        return str(pod["spec"]["hostname"])
    return str(pod["status"]["podIP"]).replace(".", "-")


def _has_own_name(pod: Object, service: Object) -> bool:
    spec = pod.get("spec") or {}
    return bool(spec.get("hostname")) and spec.get("subdomain") == name_of(service)


def _ready(pod: Object) -> bool:
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _reverse(address: str) -> str:
    return ".".join(reversed(address.split("."))) + ".in-addr.arpa"
