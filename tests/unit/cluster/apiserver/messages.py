"""Protobuf messages by hand: just enough to write the rows of the tests down."""

MAGIC = b"k8s\x00"


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, *parts: bytes | str) -> bytes:
    data = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(data)) + data


def enveloped(api_version: str, kind: str, *parts: bytes) -> bytes:
    return MAGIC + chunk(1, chunk(1, api_version), chunk(2, kind)) + chunk(2, *parts) + chunk(3) + chunk(4)
